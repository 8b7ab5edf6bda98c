//! The store on SQLite: one group-committing writer and a few readers.
//!
//! In: typed requests of `api` and `task`. Out: what is durable. A write is answered only after its commit reached the
//! disk (`synchronous=FULL`); requests that arrive while one commit runs share the next. "Not found" is `None`, not an
//! error; what the rules of `domain` refuse changes nothing. Times, ids and randomness come with the request.
//!
//! ```text
//! request ─► bounded queue ─► writer thread: BEGIN · job · job · … · COMMIT ─► every answer
//! request ─► reader (one of four connections, sees the last commit)
//! ```
//!
//! The methods of [`Store`] say nothing of SQLite; a second engine would stand behind the same list. Deliberately
//! absent: policy. Which SQL belongs to which thing is one file each.

mod certificates;
mod checkin;
mod checkin_request;
mod columns;
mod desired;
mod enrollment_requests;
mod epochs;
mod escrow;
mod escrow_notices;
mod events;
mod hosts;
mod idempotency;
mod invites;
mod jobs;
mod liveness;
mod operators;
mod prune;
mod readers;
mod readmission;
mod renewal;
mod restore_orders;
mod restores;
mod schema;
mod webhook;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

pub use certificates::CertificateRecord;
pub use checkin::{CheckinReply, Update};
pub use checkin_request::{Checkin, SectionTexts};
pub use desired::{Put, PutDone};
pub use enrollment_requests::{Approval, EnrollmentReply, EnrollmentRequestRecord, NewEnrollmentRequest};
pub use escrow::{EscrowCaller, EscrowError, EscrowSelector};
pub use escrow_notices::{NoticeEnd, OutgoingNotice};
pub use events::EventFilter;
pub use hosts::HostRecord;
pub use idempotency::{By, Claim};
pub use invites::{InviteMade, InviteRequestError, NewInvite, RedeemError, Redemption};
pub use jobs::{JobDone, SubmitJob};
pub use liveness::HostContact;
pub use operators::{NewOperator, OperatorError, OperatorRecord, TokenMade};
pub use readers::PAGE_MAX;
pub use readmission::EnrollmentRequestError;
pub use renewal::{RenewError, Renewal};
pub use restore_orders::{NewWithdrawal, WithdrawError};
pub use restores::{NewRestore, Redeemed, RestoreError, RestoreRedemption, RestoreRequestError};
pub use webhook::Outgoing;
pub use writer::WriterThread;

use readers::Readers;
use writer::Job;

/// Requests that may wait for the writer. Each holds at most one report (1 MiB), mostly some kilobytes.
const QUEUE_MAX: usize = 1024;

/// What the hub keeps. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    writer: mpsc::Sender<Box<dyn Job>>,
    readers: Readers,
    /// Counts commits that wrote an event.
    events: watch::Receiver<u64>,
}

/// Why the store could not do what was asked, though nothing was wrong with the request.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Too much waits already.
    #[error("the hub is busy: ask again a little later")]
    Busy,
    /// The writer has ended.
    #[error("the hub is stopping")]
    Stopped,
    /// SQLite says no.
    #[error("the database could not {action}: look at its disk and at the hub's log")]
    Sqlite {
        /// What was to be done.
        action: &'static str,
        /// What SQLite says.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// What is written cannot be read back.
    #[error("the database holds something this hub cannot read, when asked to {action}")]
    Damaged {
        /// What was to be done.
        action: &'static str,
        /// What it is.
        #[source]
        source: Arc<serde_json::Error>,
    },
}

/// Why a write was not done.
#[derive(Debug)]
pub enum WriteError<E> {
    /// The rules refuse it.
    Refused(E),
    /// The idempotency key was used with another request.
    KeyReused,
    /// The store could not.
    Store(StoreError),
}

impl<E> From<StoreError> for WriteError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Why the closure of a write ended without a value.
enum Failed<E> {
    Refused(E),
    KeyReused,
    Sqlite(rusqlite::Error),
    Json(serde_json::Error),
}

impl<E> From<rusqlite::Error> for Failed<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl<E> From<serde_json::Error> for Failed<E> {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// Why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be made.
    #[error("{path} cannot be opened: the hub's user must be able to write it")]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// SQLite says no.
    #[error("{path} cannot be opened as a database")]
    Sqlite {
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// Written by a newer hub.
    #[error(
        "{path} was written by a newer hub (schema {found}, this one knows up to {known}): install that one"
    )]
    Newer {
        path: PathBuf,
        found: u32,
        /// The newest schema this hub knows.
        known: u32,
    },
    /// Another program's file.
    #[error("{path} is a database of another program: choose another folder")]
    Foreign { path: PathBuf },
    /// The system gives no thread.
    #[error("the writer of {path} cannot be started")]
    Thread {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Store {
    /// Opens the database, made when it is not there, and brings its schema up to date.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<(Self, WriterThread), OpenError> {
        let connection = schema::open_writer(path)?;
        let readers = Readers::open(path)?;
        let (sender, inbox) = mpsc::channel(QUEUE_MAX);
        let (announce, events) = watch::channel(0);
        let thread = writer::start(connection, inbox, announce)
            .map_err(|source| OpenError::Thread { path: path.to_owned(), source })?;
        Ok((Self { inner: Arc::new(Inner { writer: sender, readers, events }) }, thread))
    }

    /// Told at every commit that wrote an event.
    #[must_use]
    pub fn events_written(&self) -> watch::Receiver<u64> {
        self.inner.events.clone()
    }

    /// Whether both writer and readers answer.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.read("look whether it answers", |connection| connection.query_row("SELECT 1", [], |_| Ok(())))
            .await?;
        let answer = self.write("look whether it answers", writer::Shape::Single, |_| {
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        answer.await.map_err(StoreError::from)
    }
}

/// A write that no rule can refuse.
impl From<WriteError<std::convert::Infallible>> for StoreError {
    fn from(error: WriteError<std::convert::Infallible>) -> Self {
        match error {
            WriteError::Refused(never) => match never {},
            // Only mutations with a key get here, and they have rules.
            WriteError::KeyReused => Self::Busy,
            WriteError::Store(error) => error,
        }
    }
}
