//! A walk through a volume's directory, by descriptors.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

/// Each level holds one descriptor; path names end at 4096 bytes, so real trees stay far below.
const DEPTH_MAX: usize = 200;

/// Something found below a volume.
pub(super) struct FoundEntry<'a> {
    /// The open directory that contains it (for a volume's root: the root itself).
    pub parent: BorrowedFd<'a>,
    /// Its name there; `.` for a volume's root.
    pub name: &'a OsStr,
    /// Its path as the guest sees it, without the leading `/`.
    pub path: &'a Path,
    /// What the system says about it.
    pub stat: Stat,
    /// What it is.
    pub kind: FileType,
}

/// Whether the walk continues below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descend {
    Into,
    Past,
}

/// Why a walk ended early.
pub(super) enum WalkError<E> {
    /// A directory could not be read.
    Io { path: PathBuf, source: io::Error },
    /// The visitor gave up.
    Visitor(E),
}

/// Visits a volume's root and everything below it; `prefix` is the path at which the guest sees the volume.
pub(super) fn walk<E>(
    volume: &Path,
    prefix: &Path,
    visit: &mut dyn FnMut(FoundEntry<'_>) -> Result<Descend, E>,
) -> Result<(), WalkError<E>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let fault = |errno: Errno| WalkError::Io { path: volume.to_owned(), source: errno.into() };
    let root = rustix::fs::open(volume, flags, Mode::empty()).map_err(fault)?;
    let stat = rustix::fs::fstat(&root).map_err(fault)?;
    let device = stat.st_dev;
    let found = FoundEntry {
        parent: root.as_fd(),
        name: OsStr::new("."),
        path: prefix,
        stat,
        kind: FileType::Directory,
    };
    if visit(found).map_err(WalkError::Visitor)? == Descend::Into {
        below(&root, prefix, device, DEPTH_MAX, visit)?;
    }
    Ok(())
}

fn below<E>(
    directory: &OwnedFd,
    path: &Path,
    device: u64,
    depth_left: usize,
    visit: &mut dyn FnMut(FoundEntry<'_>) -> Result<Descend, E>,
) -> Result<(), WalkError<E>> {
    let fault = |source: io::Error| WalkError::Io { path: path.to_owned(), source };
    if depth_left == 0 {
        return Err(fault(io::Error::other(format!("more than {DEPTH_MAX} directories inside each other"))));
    }
    for name in sorted_names(directory).map_err(fault)? {
        let child = path.join(&name);
        let stat = match statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // A running guest removes files while it is backed up.
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(WalkError::Io { path: child, source: errno.into() }),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let found = FoundEntry { parent: directory.as_fd(), name: &name, path: &child, stat, kind };
        let descend = visit(found).map_err(WalkError::Visitor)?;
        if kind != FileType::Directory || descend == Descend::Past || stat.st_dev != device {
            continue;
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(directory, &name, flags, Mode::empty()) {
            Ok(opened) => below(&opened, &child, device, depth_left - 1, visit)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err(WalkError::Io { path: child, source: errno.into() }),
        }
    }
    Ok(())
}

fn sorted_names(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort();
    Ok(names)
}
