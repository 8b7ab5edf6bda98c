//! The store on SQLite: one group-committing writer and a few readers.
//!
//! A write is answered only after its commit reached the disk (`synchronous=FULL`); requests that arrive while one commit
//! runs share the next. A check-in that says nothing new is answered from memory.
//!
//! ```text
//! quiet check-in ─► settled hosts ─► its answer
//! request ─► bounded queue ─► writer thread: BEGIN · job · job · … · COMMIT ─► every answer
//! request ─► reader (one of four connections, sees the last commit)
//! ```
//!
//! Deliberately absent: policy. Which SQL belongs to which thing is one file each.

mod access;
mod alerts;
mod audit_heads;
mod authenticated_host;
mod certificates;
mod checkin;

mod columns;
mod customers;
mod desired;
mod enrollment_requests;
mod epochs;
mod escrow;
mod escrow_notices;
mod events;
mod fence;
mod grants;
mod guest_audit;
mod guest_jobs;
mod host_certificates;
mod host_labels;
mod host_row;
mod hosts;
mod idempotency;
mod image_approvals;
mod invites;
mod jobs;
mod leases;
mod liveness;
mod machine_tokens;
mod objections;
mod oidc;
mod operators;
mod page_changes;
mod prune;
mod readers;
mod readmission;
mod release_offers;
mod releases;
mod renewal;
mod replicas;
mod restore_certificates;
mod restore_orders;
mod restores;
mod rollouts;
mod schema;
mod sessions;
mod settled;
mod sign_in;
mod state_snapshots;
mod transfer;
mod tunnel_orders;
mod usage;
mod webhook;
mod work_orders;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};

pub use schema::known as schema_number;
pub use transfer::{SqliteImport, SqliteSnapshot, new_file, snapshot};

use readers::Readers;
use settled::{Scope, SettledHosts};
use writer::Job;

use crate::domain::alerting::AlertContext;
use crate::store::{SharedStore, Store, StoreError, WriterThread};

/// Requests that may wait for the writer. Each holds at most one report (1 MiB), mostly some kilobytes.
const QUEUE_MAX: usize = 1024;

/// Reads every page, and names three faults at most.
const CHECK: &str = "PRAGMA quick_check(3)";

/// The hub's database in one file.
pub struct Sqlite {
    writer: mpsc::Sender<Box<dyn Job>>,
    readers: Readers,
    settled: SettledHosts,
    /// What decisions on alerts depend on.
    alerts: AlertContext,
    /// Counts commits that wrote an event.
    events: watch::Receiver<u64>,
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
    /// Written by an older hub, and only read here.
    #[error(
        "{path} has schema {found}, this hub has {known}, and nothing was changed: start this hub on it once, or use the version \
         that wrote it"
    )]
    Older { path: PathBuf, found: u32, known: u32 },
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

impl Sqlite {
    /// Opens the database, made when it is not there, and brings its schema up to date.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path, alerts: AlertContext) -> Result<(SharedStore, WriterThread), OpenError> {
        let connection = schema::open_writer(path)?;
        let readers = Readers::open(path)?;
        let (sender, inbox) = mpsc::channel(QUEUE_MAX);
        let (announce, events) = watch::channel(0);
        let settled = SettledHosts::default();
        let left = checkin::settled(&connection);
        settled.put(left.map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })?);
        let thread = writer::start(connection, inbox, settled.clone(), announce)
            .map_err(|source| OpenError::Thread { path: path.to_owned(), source })?;
        Ok((
            Arc::new(Self { writer: sender, readers, settled, alerts, events }),
            WriterThread::new(vec![thread]),
        ))
    }
}

#[async_trait]
impl Store for Sqlite {
    fn events_written(&self) -> watch::Receiver<u64> {
        self.events.clone()
    }

    async fn check_database(&self) -> Result<Vec<String>, StoreError> {
        self.read("check itself", |connection| {
            let check = || -> rusqlite::Result<Vec<String>> {
                connection.prepare(CHECK)?.query_map([], |row| row.get(0))?.collect()
            };
            match check() {
                Ok(said) => Ok(said.into_iter().filter(|line| line != "ok").collect()),
                // Damage that the check itself stumbles over.
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
                    Ok(vec![error.to_string()])
                }
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.read("look whether it answers", |connection| connection.query_row("SELECT 1", [], |_| Ok(())))
            .await?;
        let answer =
            self.write_within("look whether it answers", writer::Shape::Single, Scope::NoHost, |_| {
                Ok::<_, Failed<std::convert::Infallible>>(())
            });
        answer.await.map_err(StoreError::from)
    }
}
