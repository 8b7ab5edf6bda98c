//! The one writer: group commit.
//!
//! In: jobs from a bounded queue. Out: each job's answer, after the commit that holds its effect is on the disk. A job
//! that its own rules refuse, or that finds something damaged, is undone alone; when SQLite cannot go on, the whole batch
//! is rolled back and every job in it gets the error.

use rusqlite::{Connection, TransactionBehavior};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Failed, Sqlite};
use crate::store::{StoreError, WriteError};

/// Jobs that share a commit at most. More would make the first wait for the last without saving anything.
const BATCH_MAX: usize = 256;

/// How long a request waits for room in the queue before it is refused as busy.
const PLACE_WAIT: Duration = Duration::from_secs(5);

/// An open transaction.
pub(super) struct Tx<'a> {
    connection: &'a Connection,
    emitted: &'a Cell<bool>,
}

impl Tx<'_> {
    pub(super) fn mark_emitted(&self) {
        self.emitted.set(true);
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// What must be undone when a job is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nothing: the job refuses before it writes, or never. A job that fails in the middle costs its batch.
    Single,
    /// What the job wrote before it was refused.
    Several,
}

pub(super) trait Job: Send {
    /// Does the work. An error means that the whole batch is lost.
    fn run(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()>;
    /// Answers, after the commit or its failure.
    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>);
}

struct Work<F, T, E> {
    action: &'static str,
    shape: Shape,
    work: Option<F>,
    result: Option<Result<T, WriteError<E>>>,
    reply: oneshot::Sender<Result<T, WriteError<E>>>,
}

impl<F, T, E> Job for Work<F, T, E>
where
    F: FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send,
    T: Send,
    E: Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let before = tx.total_changes();
        if self.shape == Shape::Several {
            tx.prepare_cached("SAVEPOINT job")?.execute([])?;
        }
        let failed = match work(tx) {
            Ok(value) => {
                self.result = Some(Ok(value));
                if self.shape == Shape::Several {
                    tx.prepare_cached("RELEASE job")?.execute([])?;
                }
                return Ok(());
            }
            Err(Failed::Refused(refusal)) => WriteError::Refused(refusal),
            Err(Failed::KeyReused) => WriteError::KeyReused,
            Err(Failed::Json(source)) => {
                WriteError::Store(StoreError::Damaged { action: self.action, source: Arc::new(source) })
            }
            // One damaged row must not cost its neighbours their commit. But after some errors (a full disk) SQLite has
            // undone everything, and a job without a savepoint can be left out only when it wrote nothing.
            Err(Failed::Sqlite(error)) => {
                let wrote = tx.total_changes() != before;
                if tx.is_autocommit() || (self.shape == Shape::Single && wrote) {
                    return Err(error);
                }
                WriteError::Store(StoreError::Engine { action: self.action, source: Arc::new(error) })
            }
        };
        self.result = Some(Err(failed));
        if self.shape == Shape::Several {
            tx.prepare_cached("ROLLBACK TO job")?.execute([])?;
            tx.prepare_cached("RELEASE job")?.execute([])?;
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>) {
        let action = self.action;
        let answer = match (committed, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(WriteError::Store(StoreError::Stopped)),
            (Err(source), _) => Err(WriteError::Store(StoreError::Engine { action, source })),
        };
        // The caller may no longer wait for the answer; what is committed stays committed.
        drop(self.reply.send(answer));
    }
}

impl Sqlite {
    /// Hands work to the writer and waits for its commit.
    pub(super) async fn write<T, E>(
        &self,
        action: &'static str,
        shape: Shape,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Work { action, shape, work: Some(work), result: None, reply });
        match tokio::time::timeout(PLACE_WAIT, self.writer.reserve()).await {
            Err(_) => return Err(StoreError::Busy.into()),
            Ok(Err(_)) => return Err(StoreError::Stopped.into()),
            Ok(Ok(place)) => place.send(job),
        }
        answer.await.unwrap_or(Err(WriteError::Store(StoreError::Stopped)))
    }
}

/// The writer's thread. It ends when the last [`Sqlite`] is dropped and the queue is empty.
pub struct WriterThread {
    handle: JoinHandle<()>,
}

impl WriterThread {
    /// Waits for its end. Blocks.
    ///
    /// # Errors
    /// When the thread panicked.
    pub fn join(self) -> std::thread::Result<()> {
        self.handle.join()
    }
}

pub(super) fn start(
    connection: Connection,
    inbox: mpsc::Receiver<Box<dyn Job>>,
    announce: watch::Sender<u64>,
) -> std::io::Result<WriterThread> {
    let body = move || run(connection, inbox, &announce);
    let handle = std::thread::Builder::new().name("store-writer".to_owned()).spawn(body)?;
    Ok(WriterThread { handle })
}

fn run(mut connection: Connection, mut inbox: mpsc::Receiver<Box<dyn Job>>, announce: &watch::Sender<u64>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while let Some(first) = inbox.blocking_recv() {
        batch.push(first);
        let emitted = Cell::new(false);
        let committed = commit(&mut connection, &mut inbox, &mut batch, &emitted).map_err(Arc::new);
        if let Err(error) = &committed {
            tracing::error!(action = "commit", result = "failed", jobs = batch.len(), error = %error);
        }
        for job in batch.drain(..) {
            job.answer(committed.clone());
        }
        if emitted.get() && committed.is_ok() {
            announce.send_modify(|count| *count += 1);
        }
    }
}

/// Runs the first job and all that wait behind it, then commits.
fn commit(
    connection: &mut Connection,
    inbox: &mut mpsc::Receiver<Box<dyn Job>>,
    batch: &mut Vec<Box<dyn Job>>,
    emitted: &Cell<bool>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tx = Tx { connection: &transaction, emitted };
    let mut at = 0;
    while let Some(job) = batch.get_mut(at) {
        job.run(&tx)?;
        at += 1;
        if batch.len() < BATCH_MAX
            && let Ok(next) = inbox.try_recv()
        {
            batch.push(next);
        }
    }
    transaction.commit()
}
