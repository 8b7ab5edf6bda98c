//! The last applied state of each guest's fields.
//!
//! It is written in the transaction that ends the operation which applied it, so it never says more than the journal.
//! It is read completely and cached until it changes. Deliberately absent: what a field means, and comparing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use holdfast_protocol::id::GuestUid;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::StoreError;
use super::columns::{from_json, json, parsed};
use agent_core::model::field::{Applied, AppliedField};
use agent_core::operation::progress::OperationState;
use agent_core::operation::{AppliedBy, Operation};

fn of(connection: &Connection, guest: GuestUid) -> Result<Applied, StoreError> {
    let text: Option<String> = connection
        .query_row("SELECT fields FROM applied WHERE guest = ?1", [guest.to_string()], |row| row.get(0))
        .optional()
        .map_err(StoreError::sqlite("read what was carried out"))?;
    text.map_or(Ok(Applied::new()), |text| from_json("what was carried out", &text))
}

/// An operation is done: records what it applied.
pub(super) fn done(
    transaction: &Transaction<'_>,
    after: &OperationState,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(by) = Operation::applied(&after.operation) else { return Ok(()) };
    let uid = after.operation.uid();
    let mut fields = match &by {
        AppliedBy::Anew(_) => Applied::new(),
        AppliedBy::Changed(_) => of(transaction, uid)?,
    };
    for (field, value) in by.texts() {
        let applied = AppliedField { value: value.clone(), at, takes: by.takes(*field) };
        fields.insert(*field, applied);
    }
    let written = json("what was carried out", &fields)?;
    transaction
        .execute("INSERT OR REPLACE INTO applied (guest, fields) VALUES (?1, ?2)", (uid.to_string(), written))
        .and_then(|_| {
            transaction.execute(
                "INSERT INTO counter (key, value) VALUES ('applied', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1",
                (),
            )
        })
        .map_err(StoreError::sqlite("write what was carried out"))?;
    Ok(())
}

/// All of it as it was last read, and the count of changes at which it was.
#[derive(Default)]
pub(super) struct KeptApplied(Mutex<(i64, Arc<BTreeMap<GuestUid, Applied>>)>);

impl KeptApplied {
    /// All of it, read again only when it changed.
    pub(super) fn all(
        &self,
        connection: &Connection,
    ) -> Result<Arc<BTreeMap<GuestUid, Applied>>, StoreError> {
        let changes: i64 = connection
            .prepare_cached("SELECT coalesce(max(value), 0) FROM counter WHERE key = 'applied'")
            .and_then(|mut select| select.query_row([], |row| row.get(0)))
            .map_err(StoreError::sqlite("count the changes of what was carried out"))?;
        let mut kept = self.0.lock().map_err(|_| StoreError::Closed)?;
        if kept.0 != changes {
            let rows: Vec<(String, String)> = connection
                .prepare_cached("SELECT guest, fields FROM applied")
                .and_then(|mut select| select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
                .map_err(StoreError::sqlite("read what was carried out"))?;
            let read = |(guest, fields): (String, String)| {
                Ok((parsed("a guest", &guest)?, from_json("what was carried out", &fields)?))
            };
            *kept = (changes, Arc::new(rows.into_iter().map(read).collect::<Result<_, StoreError>>()?));
        }
        Ok(Arc::clone(&kept.1))
    }
}
