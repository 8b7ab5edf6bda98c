//! The agent's database: one SQLite file with one writer.
//!
//! `agent.db`, in WAL mode with `synchronous=FULL`.
//!
//! Input: typed calls. Output: typed answers once the change is on disk, and a change notice that wakes the reconcile
//! loop and the report. All work runs on its own thread behind a bounded queue, so no other thread ever blocks on the
//! disk. Only in a test under virtual time does the caller's thread do it. Changes that belong together are one
//! transaction: an operation and its audit line, an event and its change to the guest. Deliberately absent: decisions;
//! the rules of the journal are those of `operation::log`, the rules of documents `protocol::generation`.
//!
//! | module | keeps |
//! | --- | --- |
//! | [`audit_file`] | the audit, read while an agent runs |
//! | [`segment`] | parts of the audit that are stored in files |
//! | [`audit`] | one hash-chained line per decision and effect |
//! | [`desired`] | documents by generation, the last good one, the last refused one |
//! | [`guest`] | our guests: place, volumes, reserved numbers |
//! | [`access`] | claims, tokens, hellos; hellos that say nothing new only in memory (`heard`) |
//! | [`start_failures`] | since when the starts of a guest count against it |
//! | [`idempotency`] | answers to repeated requests |
//! | [`journal`] | operations and their events |
//! | [`check`] | nothing: checks whether the file is sound |
//! | [`compact`] | ended operations, once their events are gone |
//! | `alike` | ended operations for people; attempts that failed alike are one entry |
//! | [`parked`] | operations left for a person, and the answers |
//! | [`job`], `mail` | signed jobs: taken once, and the reports on them |
//! | `tunnel_restarts` | restarts of tunnels that were asked for |
//! | `controller` | controllers that guests exchange for their own |
//! | `release` | code that operators let see customers' data |
//! | `break_glass` | nothing of its own: lines of the audit about ways into the host |
//! | [`job_intake`] | jobs from the hub: judged, then taken once |
//! | [`roster`] | who may sign here, and which life of the file it is |
//! | [`recovery`] | the recovery plan of each start |
//! | [`snapshot`] | snapshots that exist |
//! | [`copies`] | copies that were restored next to guests |
//! | `brake_release` | signed releases of the brake, and their use |
//! | `growth` | the growth of guests within a day, and the signed growth |
//! | `withdrawn` | orders to restore this host that were taken back |
//! | [`backup`] | backups that were found |
//! | [`inherited`] | guests of a lost host that this one replaced |
//! | [`protection`] | the backup promises for each guest |
//! | `quota` | how often each guest asked for what within a day |
//! | [`work_order`] | orders of the hub: taken once, and the reports on them |
//! | [`request`] | requests of guests, until they are operations or have ended |
//! | [`storage`] | storage targets that operators approved |
//! | [`escrow`] | recovery codes by their numbers, and the wrapped keys |
//! | [`restore_certificate`] | the newest restore certificate of each guest |
//! | [`window`] | quiesce windows that were granted |
//! | [`guest_view`] | a guest's snapshots and backups, for itself |
//! | [`records`] | all of it, in the form that the plan takes |
//! | `answer_cache` | nothing: answers, while nothing is written |
//! | `reported_conditions` | the conditions of the last report, with their beginnings |
//! | [`rescue`] | nothing: reads the file without a running agent |
//! | `host_maintenance` | the last maintenance of this host |
//! | `replaced` | that another host replaced this one |
//! | [`refusal`] | when writes are refused, and what ends that |
//! | `migration` | the version of the file, and the migration from every older one |
#![forbid(unsafe_code)]

pub mod access;
mod alike;
mod answer_cache;
mod applied;
pub mod audit;
pub mod audit_file;
pub mod backup;
pub mod backup_state;
mod brake_release;
mod break_glass;
mod cancel;
pub mod check;
mod columns;
pub mod compact;
mod controller;
pub mod copies;
pub mod desired;
mod error;
pub mod escrow;
#[cfg(feature = "testing")]
pub mod fault;
mod growth;
pub mod guest;
pub mod guest_audit;
pub mod guest_view;
mod hello_cache;
mod host_maintenance;
pub mod idempotency;
pub mod inherited;
pub mod job;
mod job_end;
pub mod job_intake;
mod job_reports;
pub mod journal;
mod journal_read;
mod kinds;
mod migration;
mod open;
pub mod own_audit;
pub mod parked;
pub mod protection;
mod quota;
mod record;
pub mod records;
pub mod recovery;
pub mod refusal;
mod release;
mod replaced;
mod reported_conditions;
pub mod request;
pub mod rescue;
pub mod restore_certificate;
pub mod restore_test;
pub mod roster;
pub mod segment;
pub mod snapshot;
pub mod start_failures;
pub mod storage;
mod surviving_backups;
pub mod test_access;
mod tier;
pub mod token_holder;
mod tunnel_restarts;
pub mod window;
mod withdrawn;
pub mod work_order;

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use agent_core::model::records::Records;
use agent_core::operation::progress::OperationState;
use holdfast_protocol::generation::{Generation, Numbered};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::work_order::DiagnosticText;
use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

