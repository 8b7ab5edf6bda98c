//! One line `Inst` of a simulated upgrade.
//!
//! In: the line after `Inst `, such as `sed [4.9-1] (4.9-1+deb12u1 Debian:12.14/oldstable [amd64]) []`. Out: the package. In the
//! brackets are the new version, its sources by the label of their release file, and the architecture. A label may contain
//! spaces.

use holdfast_protocol::report::{PackageOrigin, PackageText, PendingPackage, UpgradeKind};

pub(super) fn install(rest: &str) -> Option<PendingPackage> {
    let (name, rest) = rest.split_once(' ')?;
    let (before, rest) = rest.split_once('(')?;
    let (offer, _) = rest.split_once(')')?;
    let installed = before.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let (offered, sources) = offer.split_once(' ').unwrap_or((offer, ""));
    let sources: Vec<&str> = sources.split(" [").next().unwrap_or_default().split(", ").collect();
    Some(PendingPackage {
        name: PackageText::clipped(name)?,
        installed: installed.and_then(PackageText::clipped),
        offered: PackageText::clipped(offered)?,
        origin: origin(&sources),
        kind: kind(&sources),
    })
}

/// The same version may come from Debian and from a copy of it elsewhere: it is Debian's then.
fn origin(sources: &[&str]) -> PackageOrigin {
    let has = |is: fn(&str) -> bool| sources.iter().any(|source| is(label(source)));
    if has(|label| label == "Debian" || label.starts_with("Debian-") || label == "Debian Backports") {
        PackageOrigin::Debian
    } else if has(|label| label.to_ascii_lowercase().contains("proxmox")) {
        PackageOrigin::Proxmox
    } else {
        PackageOrigin::Other
    }
}

fn kind(sources: &[&str]) -> UpgradeKind {
    let is_security = sources.iter().any(|source| label(source) == "Debian-Security");
    if is_security { UpgradeKind::Security } else { UpgradeKind::Plain }
}

/// `Debian-Security:12/oldstable-security`: what stands before the last colon.
fn label(source: &str) -> &str {
    source.rsplit_once(':').map_or(source, |(label, _)| label)
}
