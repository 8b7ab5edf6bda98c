//! Four read-only sessions on threads that may block.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::Postgres;
use super::server::Server;
use super::sql::{self, Connection};
use crate::store::StoreError;

const READERS: usize = 4;

const TURN_WAIT: Duration = Duration::from_secs(5);

/// All statements of a read see the same commit.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

#[derive(Clone)]
pub(super) struct Readers {
    server: Server,
    turns: Arc<Semaphore>,
    idle: Arc<Idle>,
}

/// Sessions that wait for a read. They are made when they are needed.
#[derive(Default)]
struct Idle(Mutex<Vec<Connection>>);

impl Idle {
    fn take(&self) -> Option<Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, session: Connection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}

impl Drop for Idle {
    /// The last handle of a store may be dropped on a thread that must not block.
    fn drop(&mut self) {
        let sessions = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !sessions.is_empty() {
            let thread = std::thread::Builder::new().name("store-farewell".to_owned());
            drop(thread.spawn(move || drop(sessions)));
        }
    }
}

impl Readers {
    pub(super) fn new(server: Server) -> Self {
        Self { server, turns: Arc::new(Semaphore::new(READERS)), idle: Arc::default() }
    }

    /// Blocks.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> sql::Result<T>) -> sql::Result<T> {
        let session = self.begun()?;
        let result = work(&session);
        let ended = session.execute_batch("COMMIT");
        if ended.is_ok() {
            self.idle.put(session);
        }
        result
    }

    fn begun(&self) -> sql::Result<Connection> {
        if let Some(session) = self.idle.take()
            && session.execute_batch(BEGIN).is_ok()
        {
            return Ok(session);
        }
        let session = self.server.renewed(None)?;
        session.execute_batch(BEGIN)?;
        Ok(session)
    }
}

impl Postgres {
    /// Reads what was last committed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.readers.clone();
        let turn = match tokio::time::timeout(TURN_WAIT, Arc::clone(&readers.turns).acquire_owned()).await {
            Err(_) => return Err(StoreError::Busy),
            Ok(Err(_)) => return Err(StoreError::Stopped),
            Ok(Ok(turn)) => turn,
        };
        let read = move || {
            let result = readers.read(work);
            drop(turn);
            result
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(StoreError::Engine { action, source: Arc::new(source) }),
            Err(_) => Err(StoreError::Stopped),
        }
    }
}
