//! The one writer of a hub: group commit.
//!
//! In: jobs from a bounded queue. Out: each job's answer, after the commit that holds its effect is durable. A job that its
//! own rules refuse, or that the server refuses, is undone alone by a savepoint; when the session is lost, the whole batch
//! is, and every job in it gets the error. Whether a commit whose answer was lost has happened is not known, and the error
//! says no more; who asks again with the same idempotency key gets the answer.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::announce::Announcer;
use super::server::Server;
use super::sql::{self, Connection};
use super::{Failed, Postgres, Users, fence};
use crate::store::{Fence, StoreError, WriteError};

/// Jobs that share a commit at most. The server keeps the savepoints of 64 at hand; more would slow every reader.
const BATCH_MAX: usize = 64;

/// How long a request waits for room in the queue before it is refused as busy.
pub(super) const PLACE_WAIT: Duration = Duration::from_secs(5);

/// Writers take turns: this lock is the transaction's and ends with it. The number is `hfhb` as ASCII.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(1751541858)";

/// Hubs that serve share a lock, held by the writer's session. The number is `hfhd` as ASCII.
const SERVE: &str = "SELECT pg_try_advisory_lock_shared(1751541860)";

/// The same lock, where no hub may serve meanwhile.
const BE_ALONE: &str = "SELECT pg_try_advisory_lock(1751541860)";

const SERVE_POLL: Duration = Duration::from_millis(100);

const SERVE_TRIES: u32 = 50;

/// An open transaction.
pub(super) struct Tx<'a> {
    connection: &'a Connection,
    /// An event was written.
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

pub(super) trait Job: Send {
    /// Does the work. An error means that the whole batch is lost.
    fn run(&mut self, tx: &Tx<'_>) -> sql::Result<()>;
    /// Answers, after the commit or its failure.
    fn answer(self: Box<Self>, committed: Result<(), Arc<sql::Error>>);
}

struct Work<F, T, E> {
    action: &'static str,
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
    fn run(&mut self, tx: &Tx<'_>) -> sql::Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        if let Some(fence) = self.fence
            && !fence::holds(tx, fence)?
        {
            self.result = Some(Err(StoreError::TermOver(fence.duty).into()));
            return Ok(());
        }
        tx.execute_batch("SAVEPOINT job")?;
        let failed = match work(tx) {
            Ok(value) => {
                self.result = Some(Ok(value));
                // It fails where the job went over an error of the server, and then nothing may be committed.
                return tx.execute_batch("RELEASE job");
            }
            Err(Failed::Refused(refusal)) => WriteError::Refused(refusal),
            Err(Failed::KeyReused) => WriteError::KeyReused,
            Err(Failed::Json(source)) => {
                WriteError::Store(StoreError::Damaged { action: self.action, source: Arc::new(source) })
            }
            Err(Failed::Engine(error)) if tx.is_closed() => return Err(error),
            Err(Failed::Engine(error)) => {
                WriteError::Store(StoreError::Engine { action: self.action, source: Arc::new(error) })
            }
        };
        self.result = Some(Err(failed));
        tx.execute_batch("ROLLBACK TO job; RELEASE job")
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<sql::Error>>) {
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

impl Postgres {
    /// Hands work to the writer and waits for its commit.
    pub(super) async fn write<T, E>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.hand_over(action, None, work).await
    }

    /// The same for an effect of a duty: nothing is written where the term is over.
    ///
    /// All writers take turns, so the transaction of this effect has ended before another hub takes the lease, or sees
    /// what it wrote.
    pub(super) async fn write_fenced<T, E>(
        &self,
        fence: Fence,
        action: &'static str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.hand_over(action, Some(fence), work).await
    }

    async fn hand_over<T, E>(
        &self,
        action: &'static str,
        fence: Option<Fence>,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Work { action, fence, work: Some(work), result: None, reply });
        match tokio::time::timeout(PLACE_WAIT, self.writer.reserve()).await {
            Err(_) => return Err(StoreError::Busy.into()),
            Ok(Err(_)) => return Err(StoreError::Stopped.into()),
            Ok(Ok(place)) => place.send(job),
        }
        answer.await.unwrap_or(Err(WriteError::Store(StoreError::Stopped)))
    }
}

/// Whether the session may write. The lock is the session's own, so a writer that lost its session writes nothing before it
/// has the lock again.
pub(super) fn serves(session: &Connection, users: Users) -> sql::Result<bool> {
    match users {
        Users::Several => Ok(true),
        Users::Hub => session.query_row(SERVE, [], |row| row.get(0)),
        Users::One => session.query_row(BE_ALONE, [], |row| row.get(0)),
    }
}

pub(super) fn start(
    server: Server,
    users: Users,
    session: Connection,
    inbox: mpsc::Receiver<Box<dyn Job>>,
    announce: Announcer,
) -> std::io::Result<JoinHandle<()>> {
    let writer = Writer { server, users, session: Some(session), inbox, announce };
    std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || writer.run())
}

/// It ends when the last [`Postgres`] is dropped and the queue is empty.
struct Writer {
    server: Server,
    users: Users,
    session: Option<Connection>,
    inbox: mpsc::Receiver<Box<dyn Job>>,
    announce: Announcer,
}

impl Writer {
    fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(first) = self.inbox.blocking_recv() {
            batch.push(first);
            let emitted = Cell::new(false);
            let committed = self.commit(&mut batch, &emitted).map_err(Arc::new);
            if let Err(error) = &committed {
                let error = error.sentence();
                tracing::error!(action = "commit", result = "failed", jobs = batch.len(), %error);
            }
            for job in batch.drain(..) {
                job.answer(committed.clone());
            }
            if emitted.get() && committed.is_ok() {
                self.announce.committed();
            }
        }
    }

    /// Runs the first job and all that wait behind it, then commits. A session that cannot roll back is given up:
    /// whatever was left open in it, the server undoes when it ends.
    fn commit(&mut self, batch: &mut Vec<Box<dyn Job>>, emitted: &Cell<bool>) -> sql::Result<()> {
        let session = self.begun()?;
        let done = self.run_all(batch, &Tx { connection: &session, emitted });
        if done.is_ok() || session.execute_batch("ROLLBACK").is_ok() {
            self.session = Some(session);
        }
        done
    }

    fn run_all(&mut self, batch: &mut Vec<Box<dyn Job>>, tx: &Tx<'_>) -> sql::Result<()> {
        let mut at = 0;
        while let Some(job) = batch.get_mut(at) {
            job.run(tx)?;
            at += 1;
            if batch.len() < BATCH_MAX
                && let Ok(next) = self.inbox.try_recv()
            {
                batch.push(next);
            }
        }
        tx.execute_batch("COMMIT")
    }

    /// A session with an open transaction. One that the server ended meanwhile shows that at its first statement; no job
    /// has run then, so a second one is tried.
    fn begun(&mut self) -> sql::Result<Connection> {
        if let Some(session) = self.session.take() {
            match session.execute_batch(BEGIN) {
                Ok(()) => return Ok(session),
                Err(error) if !session.is_closed() => return Err(error),
                Err(_) => {}
            }
        }
        let session = self.server.renewed(None)?;
        for _ in 0..SERVE_TRIES {
            if serves(&session, self.users)? {
                session.execute_batch(BEGIN)?;
                return Ok(session);
            }
            // The server may not have noticed yet that the session before is gone.
            std::thread::sleep(SERVE_POLL);
        }
        Err(sql::Error::unconnected("the lock of those who serve on this database is taken"))
    }
}
