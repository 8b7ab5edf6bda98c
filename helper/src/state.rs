//! Lock and mount records in `/run/holdfast-helper`.
//!
//! A mount is recorded before it is attached, under the number that the kernel gave it. After a crash in between, the
//! record names a mount that is nowhere, and the next one replaces it. A record is the text of a symbolic link: one
//! call writes it whole, and no limit on file sizes can tear it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::mountpoint::MountId;
use crate::names::{FsUuid, TargetName};
use crate::openat;
use crate::reply::{Refusal, refusal};

const FOLDER: &str = "holdfast-helper";
const LOCK: &str = "lock";
const UNFINISHED: &str = "#unfinished";

/// Held while this call is at work: there is no second one.
pub struct Lock {
    folder: OwnedFd,
    _lock: OwnedFd,
}

/// A mount that the helper made.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub id: MountId,
    pub uuid: FsUuid,
    pub device: String,
}

impl Lock {
    /// Takes the lock, or refuses at once when another call holds it.
    pub fn take() -> Result<Self, Refusal> {
        let failed = |error: Errno| refusal!(Env, "/run/{FOLDER} is not usable by root alone: {error}");
        let run = openat::root_folder(&["run"]).map_err(failed)?;
        match rustix::fs::mkdirat(&run, FOLDER, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let folder = openat::open(&run, FOLDER, openat::FOLDER).map_err(failed)?;
        openat::require_root(&folder, FileType::Directory, 0o077).map_err(failed)?;
        let lock = openat::open(&folder, LOCK, OFlags::RDWR | OFlags::CREATE).map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { folder, _lock: lock }),
            Err(Errno::WOULDBLOCK) => Err(refusal!(Busy, "another call is running: try again")),
            Err(error) => Err(failed(error)),
        }
    }

    /// The mount that was written down for a target.
    pub fn record(&self, target: &TargetName) -> Result<Option<Record>, Refusal> {
        match rustix::fs::readlinkat(&self.folder, name(target), Vec::new()) {
            Ok(text) => Ok(text.to_str().ok().and_then(Record::parse)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(record_error(error)),
        }
    }

    /// Writes a mount down, in the place of an older one.
    pub fn write(&self, target: &TargetName, record: &Record) -> Result<(), Refusal> {
        match rustix::fs::unlinkat(&self.folder, UNFINISHED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(record_error(error)),
        }
        rustix::fs::symlinkat(record.text(), &self.folder, UNFINISHED).map_err(record_error)?;
        rustix::fs::renameat(&self.folder, UNFINISHED, &self.folder, name(target)).map_err(record_error)
    }

    /// The helper has nothing mounted there any more. A record that stays names a number that is never used again.
    pub fn remove(&self, target: &TargetName) {
        let _harmless = rustix::fs::unlinkat(&self.folder, name(target), AtFlags::empty());
    }
}

impl Record {
    fn text(&self) -> String {
        format!("{} {} {}", self.id.0, self.uuid, self.device)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        let id = MountId(words.next()?.parse().ok()?);
        let uuid = FsUuid::try_from(words.next()?.to_owned()).ok()?;
        Some(Self { id, uuid, device: words.next()?.to_owned() })
    }
}

/// Begins with what no target's name begins with.
fn name(target: &TargetName) -> String {
    format!(".{target}")
}

fn record_error(error: Errno) -> Refusal {
    refusal!(Env, "the mount records in /run/{FOLDER} cannot be used: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let uuid = FsUuid::try_from("0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b".to_owned()).unwrap();
        let record = Record { id: MountId(u64::MAX), uuid, device: "/dev/sdb1".to_owned() };
        assert_eq!(Record::parse(&record.text()), Some(record));
        for bad in
            ["", "7", "7 x /dev/sdb1", "-1 0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b /dev/sdb1", "7  /dev/sdb1"]
        {
            assert_eq!(Record::parse(bad), None, "{bad}");
        }
    }
}
