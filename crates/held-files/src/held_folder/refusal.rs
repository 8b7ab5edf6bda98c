//! Reasons why root refuses a folder or file.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why a path is refused.
#[derive(Debug)]
pub enum Refusal {
    /// A symbolic link.
    Link,
    /// More than one name.
    HardLinks {
        names: u32,
    },
    /// Of a third user.
    Owner {
        /// Whose it is.
        uid: u32,
    },
    /// A folder in which others than root may write.
    Writable,
    /// Of another kind.
    Kind {
        /// The wanted kind.
        wanted: &'static str,
    },
    /// No name at its end.
    Path,
    Io(std::io::Error),
}

/// A refusal, and where.
#[derive(Debug)]
pub struct HeldError {
    path: PathBuf,
    why: Refusal,
}

impl HeldError {
    /// A refusal at a place.
    #[must_use]
    pub fn of(path: &Path, why: Refusal) -> Self {
        Self { path: path.to_owned(), why }
    }

    pub(super) fn io(path: &Path, error: Errno) -> Self {
        Self::of(path, Refusal::Io(error.into()))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The reason.
    #[must_use]
    pub const fn why(&self) -> &Refusal {
        &self.why
    }

    /// Whether there is nothing of that name.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&self.why, Refusal::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Whether the place itself is refused, and not the disk.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        !matches!(&self.why, Refusal::Io(_))
    }

    /// Stable, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match &self.why {
            Refusal::Link => "E_LINK",
            Refusal::HardLinks { .. } => "E_HARD_LINK",
            Refusal::Owner { .. } => "E_OWNER",
            Refusal::Writable => "E_WRITABLE",
            Refusal::Kind { .. } => "E_KIND",
            Refusal::Path => "E_PATH",
            Refusal::Io(_) => "E_IO",
        }
    }
}

impl std::fmt::Display for HeldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (code, path) = (self.code(), self.path.display());
        match &self.why {
            Refusal::Link => write!(
                f,
                "{code}: {path} is a link, and root follows none: it was left as it is. Find out who made it (`ls -la`), \
                 remove it, and run this again; a folder is named where it really is"
            ),
            Refusal::HardLinks { names } => write!(
                f,
                "{code}: {path} has {names} names, so it may be a file of another place: it was left as it is. Find the others \
                 (`find / -xdev -samefile {path}`), remove this one, and run this again"
            ),
            Refusal::Owner { uid } => write!(
                f,
                "{code}: {path} belongs to user {uid}, who should own nothing there: it was left as it is. Find out who made \
                 it (`ls -la`), give it to the right user or remove it, and run this again"
            ),
            Refusal::Writable => write!(
                f,
                "{code}: others than root may write in {path}, so nothing in it is believed or removed: `chmod go-w {path}`"
            ),
            Refusal::Kind { wanted } => {
                write!(
                    f,
                    "{code}: {path} is no {wanted}: it was left as it is. Look at it and run this again"
                )
            }
            Refusal::Path => {
                write!(f, "{code}: {path} names nothing that could be made there: give a whole path")
            }
            Refusal::Io(_) => write!(f, "{code}: {path} cannot be used"),
        }
    }
}

impl std::error::Error for HeldError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.why {
            Refusal::Io(error) => Some(error),
            Refusal::Link
            | Refusal::HardLinks { .. }
            | Refusal::Owner { .. }
            | Refusal::Writable
            | Refusal::Kind { .. }
            | Refusal::Path => None,
        }
    }
}

impl From<HeldError> for std::io::Error {
    fn from(error: HeldError) -> Self {
        match error.why {
            Refusal::Io(error) => error,
            why @ (Refusal::Link
            | Refusal::HardLinks { .. }
            | Refusal::Owner { .. }
            | Refusal::Writable
            | Refusal::Kind { .. }
            | Refusal::Path) => {
                Self::new(std::io::ErrorKind::PermissionDenied, HeldError { path: error.path, why })
            }
        }
    }
}
