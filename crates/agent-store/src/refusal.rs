//! When writes are refused, and what ends that.
//!
//! ```text
//! sound ──(disk full)──▶ full ──(a trial write succeeds)──▶ sound
//!   └───(I/O error, failed sync, damage while running)──▶ broken, until the agent is started again
//! at the start: damaged and set aside ──▶ damaged, until a person has decided
//! another host took this one's place ──▶ replaced, for good
//! ```
//! Input: SQLite's errors, every one of which passes [`note`] on the thread that did the work. Output: the state, with
//! a text that says who must do what. Reading goes on in each state. After a failed sync the kernel marks the lost
//! pages as clean. A retry on the same file would prove nothing, so there is none.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use rusqlite::ErrorCode as Sqlite;
use tokio::sync::watch;

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The disk is full. It ends by itself.
    #[error(
        "the disk under {} is full: nothing new is begun and no request is taken; free some space (`df -h {}`), and the \
         agent goes on by itself", folder.display(), folder.display()
    )]
    Full {
        /// The state folder.
        folder: PathBuf,
    },
    /// The disk, or the file on it, failed under us. It ends with a new start.
    #[error(
        "the agent's records in {} cannot be written any more ({words}): nothing new is begun; look at the disk \
         (`dmesg`, SMART), mend it, then `systemctl restart agentd`", folder.display()
    )]
    Broken {
        /// The state folder.
        folder: PathBuf,
        words: String,
    },
    /// The file was damaged when the agent started. It ends when a person has decided.
    #[error(
        "the agent's records were damaged and set aside as {}: it only looks and tells; stop it (`systemctl stop agentd`), then \
         put a sound copy of agent.db in its place, or remove agent.db to begin anew (its guests must be adopted then), \
         and start it", quarantined.display()
    )]
    Damaged {
        /// Where the damaged file is stored.
        quarantined: PathBuf,
    },
    /// Another host took this one's place. It does not end.
    #[error(
        "another box took this one's place, ordered by {by}: this one stands still, so that no two do the same work; to use it \
         again, stop it, empty its state folder, and enrol it as a new host"
    )]
    Replaced {
        /// Who ordered it, and when.
        by: String,
    },
}

impl Refusal {
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Full { .. } => ErrorCode::DiskFull,
            Self::Broken { .. } => ErrorCode::RecordsBroken,
            Self::Damaged { .. } => ErrorCode::RecordsDamaged,
            Self::Replaced { .. } => ErrorCode::Replaced,
        }
    }

    /// As it is reported.
    #[must_use]
    pub fn problem(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}

/// The fault of the disk that an error of SQLite reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Full,
    Broken(String),
}

thread_local! {
    /// The worst fault on this thread since it was last read.
    static NOTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Judges one error. None is a refusal of the statement, not of the disk.
fn fault(error: &rusqlite::Error) -> Option<Fault> {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return None };
    match failure.code {
        Sqlite::DiskFull => Some(Fault::Full),
        // The shared index next to the log could not grow.
        Sqlite::SystemIoFailure if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
            Some(Fault::Full)
        }
        Sqlite::SystemIoFailure
        | Sqlite::ReadOnly
        | Sqlite::CannotOpen
        | Sqlite::DatabaseCorrupt
        | Sqlite::NotADatabase => Some(Fault::Broken(error.to_string())),
        _ => None,
    }
}

/// The refusal that an error at the start sets for this run.
pub(super) fn at_start(folder: &Path, error: &rusqlite::Error) -> Option<Refusal> {
    Some(refusal(folder, fault(error)?))
}

fn refusal(folder: &Path, fault: Fault) -> Refusal {
    let folder = folder.to_owned();
    match fault {
        Fault::Full => Refusal::Full { folder },
        Fault::Broken(words) => Refusal::Broken { folder, words },
    }
}

/// Every error of SQLite passes here, on the thread that did the work.
pub(super) fn note(error: &rusqlite::Error) {
    let Some(fault) = fault(error) else { return };
    NOTED.with(|noted| match noted.take() {
        Some(Fault::Broken(words)) => noted.set(Some(Fault::Broken(words))),
        Some(Fault::Full) | None => noted.set(Some(fault)),
    });
}

/// Takes the fault that was noted on this thread.
pub(super) fn noted() -> Option<Fault> {
    NOTED.with(Cell::take)
}

/// The state. Shared by every handle of one store.
#[derive(Debug)]
pub(super) struct Health {
    folder: PathBuf,
    now: watch::Sender<Option<Refusal>>,
}

/// Whether a state is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Yes,
    No,
}

impl Health {
    pub(super) fn new(folder: &Path, at_start: Option<Refusal>) -> Self {
        Self { folder: folder.to_owned(), now: watch::channel(at_start).0 }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.now.borrow().clone()
    }

    /// Takes a fault in. The worse state stays: a broken disk that becomes full stays broken.
    pub(super) fn take(&self, fault: Fault) -> News {
        let refusal = refusal(&self.folder, fault);
        let changed = self.now.send_if_modified(|now| {
            let worse =
                matches!((&*now, &refusal), (None, _) | (Some(Refusal::Full { .. }), Refusal::Broken { .. }));
            if worse {
                tracing::error!(%refusal, "the agent's records refuse");
                *now = Some(refusal);
            }
            worse
        });
        if changed { News::Yes } else { News::No }
    }

    /// Another host replaced this one. This state has priority over all others.
    pub(super) fn stand_still(&self, by: String) {
        self.now.send_replace(Some(Refusal::Replaced { by }));
    }

    /// A trial write succeeded: a full disk has room again. Nothing else is ended by that.
    pub(super) fn has_room(&self) -> News {
        let changed = self.now.send_if_modified(|now| {
            let full = matches!(now, Some(Refusal::Full { .. }));
            if full {
                tracing::info!("the disk has room again: the agent goes on");
                *now = None;
            }
            full
        });
        if changed { News::Yes } else { News::No }
    }
}

#[cfg(test)]
mod tests;
