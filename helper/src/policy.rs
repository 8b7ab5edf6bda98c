//! Policy file `/etc/holdfast/helper.toml`, and the authorization of requests.
//!
//! In: a file that only root can have written. Out: an order that nothing of the caller's can bend: the device is found
//! by what the policy says, never by what the request says.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use serde::Deserialize;

use crate::disk::Transport;
use crate::names::{FsUuid, PartUuid, Serial, TargetName};
use crate::openat;
use crate::probe::FileSystem;
use crate::reply::{Refusal, refusal};
use crate::request::{MountOption, Request};

const PATH: &str = "/etc/holdfast/helper.toml";
const BYTES_MAX: u64 = 64 * 1024;
const TARGETS_MAX: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The uid that may use the socket, in addition to root: the agent's.
    pub caller_uid: u32,
    /// How disks may be attached.
    pub transports: BTreeSet<Transport>,
    /// Where golden images are built, if they are.
    pub golden_dump: Option<String>,
    #[serde(default, rename = "target")]
    pub targets: Vec<Target>,
}

/// One file system that may be mounted, and where.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub name: TargetName,
    pub uuid: FsUuid,
    pub filesystem: FileSystem,
    /// This, or a serial, or both: a UUID alone can be copied by anybody who can write a disk.
    pub part_uuid: Option<PartUuid>,
    pub serial: Option<Serial>,
}

/// What may be done.
#[must_use]
pub enum Action<'a> {
    Mount(&'a Target, Vec<MountOption>),
    Unmount(TargetName),
    Status,
    GoldenBuild(&'a str),
}

impl Policy {
    /// Reads it, where it is root's alone all the way.
    pub fn read() -> Result<Self, Refusal> {
        let mut text = String::new();
        let file = open().map_err(|error| invalid(format_args!("cannot be opened: {error}")))?;
        let mut file = File::from(file).take(BYTES_MAX);
        file.read_to_string(&mut text).map_err(|error| invalid(format_args!("cannot be read: {error}")))?;
        if file.limit() == 0 {
            return Err(invalid("is too long"));
        }
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, Refusal> {
        let policy: Self = toml::from_str(text)
            .map_err(|error| invalid(format_args!("is not right: {}", error.message())))?;
        if policy.targets.len() > TARGETS_MAX {
            return Err(invalid(format_args!("names more than {TARGETS_MAX} targets")));
        }
        for (at, target) in policy.targets.iter().enumerate() {
            if target.part_uuid.is_none() && target.serial.is_none() {
                return Err(invalid(format_args!("gives {} neither `part_uuid` nor `serial`", target.name)));
            }
            let mut earlier = policy.targets.iter().take(at);
            if earlier.any(|other| other.name == target.name || other.uuid == target.uuid) {
                return Err(invalid(format_args!("names the name or UUID of target {} twice", target.name)));
            }
        }
        Ok(policy)
    }

    /// The judgement. An unmount needs no target in the policy: what the helper mounted it may unmount, also after the
    /// target was taken out.
    pub fn authorize(&self, request: Request) -> Result<Action<'_>, Refusal> {
        let (name, uuid, options) = match request {
            Request::Status => return Ok(Action::Status),
            Request::Unmount { target } => return Ok(Action::Unmount(target)),
            Request::GoldenBuild => {
                let dump = self.golden_dump.as_deref().map(Action::GoldenBuild);
                return dump.ok_or_else(|| refusal!(Authz, "{PATH} has no `golden_dump`: add it as root"));
            }
            Request::Mount { target, uuid, options } => (target, uuid, options),
        };
        let Some(target) = self.targets.iter().find(|target| target.name == name) else {
            return Err(refusal!(Authz, "{PATH} has no target {name}: add it as root"));
        };
        if target.uuid != uuid {
            return Err(refusal!(Authz, "{PATH} has another UUID for {name} than {uuid}"));
        }
        Ok(Action::Mount(target, options))
    }
}

/// Opens the file component by component: each must be owned and writable by root alone.
fn open() -> Result<OwnedFd, Errno> {
    let folder = openat::root_folder(&["etc", "holdfast"])?;
    // Opening a pipe in its place would block.
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = openat::open(folder, "helper.toml", flags)?;
    openat::require_root(&file, FileType::RegularFile, 0o022)?;
    Ok(file)
}

fn invalid(what: impl std::fmt::Display) -> Refusal {
    refusal!(Env, "{PATH} {what}: correct it as root; root alone may write it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Code;

    const GOOD: &str = r#"
        caller_uid = 990
        transports = ["usb", "sata"]
        [[target]]
        name = "usb1"
        uuid = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b"
        filesystem = "ext4"
        serial = "WD-1234"
    "#;

    fn message(text: &str) -> String {
        Policy::parse(text).map_or_else(|refusal| refusal.message, |_| "taken".to_owned())
    }

    #[test]
    fn the_shipped_example_parses() {
        let policy = Policy::parse(include_str!("../helper.toml")).unwrap();
        assert_eq!((policy.targets.len(), policy.transports.len()), (1, 2));
    }

    #[test]
    fn parsing_is_strict() {
        assert_eq!(message(GOOD), "taken");
        assert_eq!(message("caller_uid = 1\ntransports = []"), "taken");
        for (from, to) in [
            ("serial = \"WD-1234\"", ""),
            ("\"ext4\"", "\"ntfs\""),
            ("\"sata\"", "\"loop\""),
            ("\"sata\"", "\"dm\""),
            ("usb1", "../usb1"),
            ("caller_uid = 990", ""),
            ("caller_uid = 990", "caller_uid = -1"),
            ("caller_uid = 990", "caller_uid = 990\ncaller_uid = 0"),
            ("name =", "path = \"/etc\"\nname ="),
            ("0b5f", "0B5f"),
            ("serial", "part_uuid"),
        ] {
            assert_ne!(message(&GOOD.replace(from, to)), "taken", "{from} -> {to}");
        }
        let twice = format!("{GOOD}{}", &GOOD[GOOD.find("[[").unwrap()..]);
        assert!(message(&twice).contains("twice"), "{}", message(&twice));
    }

    #[test]
    fn requests_must_match_the_policy() {
        let policy = Policy::parse(GOOD).unwrap();
        let ask = |name: &str, uuid: &str| {
            let target = TargetName::try_from(name.to_owned()).unwrap();
            let uuid = FsUuid::try_from(uuid.to_owned()).unwrap();
            policy
                .authorize(Request::Mount { target, uuid, options: Vec::new() })
                .err()
                .map(|refusal| refusal.code)
        };
        let (ours, other) = ("0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b", "1b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b");
        assert_eq!(ask("usb1", ours), None);
        assert_eq!(ask("usb1", other), Some(Code::Authz));
        assert_eq!(ask("usb", ours), Some(Code::Authz), "names are compared whole");
        assert_eq!(ask("usb12", ours), Some(Code::Authz));
    }
}
