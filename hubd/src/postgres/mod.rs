//! The store on PostgreSQL: one writer, batchers of check-ins, readers.
//!
//! A write is answered only after its commit is durable at the server; requests that arrive while one commit runs share
//! the next. Check-ins of many hosts share statements, unless one has an effect beyond its host's own rows.
//!
//! ```text
//! check-in ─► contacts ─► one statement for all hosts that have no news ─► their answers
//!         └─► reports ──► read · decide · write, once for all hosts that have news ─► their answers
//!                └─► those with effects ─┐
//! request ─► bounded queue ─► writer thread: BEGIN · lock · job · job · … · COMMIT ─► every answer
//! request ─► reader (one of four sessions, sees the last commit)
//! change of any hub ─► follower (once a second) ─► held check-ins and tasks of this hub
//! ```
//!
//! Writers of all hubs on one database take turns by a lock that ends with the transaction, so no rule sees a half-done
//! change of another and no transaction is lost to a conflict (`docs/adr/0113`). Deliberately absent: policy, and memory of
//! hosts between requests. Which SQL belongs to which thing is one file each.

mod access;
mod alerts;
mod announce;
mod audit_heads;
mod authenticated_host;
mod certificates;
mod checkin;
mod columns;
mod contacts;
mod customers;
mod desired;
mod enrollment_requests;
mod epochs;
mod escrow;
mod escrow_notices;
mod events;
mod fence;
mod follower;
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
mod reports;
mod restore_certificates;
mod restore_orders;
mod restores;
mod rollouts;
mod schema;
mod server;
mod sessions;
mod sign_in;
mod sql;
mod state_snapshots;
mod tls;
mod transfer;
mod tunnel_orders;
mod usage;
mod waiting;
mod webhook;
mod work_orders;
mod writer;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};

pub use schema::known as schema_number;
pub use schema::{MigrateError, Migrated, SchemaError};
pub use server::{ConnectError, DatabaseUrl, DatabaseUrlError, Server};
pub use transfer::{PostgresImport, PostgresSnapshot, empty_database, snapshot};

use announce::Announcer;
use contacts::Contact;
use follower::FollowerOutputs;
use readers::Readers;
use reports::Report;
use writer::Job;

use crate::domain::alerting::AlertContext;
use crate::store::{ChangedHosts, SharedStore, Store, StoreError, WriterThread};

/// Requests that may wait for a thread. Each holds at most one report (1 MiB), mostly some kilobytes.
const QUEUE_MAX: usize = 1024;

/// Looks of the follower that may wait for the task that wakes check-ins.
const LOOKS_MAX: usize = 16;

/// The hub's database at a server.
pub struct Postgres {
    writer: mpsc::Sender<Box<dyn Job>>,
    contacts: mpsc::Sender<Contact>,
    reports: mpsc::Sender<Report>,
    readers: Readers,
    /// What decisions on alerts depend on.
    alerts: AlertContext,
    /// Counts commits that wrote an event.
    events: watch::Receiver<u64>,
    /// What the follower tells, until a task takes it.
    changed: Mutex<Option<ChangedHosts>>,
    /// The follower ends when this does.
    _followed: Arc<()>,
}

/// Why the closure of a write ended without a value.
enum Failed<E> {
    Refused(E),
    KeyReused,
    Engine(sql::Error),
    Json(serde_json::Error),
}

impl<E> From<sql::Error> for Failed<E> {
    fn from(error: sql::Error) -> Self {
        Self::Engine(error)
    }
}

impl<E> From<serde_json::Error> for Failed<E> {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// Who works on a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Users {
    /// A hub that serves, with others beside it.
    Hub,
    /// A command during which no hub may serve.
    One,
    /// A command that writes a row or two, also while a hub serves.
    Several,
}

/// Why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(
        "a hub serves on {0}, or a command works on all of it, and nothing was done: stop it, or wait for its end"
    )]
    Served(String),
    #[error("the lock of the hub that serves cannot be taken")]
    Lock(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the newest change in the database cannot be read")]
    Position(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system gives no thread.
    #[error("a thread for the database cannot be started")]
    Thread(#[source] std::io::Error),
}

impl Postgres {
    /// Opens the database, whose schema must be one that this hub can work with. Blocks.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        server: &Server,
        alerts: AlertContext,
        users: Users,
    ) -> Result<(SharedStore, WriterThread), OpenError> {
        let session = server.session()?;
        schema::check(&session)?;
        if !writer::serves(&session, users).map_err(|error| OpenError::Lock(Box::new(error)))? {
            return Err(OpenError::Served(server.name()));
        }
        let readers = Readers::new(server.clone());
        let (writer, jobs) = mpsc::channel(QUEUE_MAX);
        let (contacts, heard) = mpsc::channel(QUEUE_MAX);
        let (reports, arrived) = mpsc::channel(QUEUE_MAX);
        let (here, events) = watch::channel(0);
        let (here, followed) = (Arc::new(here), Arc::new(()));
        let mut announce = Announcer { here: Arc::clone(&here), others: None };
        let (mut threads, mut changed) = (Vec::new(), None);
        if users == Users::Hub {
            let seen = follower::position(&session, &alerts)
                .map_err(|error| OpenError::Position(Box::new(error)))?;
            let (others, due) = std::sync::mpsc::sync_channel(1);
            announce.others = Some(others);
            threads.push(announce::start(server.clone(), due).map_err(OpenError::Thread)?);
            let (hosts, taken) = mpsc::channel(LOOKS_MAX);
            changed = Some(taken);
            let tells = FollowerOutputs { changed: hosts, events: here, alerts: alerts.clone() };
            let wanted = Arc::downgrade(&followed);
            threads.push(follower::start(server.clone(), seen, tells, wanted).map_err(OpenError::Thread)?);
        }
        threads
            .push(writer::start(server.clone(), users, session, jobs, announce).map_err(OpenError::Thread)?);
        threads.push(contacts::start(server.clone(), heard).map_err(OpenError::Thread)?);
        threads.push(reports::start(server.clone(), arrived).map_err(OpenError::Thread)?);
        let changed = Mutex::new(changed);
        let store = Self { writer, contacts, reports, readers, alerts, events, changed, _followed: followed };
        Ok((Arc::new(store), WriterThread::new(threads)))
    }
}

#[async_trait]
impl Store for Postgres {
    fn events_written(&self) -> watch::Receiver<u64> {
        self.events.clone()
    }

    /// The server checks each page that it reads, where it was made with checksums. Here every row is read once, so that
    /// damage is found before the row is needed.
    async fn check_database(&self) -> Result<Vec<String>, StoreError> {
        self.read("check itself", schema::faults).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.read("look whether it answers", |connection| connection.query_row("SELECT 1", [], |_| Ok(())))
            .await?;
        let answer = self.write("look whether it answers", |_| Ok::<_, Failed<std::convert::Infallible>>(()));
        answer.await.map_err(StoreError::from)
    }
}
