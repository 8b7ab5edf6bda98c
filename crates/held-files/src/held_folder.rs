//! Folders held by descriptor, and the files in them, through no link.
//!
//! Input: a path that root was given or has in its settings. Output: a folder that is held open, files opened from it
//! by name, or a refusal with a code. Every folder on the way is opened by its name from its parent. So the owner of a
//! folder on the way cannot lead root out of it: no symbolic link is followed, entries in another user's folder must
//! belong to that user or to root, and a file there must have no second hard link. A process that is not root has no
//! rights beyond those of its user: it follows links on the way to a folder, and none in it. Deliberately absent:
//! `openat2`, which `RestrictSUIDSGID=` blocks for the agent's service.

mod refusal;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

pub use refusal::{HeldError, Refusal};

/// A folder to walk on from, not to read.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A file of any kind. Opening it does not block, and it does not become our terminal.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The owner that something gets once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Its maker stays the owner.
    Kept,
    /// A user owns it.
    To { uid: u32, gid: u32 },
    /// Its maker stays the owner; its group changes.
    ToGroup { gid: u32 },
}

impl Given {
    fn ids(self) -> Option<(Option<Uid>, Option<Gid>)> {
        match self {
            Self::Kept => None,
            Self::To { uid, gid } => Some((Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))),
            Self::ToGroup { gid } => Some((None, Some(Gid::from_raw(gid)))),
        }
    }
}

/// A folder that is held open.
#[derive(Debug)]
pub struct HeldFolder {
    fd: OwnedFd,
    path: PathBuf,
    about: Stat,
}

/// A socket held by descriptor, so that a connection reaches exactly this one.
#[derive(Debug)]
pub struct HeldSocket(OwnedFd);

impl HeldSocket {
    /// The path by which exactly this socket is connected to.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

impl HeldFolder {
    /// Opens a folder.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn open(path: &Path) -> Result<Self, HeldError> {
        walk(path, &mut |at, name| at.down(name))
    }

