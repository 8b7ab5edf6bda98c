//! Ended operations in their compact form.
//!
//! A week after its end an operation loses its events and keeps its view; the audit still has every step. After three
//! months its row is removed too, unless an existing record refers to it. An operation that waits for a person keeps
//! everything. Each call is one short transaction, so no other write waits long.

use std::sync::atomic::Ordering;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::operation::OperationView;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Transaction};

use super::columns::{from_json, json, micros};
use super::{Part, Store, StoreError, journal_read, kinds};
use agent_core::model::limits;

/// Operations in one transaction: a few milliseconds.
const BATCH: i64 = 50;

/// Whether another call would find more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// There is more.
    More,
    /// Nothing is left to do.
    Done,
}

impl Upkeep {
    pub(super) fn of(done: usize, batch: i64) -> Self {
        if i64::try_from(done).unwrap_or(i64::MAX) < batch { Self::Done } else { Self::More }
    }
}

fn before(now: Timestamp, by: SignedDuration) -> i64 {
    micros(now.checked_sub(by).unwrap_or(Timestamp::MIN))
}

/// An operation as it is reported, from its journal or from its compact form.
pub(super) fn view(connection: &Connection, serial: i64) -> Result<OperationView, StoreError> {
    match kept(connection, serial)? {
        Some(view) => Ok(view),
        None => Ok(journal_read::load(connection, serial)?.view()),
    }
}

/// The kept view of an operation that has no events any more.
pub(super) fn kept(connection: &Connection, serial: i64) -> Result<Option<OperationView>, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT kept FROM operation WHERE serial = ?1")
        .and_then(|mut select| select.query_row([serial], |row| row.get(0)))
        .map_err(StoreError::sqlite("read an operation"))?;
    text.map(|text| from_json("a kept operation", &text)).transpose()
}

/// The same by its id.
pub(super) fn kept_of(connection: &Connection, id: OperationId) -> Result<Option<OperationView>, StoreError> {
    match journal_read::serial(connection, id) {
        Ok(serial) => kept(connection, serial),
        Err(StoreError::Unknown { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn compact(transaction: &Transaction<'_>, now: Timestamp) -> Result<Upkeep, StoreError> {
    let failed = || StoreError::sqlite("compact an operation");
    let serials: Vec<i64> = transaction
        .prepare_cached(
            "SELECT serial FROM operation WHERE kept IS NULL AND ended_at < ?1
             AND (outcome <> 'parked' OR serial IN (SELECT operation FROM forgotten)) ORDER BY ended_at LIMIT ?2",
        )
        .and_then(|mut select| {
            let old = before(now, limits::EVENTS_KEPT);
            select.query_map([old, BATCH], |row| row.get(0))?.collect()
        })
        .map_err(failed())?;
    let mut done = 0;
    for serial in &serials {
        // This agent cannot read one that a newer agent wrote: it stays as it is and does not hold up the others.
        let text = match journal_read::load(transaction, *serial) {
            // How it went step by step is in the audit.
            Ok(progress) => {
                json("a kept operation", &OperationView { steps: Vec::new(), ..progress.view() })?
            }
            Err(StoreError::NewerJournal { .. } | StoreError::Unreadable { .. }) => continue,
            Err(error) => return Err(error),
        };
        // The change limit counts from these specs, for a week, and by a clock that may be set back. The origin of a
        // guest is read from them as long as the guest exists.
        let set = format!(
            "UPDATE operation SET kept = ?2, steps = NULL,
                 spec = CASE WHEN kind IN ({}) THEN spec ELSE '{{}}' END WHERE serial = ?1",
            kinds::read_later()
        );
        transaction.execute(&set, (serial, text)).map_err(failed())?;
        transaction.execute("DELETE FROM event WHERE operation = ?1", [serial]).map_err(failed())?;
        done += 1;
    }
    Ok(Upkeep::of(done, BATCH))
}

fn forget(transaction: &Transaction<'_>, now: Timestamp) -> Result<Upkeep, StoreError> {
    let failed = || StoreError::sqlite("forget an operation");
    let serials: Vec<i64> = transaction
        .prepare_cached(
            "SELECT serial FROM operation AS o WHERE kept IS NOT NULL AND ended_at < ?1
             AND NOT EXISTS (SELECT 1 FROM guest WHERE made_by = o.id)
             AND NOT EXISTS (SELECT 1 FROM snapshot AS s WHERE s.operation = o.id)
             AND NOT EXISTS (SELECT 1 FROM backup AS b WHERE b.operation = o.id)
             AND NOT EXISTS (SELECT 1 FROM restored_copy AS c WHERE c.operation = o.id)
             AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = o.id)
             ORDER BY ended_at LIMIT ?2",
        )
        .and_then(|mut select| {
            let old = before(now, limits::OPERATIONS_KEPT);
            select.query_map([old, BATCH], |row| row.get(0))?.collect()
        })
        .map_err(failed())?;
    for serial in &serials {
        for table in ["operation_hold", "forgotten"] {
            transaction
                .execute(&format!("DELETE FROM {table} WHERE operation = ?1"), [serial])
                .map_err(failed())?;
        }
        transaction.execute("DELETE FROM operation WHERE serial = ?1", [serial]).map_err(failed())?;
    }
    Ok(Upkeep::of(serials.len(), BATCH))
}

impl Store {
    /// Reduces some ended operations to their reported view. `now` may come from any clock: only the single steps of an
    /// ended operation are lost, and the audit has those.
    ///
    /// # Errors
    /// [`StoreError`]; nothing changed then.
    pub async fn compact_operations(&self, now: Timestamp) -> Result<Upkeep, StoreError> {
        self.write(Part::Nothing, "compact operations", move |transaction| compact(transaction, now)).await
    }

    /// Forgets some operations that ended long ago. `now` must not be in the future.
    ///
    /// # Errors
    /// [`StoreError`]; nothing changed then.
    pub async fn forget_operations(&self, now: Timestamp) -> Result<Upkeep, StoreError> {
        self.write(Part::Nothing, "forget operations", move |transaction| forget(transaction, now)).await
    }

    /// An operation as it is reported.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn operation_view(&self, id: OperationId) -> Result<Option<OperationView>, StoreError> {
        self.read(move |connection| match journal_read::serial(connection, id) {
            Ok(serial) => view(connection, serial).map(Some),
            Err(StoreError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Measures how large the records are, in bytes, the log of the last writes not counted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn measure(&self) -> Result<u64, StoreError> {
        let bytes = self.read(|connection| {
            let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let sizes = number("page_count").and_then(|pages| Ok((pages, number("page_size")?)));
            let (pages, size) = sizes.map_err(StoreError::sqlite("measure the records"))?;
            Ok(u64::try_from(pages.saturating_mul(size)).unwrap_or_default())
        });
        let bytes = bytes.await?;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    /// That the records are larger than they should be, when they were measured last.
    #[must_use]
    pub fn large(&self) -> Option<ErrorBody> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        (bytes > limits::RECORDS_REPORTED_BYTES).then(|| {
            let mib = |bytes: u64| bytes / (1024 * 1024);
            let text = format!(
                "the agent's records are {} MiB, and {} are told: nothing is refused for it; look which guest asks for so much \
                 (`agentd audit show --last 1000`), and that the disk has room",
                mib(bytes),
                mib(limits::RECORDS_REPORTED_BYTES)
            );
            ErrorBody::new(ErrorCode::RecordsLarge, text)
        })
    }
}

#[cfg(test)]
mod tests;
