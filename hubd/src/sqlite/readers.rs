//! Four read-only connections on threads that may block.

use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

use super::{OpenError, Sqlite, schema};
use crate::store::StoreError;

const READERS: usize = 4;

const TURN_WAIT: Duration = Duration::from_secs(5);

pub(super) struct Readers {
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let idle = (0..READERS).map(|_| schema::open_reader(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { turns: Arc::new(Semaphore::new(READERS)), idle: Arc::new(Mutex::new(idle)) })
    }
}

impl Sqlite {
    /// Reads what was last committed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turns = Arc::clone(&self.readers.turns);
        let turn = match tokio::time::timeout(TURN_WAIT, turns.acquire_owned()).await {
            Err(_) => return Err(StoreError::Busy),
            Ok(Err(_)) => return Err(StoreError::Stopped),
            Ok(Ok(turn)) => turn,
        };
        let idle = Arc::clone(&self.readers.idle);
        let read = move || {
            // Each slot has a connection; without one something is very wrong, and busy is the honest answer.
            let connection = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let result = connection.as_ref().map(work);
            idle.lock().unwrap_or_else(PoisonError::into_inner).extend(connection);
            drop(turn);
            result
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(Some(Ok(value))) => Ok(value),
            Ok(Some(Err(source))) => Err(StoreError::Engine { action, source: Arc::new(source) }),
            Ok(None) => Err(StoreError::Busy),
            Err(_) => Err(StoreError::Stopped),
        }
    }
}
