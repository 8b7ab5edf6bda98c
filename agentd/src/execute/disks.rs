//! A guest's disks, recorded with its backup.
//!
//! In: the guest's configuration, and which mounts the backup holds. Out: its disks, or nothing when one of them could
//! not be written out again exactly. This is so for a path of the host, an option that we do not write, or an unknown
//! size. Such a guest comes back as its archive's configuration says.

use holdfast_protocol::id::StorageName;
use holdfast_protocol::size::DiskGib;

use crate::model::disks::{Content, Disks, MountDisk, RootDisk};
use crate::model::records::HeldMounts;
use crate::port::pve::GuestConfig;
use crate::port::pve::volume::{Backing, Disk};

/// The record that is written.
pub(super) fn then(config: &GuestConfig, held: &HeldMounts) -> Option<Disks> {
    let (storage, size) = plain(config.rootfs.as_ref()?)?;
    // A disk that was requested and not made is in no archive.
    let made = config.mounts.iter().filter(|(_, disk)| !matches!(disk.backing, Backing::Goal(_)));
    let mounts = made.map(|(slot, disk)| mount(*slot, disk, held)).collect::<Option<_>>()?;
    Some(Disks { rootfs: RootDisk { storage, size }, mounts })
}

fn mount(slot: u16, disk: &Disk, held: &HeldMounts) -> Option<MountDisk> {
    let (storage, size) = plain(disk)?;
    let path = disk.mount.as_ref()?;
    let content = if held.holds.contains(path) { Content::Held } else { Content::Empty };
    let (slot, path) = (u8::try_from(slot).ok()?, path.parse().ok()?);
    Some(MountDisk { slot, path, storage, size, backup: disk.in_backup.flag(), content })
}

/// The storage of a volume and its size in whole GiB, if it has no other options. Volumes without a size are plain
/// folders: a disk in their place could be too small for what they hold.
fn plain(disk: &Disk) -> Option<(StorageName, DiskGib)> {
    let storage = disk.volume()?.storage().parse().ok()?;
    let bytes = disk.size.filter(|bytes| *bytes > 0)?;
    let gib = u32::try_from(bytes.div_ceil(1 << 30)).ok()?;
    disk.options.is_empty().then_some(())?;
    Some((storage, DiskGib::try_from(gib).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::observed::BackupFlag;

    fn read(rest: serde_json::Value) -> Option<Disks> {
        let mut config = json!({ "digest": "aa".repeat(20), "rootfs": "tank:300/vm-300-disk-0.raw,size=2G" });
        config.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let holds = vec!["/srv/db".to_owned()];
        then(&GuestConfig::read(&config).unwrap(), &HeldMounts { holds, left_out: Vec::new() })
    }

    #[test]
    fn each_disk_is_written_down_with_its_place() {
        let disks = read(json!({
            "mp0": "tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1,size=1536M",
            "mp3": "slow:300/vm-300-disk-0.raw,mp=/srv/media,size=1T",
            "mp4": "slow:8,mp=/srv/pending,backup=1",
        }))
        .unwrap();
        let mount = |slot, name: &str, storage: &str, gib: u32, backup, content| MountDisk {
            slot,
            path: format!("/srv/{name}").parse().unwrap(),
            storage: storage.parse().unwrap(),
            size: DiskGib::try_from(gib).unwrap(),
            backup,
            content,
        };
        let size = DiskGib::try_from(2).unwrap();
        assert_eq!(disks.rootfs, RootDisk { storage: "tank".parse().unwrap(), size });
        assert_eq!(
            disks.mounts,
            [
                mount(0, "db", "tank", 2, BackupFlag::On, Content::Held),
                mount(3, "media", "slow", 1024, BackupFlag::Off, Content::Empty),
            ]
        );
    }

    #[test]
    fn what_could_not_be_written_out_again_is_not_written_down() {
        assert!(read(json!({})).is_some());
        for (key, value) in [
            ("rootfs", "tank:300/vm-300-disk-0.raw,mountoptions=noatime,size=2G"),
            ("rootfs", "tank:300/subvol-300-disk-0.subvol,size=0T"),
            ("rootfs", "tank:300/vm-300-disk-0.raw"),
            ("mp0", "/srv/of-the-node,mp=/srv/db"),
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv/db,ro=1,size=1G"),
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv/my data,size=1G"),
            ("mp0", "tank:300/subvol-300-disk-1.subvol,mp=/srv/db,size=0T"),
        ] {
            assert_eq!(read(json!({ key: value })), None, "{key}: {value}");
        }
    }
}
