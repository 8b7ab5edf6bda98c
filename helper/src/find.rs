//! Device selection: exactly one device that matches a target.
//!
//! It is on a bus that the policy allows, and has the UUID, and the serial number or partition UUID of the policy.
//!
//! In: a survey of the machine, taken once. Out: one device, or why there is none. The choice itself is pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::{self, Disk};
use crate::names::{PartUuid, Serial};
use crate::policy::{Policy, Target};
use crate::probe::{self, Superblock};
use crate::reply::{Refusal, refusal};

/// Where udev links UUIDs to devices. It is not trusted, only used to explain why nothing was found.
const HINTS: &str = "/dev/disk/by-uuid";
/// How many of the present disks are named when a disk is missing.
const NAMED_MAX: usize = 8;

/// The devices of this machine at one moment.
#[derive(Debug)]
pub struct Survey {
    candidates: Vec<Candidate>,
    /// Devices on allowed buses that could not be read.
    unread: Vec<String>,
    /// UUID → device, of those kinds that are never opened.
    hinted: BTreeMap<String, String>,
    /// The disks beneath `/`, where it says.
    root: Option<BTreeSet<String>>,
}

/// A device with the mark of a file system.
#[derive(Clone, Debug)]
struct Candidate {
    disk: Disk,
    superblock: Superblock,
    part_uuid: Option<PartUuid>,
    serials: Vec<Serial>,
}

impl Survey {
    /// Reads the beginning of every device on an allowed bus, and opens no other.
    pub fn take(policy: &Policy) -> Result<Self, Refusal> {
        let allowed =
            |disk: &Disk| disk.transport.is_some_and(|transport| policy.transports.contains(&transport));
        let (allowed_disks, others): (Vec<Disk>, Vec<Disk>) = disk::all()?.into_iter().partition(allowed);
        let (mut seen, mut unread) = (Vec::new(), Vec::new());
        for disk in allowed_disks {
            let read = disk.open().map_err(std::io::Error::from).and_then(|file| probe::superblocks(&file));
            let Ok(superblocks) = read else {
                unread.push(disk.name);
                continue;
            };
            for superblock in superblocks {
                let (disk, part_uuid, serials) = (disk.clone(), disk.part_uuid(), disk.serials());
                seen.push(Candidate { disk, superblock, part_uuid, serials });
            }
        }
        Ok(Self { candidates: seen, unread, hinted: hints(&others), root: disk::root_disks()? })
    }

    /// The one device that a target means.
    pub fn find(&self, target: &Target) -> Result<&Disk, Refusal> {
        let same = |seen: &&Candidate| seen.superblock.uuid == target.uuid;
        let same: Vec<&Candidate> = self.candidates.iter().filter(same).collect();
        let at = format!("target {}", target.name);
        let one = match same.as_slice() {
            [one] => *one,
            [] => return Err(self.not_found(target)),
            many => {
                let names = many.iter().map(|seen| seen.disk.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(refusal!(DeviceAmbiguous, "{at}: {names} have its UUID: detach the copies"));
            }
        };
        let name = &one.disk.name;
        if one.superblock.filesystem != target.filesystem {
            let (holds, wanted) = (one.superblock.filesystem.as_str(), target.filesystem.as_str());
            return Err(refusal!(DeviceClass, "{at}: {name} holds {holds}, not {wanted}"));
        }
        if let Some(fault) = one.superblock.fault {
            return Err(refusal!(DeviceClass, "{at}: {name} is not mounted: {fault}"));
        }
        if self.root.as_ref().is_some_and(|disks| disks.contains(&one.disk.whole)) {
            return Err(refusal!(DeviceClass, "{at}: {name} is on the disk of the root file system"));
        }
        let other_part = target.part_uuid.is_some() && target.part_uuid != one.part_uuid;
        if other_part || target.serial.as_ref().is_some_and(|serial| !one.serials.contains(serial)) {
            let what = if other_part { "partition UUID" } else { "serial number" };
            return Err(refusal!(DeviceAmbiguous, "{at}: {name} has its UUID but not its {what}"));
        }
        Ok(&one.disk)
    }

    /// Whether it must still be shown that a disk has nothing to do with `/`.
    pub const fn root_is_hidden(&self) -> bool {
        self.root.is_none()
    }

    fn not_found(&self, target: &Target) -> Refusal {
        let (at, uuid) = (format!("target {}", target.name), &target.uuid);
        if let Some(name) = self.hinted.get(uuid.as_str()) {
            return refusal!(DeviceClass, "{at}: its UUID is on {name}, not of an allowed kind");
        }
        let seen = self.candidates.iter().map(|seen| seen.disk.name.clone());
        let unread = self.unread.iter().map(|name| format!("{name} (cannot be read)"));
        let there: Vec<String> = unread.chain(seen).take(NAMED_MAX).collect();
        let there = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
        refusal!(DeviceAbsent, "{at}: no disk with UUID {uuid} is attached, but {there} (`lsblk -f`)")
    }
}

fn hints(others: &[Disk]) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(HINTS).into_iter().flatten().flatten();
    let hinted = entries.filter_map(|entry| {
        let link = std::fs::read_link(entry.path()).ok()?;
        let name = link.file_name()?.to_str()?;
        let disk = others.iter().find(|disk| disk.name == name)?;
        Some((entry.file_name().into_string().ok()?, disk.name.clone()))
    });
    hinted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::FsUuid;
    use crate::probe::FileSystem;

