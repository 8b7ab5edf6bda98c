//! The id of a volume or backup on a Proxmox storage.
//!
//! What comes in: the name as Proxmox wrote it. What goes out: what the name alone says of it. Deliberately absent: whether
//! anything is there.

use std::fmt;

use holdfast_protocol::id::Vmid;
use serde::{Deserialize, Serialize};

/// The name of a volume, as Proxmox writes it: `storage:path-on-it`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VolumeId(String);

impl VolumeId {
    /// Takes the name as Proxmox wrote it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as Proxmox wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// On which storage it is.
    #[must_use]
    pub fn storage(&self) -> Option<&str> {
        self.0.split_once(':').map(|(storage, _)| storage)
    }

    /// Under which VMID Proxmox keeps it, where it is a container's backup: by its name, as a file or on a backup server.
    #[must_use]
    pub fn backup_vmid(&self) -> Option<Vmid> {
        let (_, name) = self.0.split_once(':')?;
        let rest = name.strip_prefix("backup/")?;
        let number = match rest.strip_prefix("ct/") {
            Some(rest) => rest.split_once('/')?.0,
            None => rest.strip_prefix("vzdump-lxc-")?.split_once('-')?.0,
        };
        number.parse::<u32>().ok()?.try_into().ok()
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_backup_says_its_vmid() {
        for (name, vmid) in [
            ("backup2:backup/vzdump-lxc-300-2026_11_21-04_02_15.tar.zst", Some(300)),
            ("off1:backup/ct/20001/2026-11-21T04:36:17Z", Some(20_001)),
            ("off1:backup/vm/20001/2026-11-21T04:36:17Z", None),
            ("backup2:backup/vzdump-lxc-many-2026.tar.zst", None),
            ("tank:300/vm-300-disk-0.raw", None),
            ("backup/ct/300/2026", None),
        ] {
            assert_eq!(VolumeId::new(name).backup_vmid().map(|vmid| vmid.number()), vmid, "{name}");
        }
    }
}
