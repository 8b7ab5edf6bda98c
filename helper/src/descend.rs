//! Opening by descriptor, one component at a time, where no link leads astray and nobody but root can have a hand in.

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

/// Walks from `/` through folders that are root's and that nobody else may write.
pub fn roots_folder(names: &[&str]) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::open("/", FOLDER, Mode::empty())?;
    for name in names {
        at = open(&at, name, FOLDER)?;
        must_be_roots(&at, FileType::Directory, 0o022)?;
    }
    Ok(at)
}

/// Refuses (`EPERM`) what is of another kind, somebody else's, or open to others in one of these ways.
pub fn must_be_roots(file: &OwnedFd, kind: FileType, others: u32) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(file)?;
    let fits =
        FileType::from_raw_mode(stat.st_mode) == kind && stat.st_uid == 0 && stat.st_mode & others == 0;
    if fits { Ok(()) } else { Err(Errno::PERM) }
}
