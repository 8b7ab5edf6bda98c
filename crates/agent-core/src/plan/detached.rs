//! Detached volumes of a guest that should have volumes.
//!
//! In: the document, our record of the guest, its configuration. Out: which of our volumes are not mounted, and what a
//! person does about it. Nothing new is made in the place of one, and the guest is not started without it: its programs
//! would begin with an empty folder, and backups would hold that. Deliberately absent: attaching it again, since the
//! configuration does not say where it was mounted.

use holdfast_protocol::desired::{DesiredGuest, DesiredVolume};

use super::made::Made;
use crate::model::observed::{BackupFlag, GuestFacts};
use crate::model::records::VolumeId;

/// Volumes of the document at whose path nothing is mounted.
pub(super) fn missing<'a>(
    guest: &'a DesiredGuest,
    facts: &GuestFacts,
) -> impl Iterator<Item = &'a DesiredVolume> {
    let mounted = |path: &str| facts.mounts.values().any(|mount| mount.path == path);
    guest.volumes.iter().filter(move |volume| !mounted(volume.mount.as_str()))
}

/// Volumes that we made for the guest and that lie detached, while the document misses some.
pub(super) fn own<'a>(guest: &DesiredGuest, made: &Made<'a>, facts: &'a GuestFacts) -> Vec<&'a VolumeId> {
    if missing(guest, facts).next().is_none() {
        return Vec::new();
    }
    made.volumes.intersection(&facts.detached).collect()
}

/// The report to the operator; none, where no volume of ours is detached.
pub(super) fn text(guest: &DesiredGuest, made: &Made<'_>, facts: &GuestFacts) -> Option<String> {
    let own = own(guest, made, facts);
    let (vmid, first) = (made.vmid, own.first()?);
    let volumes: Vec<&DesiredVolume> = missing(guest, facts).collect();
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    let stored: Vec<&str> = own.iter().map(|volume| volume.as_str()).collect();
    let slot = (0..=u8::MAX).find(|slot| !facts.mounts.contains_key(&u16::from(*slot)))?;
    let line = |volume: &DesiredVolume| {
        let flag = if BackupFlag::of(&volume.kind) == BackupFlag::On { ",backup=1" } else { "" };
        // Proxmox attaches nothing to a guest that it protects. The agent puts protection back by itself.
        format!(
            "`pct set {vmid} -protection 0 && pct set {vmid} -mp{slot} {first},mp={}{flag}`",
            volume.mount
        )
    };
    let remedy = match volumes.as_slice() {
        [one] if own.len() == 1 => format!("run {} on the node", line(one)),
        several => {
            let one = several.first().map(|volume| line(volume)).unwrap_or_default();
            format!("look which is which, then attach each on the node, as with {one}")
        }
    };
    Some(format!(
        "not mounted: volume {}; detached with its data: {}; nothing new is made in its place, and the guest is not started \
         without it: {remedy}",
        names.join(", "),
        stored.join(", ")
    ))
}
