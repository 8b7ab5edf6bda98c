//! Why the database could not be read or written.

use std::path::PathBuf;

use super::refusal::{self, Refusal};

/// A call to the store that did not end in an answer. Nothing of it was kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store's thread is gone: the agent is stopping.
    #[error("the database is closed: the agent is stopping")]
    Closed,
    /// Nothing is written at present.
    #[error(transparent)]
    Refusing(#[from] Refusal),
    #[error("the database refused to {what}: check the disk's space and health")]
    Sqlite {
        /// The attempted action.
        what: &'static str,
        #[source]
        source: rusqlite::Error,
    },
    /// A row that this program could not have written.
    #[error("the database holds {what} that cannot be read: it was changed by hand, or by a newer agentd")]
    Unreadable {
        what: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An operation whose journal a newer agent wrote.
    #[error(
        "an operation was opened under version {found} of the journal, and this agentd knows {known}: install the newer agentd again"
    )]
    NewerJournal {
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// There is no such thing.
    #[error("the database knows no {what} {id}")]
    Unknown { what: &'static str, id: String },
}

/// A database that cannot be opened at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another agent holds it.
    #[error("another agentd runs on {}: stop it first", .0.display())]
    Held(PathBuf),
    /// The folder or the lock file cannot be used.
    #[error("{} cannot be used: give it to the agent's user", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Written by a newer agent.
    #[error("the database is of version {found}, this agentd knows up to {known}: install the newer agentd")]
    Newer {
        /// Of the file.
        found: i64,
        /// Of this program.
        known: i64,
    },
    /// A build on trial, and records that the build before could not read any more.
    #[error(
        "the database is of version {found}, from before builds were tried: install this version by its package \
         (`apt install holdfast-agent`)"
    )]
    TrialTooEarly {
        /// Of the file.
        found: i64,
    },
    /// SQLite refused for a reason that is not damage.
    #[error("the database {} cannot be opened", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// For `map_err`: the attempted action.
    pub(super) fn sqlite(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| {
            refusal::note(&source);
            Self::Sqlite { what, source }
        }
    }

    /// For `map_err`: the thing that could not be read.
    pub(super) fn unreadable<E>(what: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Unreadable { what, source: source.into() }
    }
}