    /// Opens a folder; missing parts of its path are made, readable for all.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn make_all(path: &Path) -> Result<Self, HeldError> {
        walk(path, &mut |at, name| at.make(name, 0o755))
    }

    /// Opens a folder that only root can change, as it can every folder above it.
    ///
    /// # Errors
    /// [`HeldError`]: another user could change its content.
    pub fn roots_alone(path: &Path) -> Result<Self, HeldError> {
        const OTHERS: u32 = 0o022;
        const STICKY: u32 = 0o1000;
        let folder = walk(path, &mut |at, name| {
            let next = at.down(name)?;
            // In a sticky folder other users cannot move entries that root owns.
            match (next.about.st_uid, next.mode() & OTHERS, next.mode() & STICKY) {
                (0, 0, _) | (0, _, STICKY) => Ok(next),
                (0, ..) => Err(HeldError::of(&next.path, Refusal::Writable)),
                (uid, ..) => Err(HeldError::of(&next.path, Refusal::Owner { uid })),
            }
        })?;
        if folder.mode() & OTHERS == 0 { Ok(folder) } else { Err(HeldError::of(path, Refusal::Writable)) }
    }

    /// The folder in which a path ends, and the name that it has there.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn parent_of(path: &Path) -> Result<(Self, &OsStr), HeldError> {
        let name = path.file_name().ok_or_else(|| HeldError::of(path, Refusal::Path))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok((Self::open(parent.unwrap_or(Path::new(".")))?, name))
    }

    /// Who owns it: user and group.
    #[must_use]
    pub const fn owner(&self) -> (u32, u32) {
        (self.about.st_uid, self.about.st_gid)
    }

    /// Its permission bits.
    #[must_use]
    pub const fn mode(&self) -> u32 {
        self.about.st_mode & 0o7777
    }

    /// Opens a folder in it.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn down(&self, name: &OsStr) -> Result<Self, HeldError> {
        let path = self.path.join(name);
        let fd = rustix::fs::openat(&self.fd, name, STEP, Mode::empty()).map_err(|error| match error {
            // A link is no folder either.
            Errno::NOTDIR | Errno::LOOP => HeldError::of(&path, self.kind(name, "folder")),
            error => HeldError::io(&path, error),
        })?;
        let about = rustix::fs::fstat(&fd).map_err(|error| HeldError::io(&path, error))?;
        self.judge(&about).map_err(|why| HeldError::of(&path, why))?;
        Ok(Self { fd, path, about })
    }

    /// Opens a folder in it, and makes it where it is missing.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn make(&self, name: &OsStr, mode: u32) -> Result<Self, HeldError> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(mode)) {
            Ok(()) => {
                let made = self.down(name)?;
                made.settle(mode, Given::Kept)?;
                self.sync()?;
                Ok(made)
            }
            Err(Errno::EXIST) => self.down(name),
            Err(error) => Err(HeldError::io(&self.path.join(name), error)),
        }
    }

    /// Sets its permission bits, and gives it away.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn settle(&self, mode: u32, given: Given) -> Result<(), HeldError> {
        let failed = |error| HeldError::io(&self.path, error);
        let folder = self.readable().map_err(failed)?;
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode)).map_err(failed)?;
        if let Some((uid, gid)) = given.ids() {
            rustix::fs::fchown(&folder, uid, gid).map_err(failed)?;
        }
        Ok(())
    }

    /// Whether something has this name here, be it a link.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn has(&self, name: &OsStr) -> Result<bool, HeldError> {
        Ok(self.about(name)?.is_some())
    }

    /// Opens a plain file to read; none where there is none.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn file(&self, name: &OsStr) -> Result<Option<File>, HeldError> {
        let path = self.path.join(name);
        let fd = match rustix::fs::openat(&self.fd, name, FILE | OFlags::RDONLY, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NXIO) => return Err(HeldError::of(&path, self.kind(name, "file"))),
            Err(error) => return Err(HeldError::io(&path, error)),
        };
        let about = rustix::fs::fstat(&fd).map_err(|error| HeldError::io(&path, error))?;
        self.plain(&about).map_err(|why| HeldError::of(&path, why))?;
        Ok(Some(File::from(fd)))
    }

    /// Replaces a file: writes the bytes next to it, sets the owner, syncs, renames over it, syncs the folder.
    ///
    /// # Errors
    /// [`HeldError`]; then the old file is untouched, or the new one is whole.
    pub fn write(&self, name: &OsStr, bytes: &[u8], mode: u32, given: Given) -> Result<(), HeldError> {
        let copy_of = copy_of(name);
        self.may_be_written(name)?;
        // A leftover of an attempt that died.
        self.remove(&copy_of)?;
        self.fresh(&copy_of, bytes, mode, given)?;
        rustix::fs::renameat(&self.fd, &copy_of, &self.fd, name)
            .map_err(|error| HeldError::io(&self.path.join(name), error))?;
        self.sync()
    }

    /// Whether what has this name, or the one that it is first written under, may be written over.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn may_be_written(&self, name: &OsStr) -> Result<(), HeldError> {
        for name in [name, &copy_of(name)] {
            if let Some(about) = self.about(name)? {
                self.plain(&about).map_err(|why| HeldError::of(&self.path.join(name), why))?;
            }
        }
        Ok(())
    }

    /// Makes a file that must not be there yet.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn fresh(&self, name: &OsStr, bytes: &[u8], mode: u32, given: Given) -> Result<(), HeldError> {
        let mut file = self.fresh_file(name, mode, given)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|source| HeldError::of(&self.path.join(name), Refusal::Io(source)))
    }

    /// Makes an empty file that must not be there yet, to be written by the caller.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn fresh_file(&self, name: &OsStr, mode: u32, given: Given) -> Result<File, HeldError> {
        let path = self.path.join(name);
        let failed = |error: Errno| HeldError::io(&path, error);
        let flags = FILE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(mode);
        let fd = rustix::fs::openat(&self.fd, name, flags, mode).map_err(failed)?;
        // The process may have its own umask.
        rustix::fs::fchmod(&fd, mode).map_err(failed)?;
        if let Some((uid, gid)) = given.ids() {
            rustix::fs::fchown(&fd, uid, gid).map_err(failed)?;
        }
        Ok(File::from(fd))
    }

    /// Gives a file that is there to another user.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn give(&self, name: &OsStr, given: Given) -> Result<(), HeldError> {
        let failed = |error: Errno| HeldError::io(&self.path.join(name), error);
        let file = self.file(name)?.ok_or_else(|| failed(Errno::NOENT))?;
        let Some((uid, gid)) = given.ids() else { return Ok(()) };
        rustix::fs::fchown(&file, uid, gid).map_err(failed)
    }

    /// Takes a name away, be it a link's; what it leads to stays. One that is not there is gone already.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn remove(&self, name: &OsStr) -> Result<(), HeldError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => self.sync(),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(HeldError::io(&self.path.join(name), error)),
        }
    }

    /// Holds a socket.
    ///
    /// # Errors
    /// [`HeldError`].
    pub fn socket(&self, name: &OsStr) -> Result<HeldSocket, HeldError> {
        let path = self.path.join(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())
            .map_err(|error| HeldError::io(&path, error))?;
        let about = rustix::fs::fstat(&fd).map_err(|error| HeldError::io(&path, error))?;
        if FileType::from_raw_mode(about.st_mode) != FileType::Socket {
            return Err(HeldError::of(&path, self.kind(name, "socket")));
        }
        self.one_name(&about).map_err(|why| HeldError::of(&path, why))?;
        Ok(HeldSocket(fd))
    }

    fn sync(&self) -> Result<(), HeldError> {
        let synced = self.readable().and_then(|folder| rustix::fs::fsync(&folder));
        synced.map_err(|error| HeldError::io(&self.path, error))
    }

    /// The same folder, with a descriptor that changes and syncs it.
    fn readable(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, ".", flags, Mode::empty())
    }

    fn about(&self, name: &OsStr) -> Result<Option<Stat>, HeldError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(about)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(HeldError::io(&self.path.join(name), error)),
        }
    }

    /// The actual kind of an entry that is not of the wanted kind.
    fn kind(&self, name: &OsStr, wanted: &'static str) -> Refusal {
        match self.about(name) {
            Ok(Some(about)) if FileType::from_raw_mode(about.st_mode) == FileType::Symlink => Refusal::Link,
            _ => Refusal::Kind { wanted },
        }
    }

    /// A plain file that the owner of this folder, or root, has put here.
    fn plain(&self, about: &Stat) -> Result<(), Refusal> {
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Refusal::Link),
            _ => return Err(Refusal::Kind { wanted: "file" }),
        }
        self.one_name(about)
    }

    /// A second name in another user's folder may be that of a file elsewhere.
    fn one_name(&self, about: &Stat) -> Result<(), Refusal> {
        self.judge(about)?;
        if is_root() && self.about.st_uid != 0 && about.st_nlink > 1 {
            return Err(Refusal::HardLinks { names: u32::try_from(about.st_nlink).unwrap_or(u32::MAX) });
        }
        Ok(())
    }

    /// An entry in another user's folder must belong to that user or to root.
    fn judge(&self, about: &Stat) -> Result<(), Refusal> {
        let owners = [0, self.about.st_uid];
        if !is_root() || self.about.st_uid == 0 || owners.contains(&about.st_uid) {
            return Ok(());
        }
        Err(Refusal::Owner { uid: about.st_uid })
    }
}

