//! The check that no only copy is on a released target.
//!
//! What comes in: where guests' volumes are, and what guests are promised. What goes out: every reason against it, in
//! words; none is a yes. Pure. Deliberately absent: backups, which the ledger counts in the transaction that lets the
//! target go (`agent-store`).

use holdfast_protocol::desired::{BulkBackup, VolumeKind};
use holdfast_protocol::id::{GuestName, StorageName, TargetName};
use holdfast_protocol::protection::Protection;

use crate::model::records::VolumeId;

/// What is known of one guest.
#[derive(Clone, Copy, Debug)]
pub struct KeptCopies<'a> {
    pub name: &'a GuestName,
    /// One of its volumes, or nothing.
    pub volume: Option<&'a VolumeId>,
    /// What is promised about its backups, or nothing.
    pub promise: Option<&'a Protection>,
}

/// Every reason against letting it go.
#[must_use]
pub fn against<'a>(target: &TargetName, guests: impl IntoIterator<Item = KeptCopies<'a>>) -> Vec<String> {
    let mut reasons: Vec<String> = guests
        .into_iter()
        .flat_map(|guest| {
            let lies = guest.volume.filter(|volume| lies_on(volume, target));
            let volume = lies.map(|volume| format!("volume {volume} of guest {} lies on it", guest.name));
            let sent = guest.promise.is_some_and(|promise| goes_to(promise, target.as_str()));
            let promise = sent.then(|| format!("backups of guest {} are promised to it", guest.name));
            volume.into_iter().chain(promise)
        })
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

/// Whether a volume is on a target: Proxmox names it by the storage, whole, up to the colon.
#[must_use]
pub fn lies_on(volume: &VolumeId, target: &TargetName) -> bool {
    volume.as_str().split_once(':').is_some_and(|(storage, _)| storage == target.as_str())
}

fn goes_to(promise: &Protection, target: &str) -> bool {
    let is = |storage: &StorageName| storage.as_str() == target;
    let tiers = &promise.tiers;
    tiers.local.as_ref().is_some_and(|tier| is(&tier.target))
        || tiers.off_site.as_ref().is_some_and(|tier| is(&tier.backup.target))
        || promise.volumes.iter().any(|volume| match &volume.kind {
            VolumeKind::Bulk(BulkBackup::BackupTo(storage)) => is(storage),
            VolumeKind::Hot | VolumeKind::Bulk(BulkBackup::None(_)) => false,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn promise(to: &str) -> Protection {
        let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
        let tier = json!({ "target": to, "schedule": schedule, "retention": { "keep": { "last": 3 } },
            "consistency": "crash" });
        serde_json::from_value(json!({ "tiers": { "local": tier }, "volumes": [] })).unwrap()
    }

    #[test]
    fn what_lies_on_it_or_is_promised_to_it_keeps_it() {
        let (usb, name): (TargetName, GuestName) = ("usb1".parse().unwrap(), "web-1".parse().unwrap());
        let against = |volume: &str, to: &str| {
            let (volume, promise) = (VolumeId::new(volume), promise(to));
            super::against(&usb, [KeptCopies { name: &name, volume: Some(&volume), promise: Some(&promise) }])
        };
        assert_eq!(against("tank:300/vm-300-disk-0.raw", "backup2"), Vec::<String>::new());
        // Names are compared whole.
        assert_eq!(against("usb12:300/vm-300-disk-0.raw", "usb"), Vec::<String>::new());
        assert!(against("usb1:300/vm-300-disk-1.raw", "backup2")[0].contains("web-1 lies on it"));
        assert!(against("tank:300/vm-300-disk-0.raw", "usb1")[0].contains("promised to it"));
        assert_eq!(against("usb1:300/vm-300-disk-1.raw", "usb1").len(), 2);
        let bulk = json!([{ "name": "media", "kind": { "bulk": { "backup_to": "usb1" } } }]);
        let bulk: Protection = serde_json::from_value(json!({ "tiers": {}, "volumes": bulk })).unwrap();
        let kept = KeptCopies { name: &name, volume: None, promise: Some(&bulk) };
        assert_eq!(super::against(&usb, [kept]).len(), 1);
    }
}
