//! A directory that no path can leave.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

/// A directory and everything below it.
pub(crate) struct Tree {
    root: OwnedFd,
}

/// A place for one entry: an open parent directory and a single name in it.
pub(crate) struct Slot {
    parent: OwnedFd,
    name: OsString,
}

/// Why a place below a tree could not be reached.
pub(crate) enum ReachError {
    /// A component of the path is a link or a file.
    ThroughLink,
    /// The system refused.
    Io(io::Error),
}

impl From<Errno> for ReachError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::LOOP | Errno::NOTDIR => Self::ThroughLink,
            other => Self::Io(other.into()),
        }
    }
}

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Tree {
    /// Opens an existing directory.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Opens the directory at a path below, making it and its parents where they are missing.
    pub(crate) fn make_directory(&self, path: &Path) -> Result<OwnedFd, ReachError> {
        let mut here = self.root.try_clone().map_err(ReachError::Io)?;
        for component in path.components() {
            here = enter_or_make(&here, component)?;
        }
        Ok(here)
    }

    /// The place for an entry at a path below; missing parents are made. `None` for the root itself.
    pub(crate) fn slot(&self, path: &Path) -> Result<Option<Slot>, ReachError> {
        let Some(name) = path.file_name() else { return Ok(None) };
        let parent = self.make_directory(path.parent().unwrap_or(Path::new("")))?;
        Ok(Some(Slot { parent, name: name.to_owned() }))
    }

    /// The place of something that is already there.
    pub(crate) fn existing(&self, path: &Path) -> Result<Option<Slot>, ReachError> {
        let Some(name) = path.file_name() else { return Ok(None) };
        let mut here = self.root.try_clone().map_err(ReachError::Io)?;
        for component in path.parent().unwrap_or(Path::new("")).components() {
            here = openat(&here, component_name(component)?, DIRECTORY, Mode::empty())?;
        }
        Ok(Some(Slot { parent: here, name: name.to_owned() }))
    }
}

impl Slot {
    /// The directory that contains the entry.
    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// The entry's own name.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Makes a new, empty, private file; `None` when something of that name is there already.
    pub(crate) fn create_file(&self) -> io::Result<Option<File>> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.parent, &self.name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(Errno::EXIST) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes the file or link here; a missing one is no error.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether a regular file exists here.
    pub(crate) fn is_file(&self) -> io::Result<bool> {
        match statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn enter_or_make(here: &OwnedFd, component: Component<'_>) -> Result<OwnedFd, ReachError> {
    let name = component_name(component)?;
    match openat(here, name, DIRECTORY, Mode::empty()) {
        Ok(fd) => Ok(fd),
        Err(Errno::NOENT) => {
            match rustix::fs::mkdirat(here, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            Ok(openat(here, name, DIRECTORY, Mode::empty())?)
        }
        Err(errno) => Err(errno.into()),
    }
}

fn component_name<'a>(component: Component<'a>) -> Result<&'a OsStr, ReachError> {
    match component {
        Component::Normal(name) => Ok(name),
        _ => Err(ReachError::ThroughLink),
    }
}