    const UUID: &str = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b";

    fn target(identity: &str) -> Target {
        toml::from_str(&format!("name = 'usb1'\nuuid = '{UUID}'\nfilesystem = 'ext4'\n{identity}")).unwrap()
    }

    fn candidate(name: &str, whole: &str) -> Candidate {
        let uuid = FsUuid::try_from(UUID.to_owned()).unwrap();
        Candidate {
            disk: Disk::for_test(name, whole),
            superblock: Superblock { filesystem: FileSystem::Ext4, uuid, fault: None },
            part_uuid: Some("1234abcd-01".to_owned().try_into().unwrap()),
            serials: vec!["WD-1234".to_owned().try_into().unwrap()],
        }
    }

    fn survey(seen: Vec<Candidate>) -> Survey {
        let root = Some(["sda".to_owned()].into());
        Survey { candidates: seen, unread: Vec::new(), hinted: BTreeMap::new(), root }
    }

    fn code(survey: &Survey, identity: &str) -> &'static str {
        survey.find(&target(identity)).err().map_or("found", |refusal| refusal.code.as_str())
    }

    #[test]
    fn a_device_with_all_attributes_is_found() {
        let whole = survey(vec![candidate("sdb1", "sdb")]);
        for identity in [
            "serial = 'WD-1234'",
            "part_uuid = '1234abcd-01'",
            "serial = 'WD-1234'\npart_uuid = '1234abcd-01'",
        ] {
            assert_eq!(code(&whole, identity), "found", "{identity}");
        }
        for identity in [
            "serial = 'WD-123'",
            "serial = 'WD-12345'",
            "part_uuid = '1234abcd-02'",
            "serial = 'WD-1234'\npart_uuid = '1234abcd-02'",
        ] {
            assert_eq!(code(&whole, identity), "E_DEVICE_AMBIGUOUS", "{identity}");
        }
    }

    #[test]
    fn other_devices_are_refused() {
        let serial = "serial = 'WD-1234'";
        assert_eq!(code(&survey(Vec::new()), serial), "E_DEVICE_ABSENT");
        assert_eq!(
            code(&survey(vec![candidate("sdb1", "sdb"), candidate("sdc1", "sdc")]), serial),
            "E_DEVICE_AMBIGUOUS"
        );
        assert_eq!(code(&survey(vec![candidate("sda3", "sda")]), serial), "E_DEVICE_CLASS", "the root disk");
        let mut other = candidate("sdb1", "sdb");
        other.superblock.filesystem = FileSystem::Xfs;
        assert_eq!(code(&survey(vec![other]), serial), "E_DEVICE_CLASS");
        let mut faulty = candidate("sdb1", "sdb");
        faulty.superblock.fault = Some("it reaches out");
        assert_eq!(code(&survey(vec![faulty]), serial), "E_DEVICE_CLASS");
        let mut nameless = candidate("sdb1", "sdb");
        (nameless.part_uuid, nameless.serials) = (None, Vec::new());
        assert_eq!(code(&survey(vec![nameless.clone()]), serial), "E_DEVICE_AMBIGUOUS");
        assert_eq!(code(&survey(vec![nameless]), "part_uuid = '1234abcd-01'"), "E_DEVICE_AMBIGUOUS");
        let mut other = candidate("sdc1", "sdc");
        other.superblock.uuid = FsUuid::try_from(UUID.replace("0b5f", "1b5f")).unwrap();
        let mut without = survey(vec![other]);
        without.unread.push("sdd".to_owned());
        let message = |survey: &Survey| survey.find(&target(serial)).unwrap_err().message;
        assert_eq!(
            message(&without),
            format!(
                "target usb1: no disk with UUID {UUID} is attached, but sdd (cannot be read), sdc1 (`lsblk -f`)"
            )
        );
        assert!(message(&survey(Vec::new())).ends_with("is attached, but nothing (`lsblk -f`)"));
        let mut hinted = survey(Vec::new());
        hinted.hinted.insert(UUID.to_owned(), "dm-3".to_owned());
        assert_eq!(code(&hinted, serial), "E_DEVICE_CLASS");
        hinted.candidates.push(candidate("sdb1", "sdb"));
        assert_eq!(code(&hinted, serial), "found", "a guest's copy of a UUID keeps nobody from their disk");
    }
}
