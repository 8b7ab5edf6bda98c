//! The one writer: group commit.
//!
//! In: jobs from a bounded queue. Out: each job's answer, after the commit that holds its effect is on the disk. A job
//! that its own rules refuse, or that finds something damaged, is undone alone; when SQLite cannot go on, the whole batch
//! is rolled back and every job in it gets the error.

use holdfast_protocol::id::HostId;
use rusqlite::{Connection, TransactionBehavior};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

use super::settled::{Scope, Settled, SettledHosts};
use super::{Failed, Sqlite, fence};
use crate::store::{Fence, StoreError, WriteError};

/// Jobs that share a commit at most. More would make the first wait for the last without saving anything.
const BATCH_MAX: usize = 256;

/// How long a request waits for room in the queue before it is refused as busy.
const PLACE_WAIT: Duration = Duration::from_secs(5);

/// An open transaction.
pub(super) struct Tx<'a> {
    connection: &'a Connection,
    effects: &'a Effects,
}

/// What follows a commit.
#[derive(Default)]
struct Effects {
    /// An event was written.
    emitted: Cell<bool>,
    /// Hosts that the batch left settled.
    settled: RefCell<HashMap<HostId, Settled>>,
}

impl Tx<'_> {
    pub(super) fn mark_emitted(&self) {
        self.effects.emitted.set(true);
    }

    /// After the commit the next check-in of this host may be answered from memory.
    pub(super) fn settle(&self, host: HostId, settled: Settled) {
        self.effects.settled.borrow_mut().insert(host, settled);
    }

    /// What earlier jobs of the batch left settled, the next one may touch.
    fn unsettle(&self, scope: &Scope) {
        let mut settled = self.effects.settled.borrow_mut();
        match scope {
            Scope::NoHost => {}
            Scope::Hosts(hosts) => settled.retain(|host, _| !hosts.contains(host)),
            Scope::AnyHost => settled.clear(),
        }
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
    fn scope(&self) -> &Scope;
    /// Does the work. An error means that the whole batch is lost.
    fn run(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()>;
    /// Answers, after the commit or its failure.
    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>);
}

/// What a job may do, and when.
struct Reach {
    action: &'static str,
    shape: Shape,
    scope: Scope,
    fence: Option<Fence>,
}

struct Work<F, T, E> {
    action: &'static str,
    shape: Shape,
    scope: Scope,
    /// What must hold, where the work is an effect of a duty.
    fence: Option<Fence>,
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
    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn run(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        if let Some(fence) = self.fence
            && !fence::holds(tx, fence)?
        {
            self.result = Some(Err(StoreError::TermOver(fence.duty).into()));
            return Ok(());
        }
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
    /// Hands work to the writer and waits for its commit. The work may touch any host.
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
        self.write_within(action, shape, Scope::AnyHost, work).await
    }

    /// The same for work that touches the hosts of `scope` alone.
    pub(super) async fn write_within<T, E>(
        &self,
        action: &'static str,
        shape: Shape,
        scope: Scope,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.hand_over(Reach { action, shape, scope, fence: None }, work).await
    }

    /// The same for an effect of a duty: nothing is written where the term is over.
    pub(super) async fn write_fenced<T, E>(
        &self,
        fence: Fence,
        action: &'static str,
        shape: Shape,
        scope: Scope,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.hand_over(Reach { action, shape, scope, fence: Some(fence) }, work).await
    }

    async fn hand_over<T, E>(
        &self,
        Reach { action, shape, scope, fence }: Reach,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Work { action, shape, scope, fence, work: Some(work), result: None, reply });
        match tokio::time::timeout(PLACE_WAIT, self.writer.reserve()).await {
            Err(_) => return Err(StoreError::Busy.into()),
            Ok(Err(_)) => return Err(StoreError::Stopped.into()),
            Ok(Ok(place)) => place.send(job),
        }
        answer.await.unwrap_or(Err(WriteError::Store(StoreError::Stopped)))
    }
}

/// The writer's thread. It ends when the last [`Sqlite`] is dropped and the queue is empty.
pub(super) fn start(
    connection: Connection,
    inbox: mpsc::Receiver<Box<dyn Job>>,
    settled: SettledHosts,
    announce: watch::Sender<u64>,
) -> std::io::Result<JoinHandle<()>> {
    let writer = Writer { connection, inbox, settled, announce };
    std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || writer.run())
}

struct Writer {
    connection: Connection,
    inbox: mpsc::Receiver<Box<dyn Job>>,
    settled: SettledHosts,
    announce: watch::Sender<u64>,
}

impl Writer {
    fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(first) = self.inbox.blocking_recv() {
            batch.push(first);
            let effects = Effects::default();
            let committed = self.commit(&mut batch, &effects).map_err(Arc::new);
            match &committed {
                Ok(()) => self.settled.put(effects.settled.take()),
                Err(error) => {
                    tracing::error!(action = "commit", result = "failed", jobs = batch.len(), error = %error);
                }
            }
            for job in batch.drain(..) {
                job.answer(committed.clone());
            }
            if effects.emitted.get() && committed.is_ok() {
                self.announce.send_modify(|count| *count += 1);
            }
        }
        if let Err(error) = self.save_contacts() {
            tracing::error!(action = "keep last contacts", result = "failed", error = %error);
        }
    }

    /// A stop in good order loses no contact.
    fn save_contacts(&mut self) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.settled.save(&transaction)?;
        transaction.commit()
    }

    /// Runs the first job and all that wait behind it, then commits.
    fn commit(&mut self, batch: &mut Vec<Box<dyn Job>>, effects: &Effects) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let tx = Tx { connection: &transaction, effects };
        let mut at = 0;
        while let Some(job) = batch.get_mut(at) {
            tx.unsettle(job.scope());
            self.settled.take(job.scope(), &transaction)?;
            job.run(&tx)?;
            at += 1;
            if batch.len() < BATCH_MAX
                && let Ok(next) = self.inbox.try_recv()
            {
                batch.push(next);
            }
        }
        transaction.commit()
    }
}
