//! Pending upgrades and a due restart of a host, in lines.

use holdfast_protocol::report::{
    PackageText, PendingPackage, PendingPackages, RestartReason, UpdatesSection, UpgradeKind,
};
use jiff::{SignedDuration, Timestamp};

use super::table::{clean, plain, table};
use super::time::ago;
use crate::screen::Style;

/// Packages are read once an hour; this is twice missed.
const OLD: SignedDuration = SignedDuration::from_hours(3);

/// As many packages as are shown; `--output json` has more.
const SHOWN_MAX: usize = 12;

/// What waits, and whether the host should be restarted.
pub fn updates(section: &UpdatesSection, now: Timestamp, style: Style) -> String {
    let mut text = match (&section.pending, &section.failure) {
        (Some(pending), _) => packages(pending, style),
        (None, Some(why)) => {
            format!("Upgrades: unknown, since apt could not say: {}.\n", clean(why.as_str()))
        }
        (None, None) => "Upgrades: unknown.\n".to_owned(),
    };
    text.push_str(&restart(section));
    let lists = section.lists_changed_at.map_or_else(
        || "there are no package lists".to_owned(),
        |at| format!("their lists changed {}", ago(at, now)),
    );
    let old = if now.duration_since(section.read_at) > OLD {
        ": older than it should be, see `systemctl status holdfast-updates.timer` on the host"
    } else {
        ""
    };
    text.push_str(&format!("Packages were read {}, {lists}{old}.\n", ago(section.read_at, now)));
    text
}

fn packages(pending: &PendingPackages, style: Style) -> String {
    let total = pending.total();
    if total == 0 && pending.removals == 0 {
        return "Upgrades: none waits.\n".to_owned();
    }
    let mut text = format!(
        "Upgrades: {total} wait ({} of Debian, {} of Proxmox, {} of others), {} of them for security.\n",
        pending.debian, pending.proxmox, pending.other, pending.security
    );
    if pending.removals > 0 {
        text.push_str(&format!("{} packages would be removed.\n", pending.removals));
    }
    let shown = pending.packages.iter().take(SHOWN_MAX);
    text.push_str(&table(&["PACKAGE", "INSTALLED", "OFFERED", "FOR"], shown.clone().map(row), style));
    let more = (total as usize).saturating_sub(shown.len());
    if more > 0 {
        text.push_str(&format!("{more} more are not shown; `--output json` names up to 200.\n"));
    }
    text
}

fn row(package: &PendingPackage) -> Vec<super::table::Field> {
    let kind = match package.kind {
        UpgradeKind::Security => "security",
        UpgradeKind::Plain => "",
    };
    vec![
        plain(package.name.as_str()),
        plain(package.installed.as_ref().map_or("new", PackageText::as_str)),
        plain(package.offered.as_str()),
        plain(kind),
    ]
}

fn restart(section: &UpdatesSection) -> String {
    let text = |text: Option<&PackageText>| clean(text.map_or("another", PackageText::as_str));
    let reasons = section.restart.iter().map(|reason| match reason {
        RestartReason::NewerKernel => format!(
            "kernel {} runs and {} is installed",
            text(section.running_kernel.as_ref()),
            text(section.newest_kernel.as_ref())
        ),
        RestartReason::Announced => "upgraded packages ask for it".to_owned(),
    });
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() { String::new() } else { format!("A restart is due: {}.\n", reasons.join("; ")) }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::screen::Colour;

    const PLAIN: Style = Style { columns: None, colour: Colour::Off };

    fn show(section: serde_json::Value) -> String {
        let section: UpdatesSection = serde_json::from_value(section).unwrap();
        updates(&section, "2026-11-21T03:00:00Z".parse().unwrap(), PLAIN)
    }

    #[test]
    fn what_waits_and_why_a_restart_is_due() {
        let package = |n: u32, kind: &str| json!({ "name": format!("lib{n}"), "installed": "1.0-1", "offered": "1.0-2", "origin": "debian", "kind": kind });
        let mut packages = vec![package(0, "security")];
        packages.extend((1..14).map(|n| package(n, "plain")));
        packages[1]["installed"] = serde_json::Value::Null;
        let section = json!({
            "read_at": "2026-11-21T02:50:00Z", "lists_changed_at": "2026-11-20T03:00:00Z",
            "pending": { "debian": 12, "proxmox": 2, "other": 0, "security": 1, "removals": 1, "packages": packages },
            "running_kernel": "6.8.12-4-pve", "newest_kernel": "6.8.12-9-pve", "restart": ["newer_kernel", "announced"]
        });
        assert_snapshot!(show(section));
    }

    #[test]
    fn nothing_waits_or_nothing_is_known() {
        let none = json!({ "debian": 0, "proxmox": 0, "other": 0, "security": 0, "removals": 0 });
        let at = "2026-11-21T02:50:00Z";
        assert_eq!(
            show(json!({ "read_at": at, "lists_changed_at": at, "pending": none })),
            "Upgrades: none waits.\nPackages were read 10 min ago, their lists changed 10 min ago.\n"
        );
        assert_eq!(
            show(json!({ "read_at": "2026-11-20T03:00:00Z", "failure": "it is broken" })),
            "Upgrades: unknown, since apt could not say: it is broken.\nPackages were read 24 h ago, there are no package lists: \
             older than it should be, see `systemctl status holdfast-updates.timer` on the host.\n"
        );
    }
}
