//! Which device is the one that the policy means: exactly one, on a bus that the policy allows, with the UUID and with
//! what only that very disk has.
//!
//! In: a survey of the machine, taken once. Out: one device, or why there is none. The choice itself is pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::{self, Disk};
use crate::names::{PartUuid, Serial};
use crate::policy::{Policy, Target};
use crate::probe::{self, Mark};
use crate::reply::{Refusal, refusal};

/// Where udev writes down which device wears which UUID. It is never believed, but it may say why nothing was found.
const HINTS: &str = "/dev/disk/by-uuid";
/// So many of what is there are named when a disk is missing.
const NAMED_MAX: usize = 8;

/// The devices of this machine at one moment.
#[derive(Debug)]
pub struct Survey {
    seen: Vec<Seen>,
    /// Devices on allowed buses that could not be read.
    unread: Vec<String>,
    /// UUID → device, of those kinds that are never opened.
    hinted: BTreeMap<String, String>,
    /// The disks beneath `/`, where it says.
    root: Option<BTreeSet<String>>,
}

/// A device with the mark of a file system.
#[derive(Clone, Debug)]
struct Seen {
    disk: Disk,
    mark: Mark,
    part_uuid: Option<PartUuid>,
    serials: Vec<Serial>,
}

impl Survey {
    /// Reads the beginning of every device on an allowed bus, and opens no other.
    pub fn take(policy: &Policy) -> Result<Self, Refusal> {
        let allowed =
            |disk: &Disk| disk.transport.is_some_and(|transport| policy.transports.contains(&transport));
        let (looked_at, others): (Vec<Disk>, Vec<Disk>) = disk::all()?.into_iter().partition(allowed);
        let (mut seen, mut unread) = (Vec::new(), Vec::new());
        for disk in looked_at {
            let marks = disk.open().map_err(std::io::Error::from).and_then(|device| probe::marks(&device));
            let Ok(marks) = marks else {
                unread.push(disk.name);
                continue;
            };
            for mark in marks {
                let (disk, part_uuid, serials) = (disk.clone(), disk.part_uuid(), disk.serials());
                seen.push(Seen { disk, mark, part_uuid, serials });
            }
        }
        Ok(Self { seen, unread, hinted: hints(&others), root: disk::beneath_root()? })
    }