/// Opens a plain file that a path names, to read it.
///
/// # Errors
/// [`HeldError`], also where there is none.
pub fn open_file(path: &Path) -> Result<File, HeldError> {
    let (folder, name) = HeldFolder::parent_of(path)?;
    folder.file(name)?.ok_or_else(|| HeldError::io(path, Errno::NOENT))
}

/// Makes a file that must not exist yet, for the user of this process alone.
///
/// # Errors
/// [`HeldError`].
pub fn create_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), HeldError> {
    let (folder, name) = HeldFolder::parent_of(path)?;
    folder.fresh(name, bytes, mode, Given::Kept)
}

/// The name under which a file is written before it takes its place.
fn copy_of(name: &OsStr) -> OsString {
    Path::new(name).with_extension("new").into_os_string()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn walk(
    path: &Path,
    next: &mut dyn FnMut(&HeldFolder, &OsStr) -> Result<HeldFolder, HeldError>,
) -> Result<HeldFolder, HeldError> {
    let parts = path.components().collect::<Vec<_>>();
    // Only root's path is checked step by step; missing folders are made one by one in any case.
    if !is_root() && path.is_dir() {
        return begin(path);
    }
    let mut at = begin(Path::new(if path.is_absolute() { "/" } else { "." }))?;
    for part in parts {
        match part {
            Component::Normal(name) => at = next(&at, name)?,
            Component::ParentDir => at = begin_at(&at, path)?,
            Component::RootDir | Component::CurDir => {}
            Component::Prefix(_) => return Err(HeldError::of(path, Refusal::Path)),
        }
    }
    Ok(at)
}

/// Where a walk begins: the top, the folder that this process is in, or one that needs no walk.
fn begin(path: &Path) -> Result<HeldFolder, HeldError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, path, flags, Mode::empty())
        .and_then(|fd| rustix::fs::fstat(&fd).map(|about| (fd, about)));
    let (fd, about) = opened.map_err(|error| HeldError::io(path, error))?;
    Ok(HeldFolder { fd, path: path.to_owned(), about })
}

/// The folder above: no link can replace it.
fn begin_at(at: &HeldFolder, path: &Path) -> Result<HeldFolder, HeldError> {
    let failed = |error| HeldError::io(path, error);
    let fd = rustix::fs::openat(&at.fd, "..", STEP, Mode::empty()).map_err(failed)?;
    let about = rustix::fs::fstat(&fd).map_err(failed)?;
    Ok(HeldFolder { fd, path: at.path.join(".."), about })
}

#[cfg(test)]
mod tests;
