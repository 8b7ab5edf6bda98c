//! The audit: one hash-chained line per decision and effect (I14).
//!
//! The form of the chain is in `protocol::audit`, so that an export is checked by the same code.

use holdfast_protocol::id::{GuestUid, OperationId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{micros, time};
use super::{Store, StoreError, segment};

/// One line to be written.
pub(super) struct Line<'a> {
    pub at: Timestamp,
    pub action: &'a str,
    pub guest: Option<GuestUid>,
    pub operation: Option<OperationId>,
    pub detail: &'a str,
}

/// One line as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Its number, from 1, without gaps.
    pub number: i64,
    pub at: Timestamp,
    pub action: String,
    /// About which guest.
    pub guest: Option<String>,
    /// In which operation.
    pub operation: Option<String>,
    /// More of it.
    pub detail: String,
}

/// Where a chain does not hold.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A line is missing, or was changed.
    #[error(
        "the audit does not hold at line {number}: it was cut or changed; keep the file and look who could write it"
    )]
    Broken {
        /// The first line that does not hold.
        number: i64,
    },
}

pub(super) fn append(transaction: &Transaction<'_>, line: &Line<'_>) -> Result<(), StoreError> {
    let last: Option<(i64, Vec<u8>)> = transaction
        .prepare_cached("SELECT number, chain FROM audit ORDER BY number DESC LIMIT 1")
        .and_then(|mut select| select.query_row([], |row| Ok((row.get(0)?, row.get(1)?))))
        .optional()
        .map_err(StoreError::sqlite("read the audit"))?;
    let (last, before) = last.unwrap_or((0, Vec::new()));
    let guest = line.guest.map(|guest| guest.to_string());
    let operation = line.operation.map(|operation| operation.to_string());
    let written = AuditLine {
        number: last + 1,
        at: line.at,
        action: line.action.to_owned(),
        guest,
        operation,
        detail: line.detail.to_owned(),
    };
    transaction
        .prepare_cached(
            "INSERT INTO audit (number, at, action, guest, operation, detail, chain) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .and_then(|mut insert| {
            insert.execute(rusqlite::params![
                written.number,
                micros(written.at),
                written.action,
                written.guest,
                written.operation,
                written.detail,
                chain(&before, &written),
            ])
        })
        .map_err(StoreError::sqlite("write the audit"))?;
    Ok(())
}

fn chain(before: &[u8], line: &AuditLine) -> Vec<u8> {
    let fields = holdfast_protocol::audit::Fields {
        number: line.number,
        at_us: micros(line.at),
        action: &line.action,
        guest: line.guest.as_deref(),
        operation: line.operation.as_deref(),
        detail: &line.detail,
    };
    holdfast_protocol::audit::chain(before, fields).to_vec()
}

/// How many lines there are, and the hash of the last.
pub(super) fn head(connection: &Connection) -> Result<(u64, Vec<u8>), StoreError> {
    let last: Option<(i64, Vec<u8>)> = connection
        .prepare_cached("SELECT number, chain FROM audit ORDER BY number DESC LIMIT 1")
        .and_then(|mut select| select.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(StoreError::sqlite("read the audit"))?;
    let (number, chain) = last.unwrap_or_default();
    Ok((u64::try_from(number).map_err(StoreError::unreadable("the audit's length"))?, chain))
}

fn read(connection: &Connection, last: u32) -> Result<Vec<(AuditLine, Vec<u8>)>, StoreError> {
    let failed = StoreError::sqlite("read the audit");
    let rows = connection
        .prepare(
            "SELECT number, at, action, guest, operation, detail, chain FROM
             (SELECT * FROM audit ORDER BY number DESC LIMIT ?1) ORDER BY number",
        )
        .and_then(|mut select| {
            select
                .query_map([last], |row| {
                    Ok((
                        (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?),
                        (row.get::<_, Option<String>>(3)?, row.get::<_, Option<String>>(4)?),
                        (row.get::<_, String>(5)?, row.get::<_, Vec<u8>>(6)?),
                    ))
                })?
                .collect::<Result<Vec<_>, _>>()
        })
        .map_err(failed)?;
    rows.into_iter()
        .map(|((number, at, action), (guest, operation), (detail, chain))| {
            Ok((AuditLine { number, at: time(at)?, action, guest, operation, detail }, chain))
        })
        .collect()
}

impl Store {
    /// The last lines, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn audit(&self, last: u32) -> Result<Vec<AuditLine>, StoreError> {
        self.read(move |connection| Ok(read(connection, last)?.into_iter().map(|(line, _)| line).collect()))
            .await
    }

    /// Holds the chain in the database to its hashes and gives the number of its last line. It begins where the last file ends.
    ///
    /// # Errors
    /// [`ChainError`], with the first line that does not hold.
    pub async fn verify_audit(&self) -> Result<i64, ChainError> {
        let (filed, lines) =
            self.read(|connection| Ok((segment::last(connection)?, read(connection, u32::MAX)?))).await?;
        let (mut last, mut before) = filed.unwrap_or_default();
        for (expected, (line, hash)) in (last + 1..).zip(&lines) {
            if line.number != expected || chain(&before, line) != *hash {
                return Err(ChainError::Broken { number: expected });
            }
            before.clone_from(hash);
            last = expected;
        }
        Ok(last)
    }
}
