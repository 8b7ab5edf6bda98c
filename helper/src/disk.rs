//! Block devices of this machine from `/sys`, and their transports.
//!
//! Only kinds that hold their own hardware are known at all. Device-mapper, md, nbd, zvols, zram, iSCSI and whatever
//! comes next have no [`Transport`]: a guest can write any UUID into a disk of its own, and those devices may be its.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, FileType, Mode, OFlags, major, minor};
use rustix::io::Errno;
use serde::Deserialize;

use crate::names::{PartUuid, Serial};
use crate::procfs::attribute;
use crate::reply::{Refusal, refusal};
use crate::{mountinfo, openat, probe};

const CLASS: &str = "/sys/class/block";

/// How a disk is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    Usb,
    Sata,
    Nvme,
    Scsi,
    Virtio,
    Mmc,
    /// A file. It is never in the policy of a host with guests; its serial number is the file's path.
    LoopForTestsOnly,
}

/// A disk or a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// As the kernel calls it, such as `sdb1`.
    pub name: String,
    pub number: String,
    /// The name of the whole disk that it is a part of, or its own.
    pub whole: String,
    /// Its number there, and its first sector of 512 bytes.
    pub partition: Option<(u32, u64)>,
    pub transport: Option<Transport>,
    /// The whole disk's folder in `/sys/devices`.
    folder: PathBuf,
}

/// All block devices with something in them.
pub fn all() -> Result<Vec<Disk>, Refusal> {
    let failed = |error: std::io::Error| refusal!(Env, "cannot list {CLASS}: {error}");
    let mut disks = Vec::new();
    for entry in std::fs::read_dir(CLASS).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        // A device that went away meanwhile is none.
        disks.extend(name.to_str().and_then(Disk::read));
    }
    disks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(disks)
}

impl Disk {
    fn read(name: &str) -> Option<Self> {
        // The kernel's link goes up to `/sys` and down again: one call instead of one for each part of the path.
        let link = std::fs::read_link(Path::new(CLASS).join(name)).ok()?;
        let folder = Path::new("/sys").join(link.strip_prefix("../..").ok()?);
        attribute(folder.join("size")).filter(|sectors| sectors != "0")?;
        let number = attribute(folder.join("dev"))?;
        let number_in = |name: &str| attribute(folder.join(name))?.parse::<u64>().ok();
        let partition = match number_in("partition") {
            Some(number) => Some((u32::try_from(number).ok()?, number_in("start")?)),
            None => None,
        };
        let transport = transport(folder.to_str()?);
        let folder = if partition.is_some() { folder.parent()?.to_owned() } else { folder };
        let whole = folder.file_name()?.to_str()?.to_owned();
        Some(Self { name: name.to_owned(), number, whole, partition, transport, folder })
    }

    /// Where its node is.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    /// Opens its node for reading, and makes sure that it is this device.
    pub fn open(&self) -> Result<File, Errno> {
        node(&self.name, &self.number, OFlags::empty()).map(File::from)
    }

    /// Whether no part of the whole disk is in use: no mount, no pool, no volume group.
    pub fn whole_is_free(&self) -> Result<(), Errno> {
        let number = attribute(self.folder.join("dev")).ok_or(Errno::NODEV)?;
        node(&self.whole, &number, OFlags::EXCL).map(drop)
    }

    /// What the partition table of its disk calls it.
    pub fn part_uuid(&self) -> Option<PartUuid> {
        let (number, start) = self.partition?;
        let folder = &self.folder;
        let whole = node(&self.whole, &attribute(folder.join("dev"))?, OFlags::empty()).ok()?;
        let block_size = attribute(folder.join("queue/logical_block_size"))?.parse().ok()?;
        probe::part_uuid(&File::from(whole), block_size, number, start)
    }

    /// What its drive, or the enclosure around it, says its serial number is.
    pub fn serials(&self) -> Vec<Serial> {
        let folder = &self.folder;
        let mut texts: Vec<String> = Vec::new();
        for name in ["serial", "device/serial", "device/wwid", "wwid", "loop/backing_file"] {
            texts.extend(attribute(folder.join(name)));
        }
        // Page 0x80 of SCSI: four bytes of head, then the number.
        let page = std::fs::read(folder.join("device/vpd_pg80")).unwrap_or_default();
        texts.extend(page.get(4..).map(|text| String::from_utf8_lossy(text).trim().to_owned()));
        let enclosure = folder.ancestors().find(|above| above.join("idVendor").exists());
        texts.extend(enclosure.and_then(|above| attribute(above.join("serial"))));
        texts.into_iter().filter_map(|text| text.try_into().ok()).collect()
    }
}