    /// The one device that a target means.
    pub fn find(&self, target: &Target) -> Result<&Disk, Refusal> {
        let wearing: Vec<&Seen> = self.seen.iter().filter(|seen| seen.mark.uuid == target.uuid).collect();
        let at = format!("target {}", target.name);
        let one = match wearing.as_slice() {
            [one] => *one,
            [] => return Err(self.absent(target)),
            many => {
                let names = many.iter().map(|seen| seen.disk.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(refusal!(DeviceAmbiguous, "{at}: {names} wear its UUID: take the copies away"));
            }
        };
        let name = &one.disk.name;
        if one.mark.filesystem != target.filesystem {
            let (holds, wanted) = (one.mark.filesystem.as_str(), target.filesystem.as_str());
            return Err(refusal!(DeviceClass, "{at}: {name} holds {holds}, not {wanted}"));
        }
        if let Some(fault) = one.mark.fault {
            return Err(refusal!(DeviceClass, "{at}: {name} is not mounted: {fault}"));
        }
        if self.root.as_ref().is_some_and(|disks| disks.contains(&one.disk.whole)) {
            return Err(refusal!(DeviceClass, "{at}: {name} is on the disk that / stands on"));
        }
        let other_part = target.part_uuid.is_some() && target.part_uuid != one.part_uuid;
        if other_part || target.serial.as_ref().is_some_and(|serial| !one.serials.contains(serial)) {
            let what = if other_part { "partition UUID" } else { "serial number" };
            return Err(refusal!(DeviceAmbiguous, "{at}: {name} wears its UUID, but not its {what}: a copy"));
        }
        Ok(&one.disk)
    }

    /// Whether it must still be shown that a disk has nothing to do with `/`.
    pub const fn root_is_hidden(&self) -> bool {
        self.root.is_none()
    }

    fn absent(&self, target: &Target) -> Refusal {
        let (at, uuid) = (format!("target {}", target.name), &target.uuid);
        if let Some(name) = self.hinted.get(uuid.as_str()) {
            return refusal!(DeviceClass, "{at}: its UUID is on {name}, and no disk of that kind is allowed");
        }
        let seen = self.seen.iter().map(|seen| seen.disk.name.clone());
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

    fn seen(name: &str, whole: &str) -> Seen {
        let uuid = FsUuid::try_from(UUID.to_owned()).unwrap();
        Seen {
            disk: Disk::for_test(name, whole),
            mark: Mark { filesystem: FileSystem::Ext4, uuid, fault: None },
            part_uuid: Some("1234abcd-01".to_owned().try_into().unwrap()),
            serials: vec!["WD-1234".to_owned().try_into().unwrap()],
        }
    }

    fn survey(seen: Vec<Seen>) -> Survey {
        let root = Some(["sda".to_owned()].into());
        Survey { seen, unread: Vec::new(), hinted: BTreeMap::new(), root }
    }

    fn code(survey: &Survey, identity: &str) -> &'static str {
        survey.find(&target(identity)).err().map_or("found", |refusal| refusal.code.as_str())
    }

    #[test]
    fn the_one_with_everything_is_found() {
        let whole = survey(vec![seen("sdb1", "sdb")]);
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
    fn everything_else_is_refused() {
        let serial = "serial = 'WD-1234'";
        assert_eq!(code(&survey(Vec::new()), serial), "E_DEVICE_ABSENT");
        assert_eq!(
            code(&survey(vec![seen("sdb1", "sdb"), seen("sdc1", "sdc")]), serial),
            "E_DEVICE_AMBIGUOUS"
        );
        assert_eq!(code(&survey(vec![seen("sda3", "sda")]), serial), "E_DEVICE_CLASS", "the root disk");
        let mut other = seen("sdb1", "sdb");
        other.mark.filesystem = FileSystem::Xfs;
        assert_eq!(code(&survey(vec![other]), serial), "E_DEVICE_CLASS");
        let mut faulty = seen("sdb1", "sdb");
        faulty.mark.fault = Some("it reaches out");
        assert_eq!(code(&survey(vec![faulty]), serial), "E_DEVICE_CLASS");
        let mut nameless = seen("sdb1", "sdb");
        (nameless.part_uuid, nameless.serials) = (None, Vec::new());
        assert_eq!(code(&survey(vec![nameless.clone()]), serial), "E_DEVICE_AMBIGUOUS");
        assert_eq!(code(&survey(vec![nameless]), "part_uuid = '1234abcd-01'"), "E_DEVICE_AMBIGUOUS");
        let mut other = seen("sdc1", "sdc");
        other.mark.uuid = FsUuid::try_from(UUID.replace("0b5f", "1b5f")).unwrap();
        let mut without = survey(vec![other]);
        without.unread.push("sdd".to_owned());
        let says = |survey: &Survey| survey.find(&target(serial)).unwrap_err().says;
        assert_eq!(
            says(&without),
            format!(
                "target usb1: no disk with UUID {UUID} is attached, but sdd (cannot be read), sdc1 (`lsblk -f`)"
            )
        );
        assert!(says(&survey(Vec::new())).ends_with("is attached, but nothing (`lsblk -f`)"));
        let mut hinted = survey(Vec::new());
        hinted.hinted.insert(UUID.to_owned(), "dm-3".to_owned());
        assert_eq!(code(&hinted, serial), "E_DEVICE_CLASS");
        hinted.seen.push(seen("sdb1", "sdb"));
        assert_eq!(code(&hinted, serial), "found", "a guest's copy of a UUID keeps nobody from their disk");
    }
}
