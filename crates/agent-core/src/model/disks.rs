//! The disks of a guest, as recorded with its backup.
//!
//! What comes in: storages, sizes and paths. What goes out: the same, and how much of it is on each storage.
//! Deliberately absent: mount options. A guest that has any is not written down, since they would be lost.

use std::collections::BTreeMap;

use holdfast_protocol::id::{MountPath, StorageName};
use holdfast_protocol::size::DiskGib;
use serde::{Deserialize, Serialize};

use super::backup_flag::BackupFlag;

/// All disks of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disks {
    /// The root disk.
    pub rootfs: RootDisk,
    pub mounts: Vec<MountDisk>,
}

/// The root disk. Every backup holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootDisk {
    /// Where it is stored.
    pub storage: StorageName,
    /// How large it is, rounded up.
    pub size: DiskGib,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountDisk {
    /// The number of its mount.
    pub slot: u8,
    /// Where it is mounted.
    pub path: MountPath,
    /// Where it is stored.
    pub storage: StorageName,
    /// How large it is, rounded up.
    pub size: DiskGib,
    /// Whether Proxmox takes it into the guest's backups.
    pub backup: BackupFlag,
    /// Whether this backup holds what was on it.
    pub content: Content,
}

/// Whether a backup holds what was on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// It does not: the disk comes back empty.
    Empty,
    Held,
}

/// The data on one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The size of all disks there.
    pub bytes: u64,
    /// Whether the backup holds anything of it.
    pub content: Content,
}

impl Disks {
    /// The data by storage.
    #[must_use]
    pub fn shares(&self) -> BTreeMap<&StorageName, Share> {
        let root = (&self.rootfs.storage, self.rootfs.size, Content::Held);
        let mounts = self.mounts.iter().map(|mount| (&mount.storage, mount.size, mount.content));
        let mut shares = BTreeMap::new();
        for (storage, size, content) in mounts.chain([root]) {
            let share = shares.entry(storage).or_insert(Share { bytes: 0, content });
            share.bytes += u64::from(size.get()) << 30;
            share.content = share.content.max(content);
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_storage_has_the_disks_that_lie_there() {
        let mount = |slot: u8, storage: &str, content| MountDisk {
            slot,
            path: format!("/srv/{slot}").parse().unwrap(),
            storage: storage.parse().unwrap(),
            size: DiskGib::try_from(10).unwrap(),
            backup: BackupFlag::On,
            content,
        };
        let disks = Disks {
            rootfs: RootDisk { storage: "fast".parse().unwrap(), size: DiskGib::try_from(2).unwrap() },
            mounts: vec![
                mount(0, "fast", Content::Empty),
                mount(1, "slow", Content::Held),
                mount(2, "slow", Content::Empty),
                mount(3, "shelf", Content::Empty),
            ],
        };
        let shares: Vec<_> = disks
            .shares()
            .into_iter()
            .map(|(storage, share)| (storage.as_str(), share.bytes >> 30, share.content))
            .collect();
        assert_eq!(
            shares,
            [("fast", 12, Content::Held), ("shelf", 10, Content::Empty), ("slow", 20, Content::Held)]
        );
    }
}