/// Opens a node of `/dev` that is a block device of this number.
fn node(name: &str, number: &str, more: OFlags) -> Result<OwnedFd, Errno> {
    let folder = rustix::fs::open("/dev", openat::FOLDER, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | more;
    let node = openat::open(folder, name, flags)?;
    let stat = rustix::fs::fstat(&node)?;
    let block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    if block && number_of(stat.st_rdev) == number { Ok(node) } else { Err(Errno::NODEV) }
}

/// A device's number as the kernel writes it in its tables.
pub fn number_of(device: Dev) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// From the folder in `/sys/devices`, whose every component a bus of the kernel named.
fn transport(folder: &str) -> Option<Transport> {
    use Transport::{LoopForTestsOnly, Mmc, Nvme, Sata, Scsi, Usb, Virtio};
    let named = |bus: &str| {
        let numbered = |rest: &str| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit());
        folder.split('/').any(|part| part == bus || part.strip_prefix(bus).is_some_and(numbered))
    };
    // iSCSI and Fibre Channel: disks of other machines.
    if named("session") || folder.contains("/rport-") {
        return None;
    }
    let buses: &[(&str, Transport)] = if folder.starts_with("/sys/devices/virtual/") {
        &[("nvme-subsystem", Nvme), ("loop", LoopForTestsOnly)]
    } else {
        &[("usb", Usb), ("nvme", Nvme), ("ata", Sata), ("virtio", Virtio), ("mmc_host", Mmc), ("host", Scsi)]
    };
    buses.iter().find(|(bus, _)| named(bus)).map(|(_, transport)| *transport)
}

/// The whole disks that hold `/`; none where its file system does not report them, as with ZFS.
pub fn root_disks() -> Result<Option<BTreeSet<String>>, Refusal> {
    let stat = rustix::fs::stat("/").map_err(|error| refusal!(Env, "cannot stat /: {error}"))?;
    let mut number = number_of(stat.st_dev);
    if major(stat.st_dev) == 0 {
        let source =
            mountinfo::own()?.into_iter().rfind(|entry| entry.point == "/").map(|entry| entry.source);
        match source.filter(|source| source.starts_with("/dev/")).map(rustix::fs::stat) {
            Some(Ok(device)) if FileType::from_raw_mode(device.st_mode) == FileType::BlockDevice => {
                number = number_of(device.st_rdev);
            }
            _ => return Ok(None),
        }
    }
    let mut disks = BTreeSet::new();
    let mut folders = vec![Path::new("/sys/dev/block").join(number)];
    while let Some(folder) = folders.pop() {
        let Ok(folder) = std::fs::canonicalize(folder) else { return Ok(None) };
        let whole = if folder.join("partition").exists() { folder.parent() } else { Some(folder.as_path()) };
        disks.extend(whole.and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned));
        // What a mapped device is made of, down to the disks.
        for slave in std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten() {
            folders.push(slave.path());
        }
    }
    Ok(Some(disks))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Disk {
        pub fn for_test(name: &str, whole: &str) -> Self {
            let (name, whole, folder) = (name.to_owned(), whole.to_owned(), PathBuf::new());
            let (number, transport) = ("8:1".to_owned(), Some(Transport::Usb));
            Self { name, number, whole, partition: None, transport, folder }
        }
    }

    #[test]
    fn only_hardware_of_this_machine_has_a_transport() {
        let pci = "/sys/devices/pci0000:00/0000:00:14.0";
        for (path, expected) in [
            ("/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb/sdb1", Some(Transport::Usb)),
            ("/ata1/host0/target0:0:0/0:0:0:0/block/sda", Some(Transport::Sata)),
            ("/nvme/nvme0/nvme0n1/nvme0n1p2", Some(Transport::Nvme)),
            ("/host2/target2:0:0/2:0:0:0/block/sdc", Some(Transport::Scsi)),
            ("/virtio1/block/vda", Some(Transport::Virtio)),
            ("/virtio3/host2/target2:0:0/2:0:0:0/block/sdc", Some(Transport::Virtio)),
            ("/mmc_host/mmc0/mmc0:0001/block/mmcblk0", Some(Transport::Mmc)),
            ("/host7/session1/target7:0:0/7:0:0:1/block/sdd", None),
            ("/host3/rport-3:0-0/target3:0:0/3:0:0:0/block/sde", None),
        ] {
            assert_eq!(transport(&format!("{pci}{path}")), expected, "{path}");
        }
        for (name, expected) in [
            ("block/dm-3", None),
            ("block/md0", None),
            ("block/md127/md127p1", None),
            ("block/nbd0", None),
            ("block/zd16", None),
            ("block/zd16/zd16p1", None),
            ("block/zram0", None),
            ("block/ram0", None),
            ("block/drbd0", None),
            ("block/loop7", Some(Transport::LoopForTestsOnly)),
            ("block/loop7/loop7p1", Some(Transport::LoopForTestsOnly)),
            ("nvme-subsystem/nvme-subsys0/nvme0n1", Some(Transport::Nvme)),
        ] {
            assert_eq!(transport(&format!("/sys/devices/virtual/{name}")), expected, "{name}");
        }
        for other in ["/sys/devices/rbd/0/block/rbd0", "/sys/devices/platform/host9/session2/x/block/sdx"] {
            assert_eq!(transport(other), None, "{other}");
        }
    }

    #[test]
    fn disks_of_this_machine_are_listed() {
        let disks = all().unwrap();
        assert!(disks.iter().all(|disk| disk.number.contains(':')), "{disks:?}");
        root_disks().unwrap();
    }
}
