//! Path traversal by descriptor, one component at a time.
//!
//! No symbolic link is followed, and each folder must be owned by root and writable by root alone.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// A folder to go on from, not to read.
pub const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens what has this one name in a folder, where it is no symlink. (`openat2` would say the same about whole paths, but
/// `RestrictSUIDSGID=` takes it away from a service. One name without a slash leads nowhere else either.)
pub fn open(at: impl AsFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        return Err(Errno::INVAL);
    }
    rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::from_raw_mode(0o600))
}

/// Walks from `/` through folders that are owned and writable by root alone.
pub fn root_folder(names: &[&str]) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::open("/", FOLDER, Mode::empty())?;
    for name in names {
        at = open(&at, name, FOLDER)?;
        require_root(&at, FileType::Directory, 0o022)?;
    }
    Ok(at)
}

/// Refuses (`EPERM`) another file type, another owner, or any of these permissions of others.
pub fn require_root(file: &OwnedFd, kind: FileType, others: u32) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(file)?;
    let fits =
        FileType::from_raw_mode(stat.st_mode) == kind && stat.st_uid == 0 && stat.st_mode & others == 0;
    if fits { Ok(()) } else { Err(Errno::PERM) }
}