pub use error::{OpenError, StoreError};
pub use migration::BuildStanding;
pub use refusal::Refusal;
use refusal::{Fault, Health, News};

/// Calls that may wait for the store's thread. Each is a few milliseconds; more than this means the disk hangs, and the
/// caller waits in the queue.
const QUEUE: usize = 64;

/// Counts the changes of each part, so that a listener knows whether it is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Of the desired document, accepted or refused.
    pub desired: u64,
    /// Of guests: hellos, claims, places.
    pub guests: u64,
    pub operations: u64,
    /// Of a person's answers about parked operations.
    pub answers: u64,
    /// Of whether the records can be written.
    pub health: u64,
    /// Of requests that wait, or no longer do.
    pub requests: u64,
    /// Of signed jobs, and of the operators.
    pub jobs: u64,
    /// Of quiesce windows.
    pub windows: u64,
    /// Of recovery codes, and of copies of wrapped keys.
    pub escrow: u64,
}

/// The part that a call changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    Desired,
    Guests,
    Operations,
    Answers,
    Health,
    Requests,
    Jobs,
    Windows,
    Escrow,
}

/// A quarter of a mebibyte, written and taken back: the space stays with the file, for the first calls afterwards.
const TRIAL: &str = "BEGIN IMMEDIATE;
    INSERT OR REPLACE INTO meta (key, value) VALUES ('trial', hex(zeroblob(131072)));
    COMMIT;
    DELETE FROM meta WHERE key = 'trial';";

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Where the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    OwnThread,
    CallersThread,
}

/// Where the work is done.
#[derive(Clone)]
enum Worker {
    Thread(mpsc::Sender<Job>),
    /// With the lock that keeps a second agent away.
    Caller(Arc<Mutex<(Connection, open::Hold)>>),
}

/// The handle. Cheap to clone; the file closes when the last one is dropped.
#[derive(Clone)]
pub struct Store {
    worker: Worker,
    changes: Arc<watch::Sender<Changes>>,
    health: Arc<Health>,
    heard: Arc<hello_cache::HelloCache>,
    returned: Arc<controller::ReturnedBuilds>,
    answered: Arc<controller::AnsweredTrials>,
    /// The state folder.
    folder: PathBuf,
    /// How large the file was when it was measured last.
    bytes: Arc<AtomicU64>,
    /// Hellos before this went to an earlier run of the agent.
    listening_since: Timestamp,
    mail: Arc<job_reports::Mail>,
    kept: Arc<backup::BackupCache>,
    applied: Arc<applied::KeptApplied>,
    unwritten: Arc<window::Unwritten>,
    changed_rows: Arc<answer_cache::ChangedRows>,
    answers: Arc<Answers>,
}

/// What the reconcile loop asks in each cycle, as it was last answered.
#[derive(Default)]
struct Answers {
    records: answer_cache::CachedAnswer<(Generation, i64), Arc<Records>>,
    open_operations: answer_cache::CachedAnswer<(), Vec<OperationState>>,
    next_due_job: answer_cache::CachedAnswer<(), Option<Timestamp>>,
    open_readings: answer_cache::CachedAnswer<(), Vec<work_order::OpenReading>>,
    waiting_text: answer_cache::CachedAnswer<(), Option<DiagnosticText>>,
    released: answer_cache::CachedAnswer<(Numbered, i64), Vec<(GuestUid, OperationKind)>>,
}

impl Store {
    /// A listener for changes. It is woken after the change is on disk.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }

