//! Proxmox's flag that takes a mount into backups.

use holdfast_protocol::desired::{BulkBackup, VolumeKind};
use serde::{Deserialize, Serialize};

/// Whether Proxmox takes a mount into the guest's backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupFlag {
    On,
    /// It does not.
    Off,
}

impl BackupFlag {
    /// For a volume of the document. Data for a target of its own is excluded from other backups call by call: Proxmox
    /// takes a change of the flag from the next stop on (`docs/adr/0031`).
    #[must_use]
    pub const fn of(kind: &VolumeKind) -> Self {
        match kind {
            VolumeKind::Hot | VolumeKind::Bulk(BulkBackup::BackupTo(_)) => Self::On,
            VolumeKind::Bulk(BulkBackup::None(_)) => Self::Off,
        }
    }
}
