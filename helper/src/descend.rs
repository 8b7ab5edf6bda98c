//! Opening by descriptor, one component at a time, where no link leads astray and nobody but root can have a hand in.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A folder to go on from, not to read.
pub const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens what stands beneath a folder. No component may be a symlink or a way out; `more` may forbid more.
pub fn open(at: impl AsFd, name: &str, flags: OFlags, more: ResolveFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | more;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o600) } else { Mode::empty() };
    rustix::fs::openat2(at, name, flags | OFlags::CLOEXEC, mode, resolve)
}

/// Walks from `/` through folders that are root's and that nobody else may write.
pub fn roots_folder(names: &[&str]) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::open("/", FOLDER, Mode::empty())?;
    for name in names {
        at = open(&at, name, FOLDER, ResolveFlags::empty())?;
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