    /// Why writes are refused at present, if they are. Nothing new is begun then; reading goes on.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.health.refusal()
    }

    /// Whether a disk that was full has room again, by a trial write of more than any call writes. Nothing is tried in any
    /// other state.
    pub async fn try_room(&self) {
        if !matches!(self.refusal(), Some(Refusal::Full { .. })) {
            return;
        }
        let tried = self.run(|connection| {
            let failed = StoreError::sqlite("try whether there is room");
            let trial = connection.execute_batch(TRIAL).map_err(failed);
            if trial.is_err() && !connection.is_autocommit() {
                // Whatever this returns, the transaction is over.
                drop(connection.execute_batch("ROLLBACK"));
            }
            trial
        });
        let tried: Result<(), StoreError> = tried.await;
        if tried.is_ok() && self.health.has_room() == News::Yes {
            self.report(Part::Health);
        }
    }

    /// The lock is held by the worker, until after the file is closed.
    fn start(
        mut connection: Connection,
        health: Health,
        (lock, work): (open::Hold, Work),
        listening_since: Timestamp,
    ) -> Result<Self, std::io::Error> {
        let worker = match work {
            Work::CallersThread => Worker::Caller(Arc::new(Mutex::new((connection, lock)))),
            Work::OwnThread => {
                let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
                std::thread::Builder::new().name("store".to_owned()).spawn(move || {
                    while let Some(job) = queue.blocking_recv() {
                        job(&mut connection);
                    }
                    drop((connection, lock));
                })?;
                Worker::Thread(jobs)
            }
        };
        let (changes, _) = watch::channel(Changes::default());
        let folder = health.folder().to_owned();
        let (health, heard, mail) = (Arc::new(health), Arc::default(), Arc::default());
        let (kept, applied, unwritten) = (Arc::default(), Arc::default(), Arc::default());
        let (changes, bytes) = (Arc::new(changes), Arc::default());
        Ok(Self {
            worker,
            changes,
            health,
            heard,
            returned: Arc::default(),
            answered: Arc::default(),
            folder,
            bytes,
            listening_since,
            mail,
            kept,
            applied,
            unwritten,
            changed_rows: Arc::default(),
            answers: Arc::default(),
        })
    }

    async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    {
        let (fault, outcome) = self.on_the_file(work).await?;
        if let Some(fault) = fault
            && self.health.take(fault) == News::Yes
        {
            self.report(Part::Health);
        }
        outcome
    }

    /// Does the work, and returns a disk fault that occurred meanwhile.
    async fn on_the_file<T, E, F>(&self, work: F) -> Result<(Option<Fault>, Result<T, E>), StoreError>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    {
        let changed_rows = Arc::clone(&self.changed_rows);
        let work = move |connection: &mut Connection| {
            let outcome = work(connection);
            changed_rows.note(connection);
            (refusal::noted(), outcome)
        };
        let jobs = match &self.worker {
            Worker::Thread(jobs) => jobs,
            Worker::Caller(kept) => {
                let mut kept = kept.lock().map_err(|_| StoreError::Closed)?;
                return Ok(work(&mut kept.0));
            }
        };
        let (answer, waiting) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // If the caller was dropped, nothing waits for the answer. The work is done either way.
            drop(answer.send(work(connection)));
        });
        jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        waiting.await.map_err(|_| StoreError::Closed)
    }

    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.run(move |connection| work(connection)).await
    }

    /// One transaction, on disk when this returns. Listeners are notified afterwards.
    async fn write<T, E, F>(&self, part: Part, what: &'static str, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    {
        if let Some(refusal) = self.refusal() {
            return Err(StoreError::Refusing(refusal).into());
        }
        let done = self
            .run(move |connection| {
                let transaction = connection
                    .transaction_with_behavior(TransactionBehavior::Immediate)
                    .map_err(StoreError::sqlite(what))?;
                let done = work(&transaction)?;
                #[cfg(feature = "testing")]
                fault::before_commit().map_err(StoreError::sqlite(what))?;
                transaction.commit().map_err(StoreError::sqlite(what))?;
                #[cfg(feature = "testing")]
                fault::after_commit().map_err(StoreError::sqlite(what))?;
                Ok::<T, E>(done)
            })
            .await?;
        self.report(part);
        Ok(done)
    }

    fn report(&self, part: Part) {
        self.changes.send_modify(|changes| match part {
            Part::Nothing => {}
            Part::Desired => changes.desired += 1,
            Part::Guests => changes.guests += 1,
            Part::Operations => changes.operations += 1,
            Part::Answers => changes.answers += 1,
            Part::Health => changes.health += 1,
            Part::Requests => changes.requests += 1,
            Part::Jobs => changes.jobs += 1,
            Part::Windows => changes.windows += 1,
            Part::Escrow => changes.escrow += 1,
        });
    }
}

#[cfg(test)]
mod tests;
