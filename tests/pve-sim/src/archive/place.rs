//! The volume and path of an entry.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// An absolute path inside a guest, other than `/`, without `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestPath(PathBuf);

/// Why a text is no path inside a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no mount point: it must be absolute, below / and without `..`")]
pub struct GuestPathError {
    /// The refused text.
    pub text: String,
}

impl GuestPath {
    /// Reads the `mp=` of a mount point.
    pub fn parse(text: &str) -> Result<Self, GuestPathError> {
        let refuse = || GuestPathError { text: text.to_owned() };
        let bare = text.strip_prefix('/').ok_or_else(refuse)?;
        match EntryPath::parse(bare.as_bytes()) {
            Ok(path) if !path.is_root() => Ok(Self(path.0)),
            Ok(_) | Err(_) => Err(refuse()),
        }
    }

    /// The path without its leading `/`.
    pub(super) fn relative(&self) -> &Path {
        &self.0
    }
}

impl std::fmt::Display for GuestPath {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "/{}", self.0.display())
    }
}

/// The directory that represents one mount point's volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountDir {
    /// Where the guest sees it.
    pub at: GuestPath,
    /// Where it is stored on this machine.
    pub directory: PathBuf,
}

/// The directories of one guest's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// The root file system.
    pub rootfs: PathBuf,
    /// The mount points that are volumes.
    pub mounts: Vec<MountDir>,
}

/// One volume of `Volumes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum VolumeIndex {
    Rootfs,
    Mount(usize),
}

/// An entry's name, proved to stay below the directory it is put into; empty for the root itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryPath(PathBuf);

/// Why an entry's name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EscapeReason {
    /// It starts at the root of the host.
    #[error("its path is absolute")]
    Absolute,
    #[error("its path contains `..`")]
    Climbs,
    /// It is a file name that no file can have.
    #[error("its path is empty or contains a zero byte")]
    Meaningless,
    /// It passes through something that is no directory, such as a link.
    #[error("its path passes through a link or a file")]
    ThroughLink,
    /// A hard link to a file of another volume, or of none.
    #[error("it is a hard link to a file outside its volume")]
    LinkElsewhere,
}

impl EntryPath {
    /// Judges the name of an entry.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, EscapeReason> {
        if bytes.contains(&0) {
            return Err(EscapeReason::Meaningless);
        }
        let mut clean = PathBuf::new();
        for component in Path::new(OsStr::from_bytes(bytes)).components() {
            match component {
                Component::Normal(part) => clean.push(part),
                Component::CurDir => {}
                Component::ParentDir => return Err(EscapeReason::Climbs),
                Component::RootDir | Component::Prefix(_) => return Err(EscapeReason::Absolute),
            }
        }
        Ok(Self(clean))
    }

    /// Whether it is the volume's own directory.
    pub(super) fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// As a relative path.
    pub(super) fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether it is inside (not at) the given top-level directory.
    pub(super) fn is_inside(&self, top: &str) -> bool {
        self.0.strip_prefix(top).is_ok_and(|rest| !rest.as_os_str().is_empty())
    }
}

impl Volumes {
    /// The volume an entry belongs to, and its path there: the deepest mount point wins.
    pub(super) fn place(&self, entry: &EntryPath) -> (VolumeIndex, EntryPath) {
        let mut best: Option<(usize, usize, &Path)> = None;
        for (index, mount) in self.mounts.iter().enumerate() {
            if let Ok(rest) = entry.as_path().strip_prefix(mount.at.relative()) {
                let depth = mount.at.relative().components().count();
                if best.is_none_or(|(deepest, ..)| depth > deepest) {
                    best = Some((depth, index, rest));
                }
            }
        }
        match best {
            Some((_, index, rest)) => (VolumeIndex::Mount(index), EntryPath(rest.to_owned())),
            None => (VolumeIndex::Rootfs, entry.clone()),
        }
    }
}
