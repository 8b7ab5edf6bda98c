//! Operations, read from their journal.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, OperationId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::StoreError;
use super::columns::{from_json, parsed, time};
use agent_core::operation::log::Entry;
use agent_core::operation::progress::OperationState;
use agent_core::operation::step::StepList;
use agent_core::operation::{JOURNAL_VERSION, Operation};

/// Parked, and not ended by a person since.
pub(super) const PARKED: &str = "SELECT serial FROM operation WHERE outcome = 'parked'
    AND serial NOT IN (SELECT operation FROM forgotten) ORDER BY serial LIMIT ?1";

/// An operation to be opened.
#[derive(Clone, Debug)]
pub struct NewOperation {
    pub id: OperationId,
    /// Its work.
    pub operation: Operation,
    /// The document that it carries out.
    pub generation: Generation,
    /// The reason as text, for the audit.
    pub reason: String,
    pub at: Timestamp,
}

pub(super) fn serial(connection: &Connection, id: OperationId) -> Result<i64, StoreError> {
    connection
        .prepare_cached("SELECT serial FROM operation WHERE id = ?1")
        .and_then(|mut select| select.query_row([id.to_string()], |row| row.get(0)))
        .optional()
        .map_err(StoreError::sqlite("find an operation"))?
        .ok_or_else(|| StoreError::Unknown { what: "operation", id: id.to_string() })
}

pub(super) fn load(connection: &Connection, serial: i64) -> Result<OperationState, StoreError> {
    let failed = || StoreError::sqlite("read an operation");
    let row: Opened = connection
        .prepare_cached(
            "SELECT id, version, spec, steps, opened_at, correlation FROM operation WHERE serial = ?1",
        )
        .and_then(|mut select| {
            select.query_row([serial], |row| {
                let (id, version, spec) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let (steps, opened_at, correlation) = (row.get(3)?, row.get(4)?, row.get(5)?);
                Ok(Opened { id, version, spec, steps, opened_at, correlation })
            })
        })
        .map_err(failed())?;
    let entries = entries_of(connection, serial)?;
    OperationState::replay(row.progress()?, &entries).map_err(StoreError::unreadable("a journal"))
}

/// The events of an operation; none, once it is compact.
pub(super) fn entries(connection: &Connection, id: OperationId) -> Result<Vec<Entry>, StoreError> {
    entries_of(connection, serial(connection, id)?)
}

fn entries_of(connection: &Connection, serial: i64) -> Result<Vec<Entry>, StoreError> {
    let rows: Vec<(u32, i64, String)> = connection
        .prepare_cached("SELECT number, at, body FROM event WHERE operation = ?1 ORDER BY number")
        .and_then(|mut select| {
            select.query_map([serial], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read an operation"))?;
    rows.into_iter()
        .map(|(number, at, body)| Ok(Entry { number, at: time(at)?, event: from_json("an event", &body)? }))
        .collect()
}

/// An operation as it was opened.
struct Opened {
    id: String,
    version: u32,
    spec: String,
    steps: Option<String>,
    opened_at: i64,
    correlation: Option<String>,
}

impl Opened {
    fn progress(self) -> Result<OperationState, StoreError> {
        if self.version > JOURNAL_VERSION {
            return Err(StoreError::NewerJournal { found: self.version, known: JOURNAL_VERSION });
        }
        let id = parsed("an operation's id", &self.id)?;
        let operation: Operation = from_json("an operation", &self.spec)?;
        let steps = match &self.steps {
            Some(names) => StepList::read(&from_json::<Vec<String>>("the steps of an operation", names)?),
            None => StepList::of(operation.steps()),
        };
        let mut progress = OperationState::listed(id, operation, time(self.opened_at)?, steps);
        progress.correlation = self.correlation.map(|id| parsed("a correlation id", &id)).transpose()?;
        Ok(progress)
    }
}

pub(super) fn serials(
    connection: &Connection,
    sql: &'static str,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map([limit], |row| row.get(0))?.collect())
        .map_err(StoreError::sqlite("list operations"))
}

/// One operation, replayed.
pub(super) fn one(connection: &Connection, id: OperationId) -> Result<Option<OperationState>, StoreError> {
    match serial(connection, id) {
        Ok(serial) => load(connection, serial).map(Some),
        Err(StoreError::Unknown { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The operation that is open on a guest.
pub(super) fn open_on(
    connection: &Connection,
    guest: GuestUid,
) -> Result<Option<OperationState>, StoreError> {
    let serial: Option<i64> = connection
        .prepare_cached("SELECT operation FROM operation_hold WHERE guest = ?1 AND ended = 0")
        .and_then(|mut select| select.query_row([guest.to_string()], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("look for open operations"))?;
    serial.map(|serial| load(connection, serial)).transpose()
}
