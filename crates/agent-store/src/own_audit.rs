//! Audit lines about one guest, by pages.

use holdfast_protocol::audit::hex;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::audit::{AuditPage, AuditRecord, RECORDS_MAX};
use holdfast_protocol::report::AuditHead;
use rusqlite::{Connection, Row};

use super::audit_file::line;
use super::{Store, StoreError, audit};

/// The hash of the line before the line `line`, which may be in a file already.
pub(super) const BEFORE: &str =
    "coalesce((SELECT chain FROM audit AS earlier WHERE earlier.number = line.number - 1),
        (SELECT chain FROM audit_segment AS filed WHERE filed.last = line.number - 1))";

/// A page ends behind the record with which it grows beyond this. Each record is a few hundred bytes; a reason that an
/// operator gave may be longer.
const PAGE_BYTES: usize = 48 * 1024;

/// A record, from the columns `number, at, action, guest, operation, detail, chain` and [`BEFORE`].
pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    let before: Option<Vec<u8>> = row.get(7)?;
    Ok(AuditRecord { line: line(row)?, before: before.as_deref().map(hex).unwrap_or_default() })
}

fn page(connection: &Connection, guest: GuestUid, after: i64, limit: u32) -> Result<AuditPage, StoreError> {
    let failed = || StoreError::sqlite("read a guest's records");
    let sql = format!(
        "SELECT number, at, action, guest, operation, detail, chain, {BEFORE}
         FROM audit AS line WHERE guest = ?1 AND number > ?2 ORDER BY number LIMIT ?3"
    );
    let limit = limit.clamp(1, RECORDS_MAX);
    let mut select = connection.prepare_cached(&sql).map_err(failed())?;
    // One more than is returned, so that the page knows whether it is the last.
    let mut rows = select.query((guest.to_string(), after, limit + 1)).map_err(failed())?;
    let (mut records, mut bytes, mut next) = (Vec::new(), 0, None);
    while let Some(row) = rows.next().map_err(failed())? {
        let last: Option<&AuditRecord> = records.last();
        if let Some(last) = last.filter(|_| bytes > PAGE_BYTES || records.len() >= limit as usize) {
            next = Some(last.line.number);
            break;
        }
        let record = record(row).map_err(failed())?;
        bytes += record.line.detail.len() + 512;
        records.push(record);
    }
    let (number, chain) = audit::head(connection)?;
    Ok(AuditPage { records, next, head: AuditHead { number, chain: hex(&chain) } })
}

impl Store {
    /// The records about this guest after a number, oldest first; at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn own_audit(&self, guest: GuestUid, after: i64, limit: u32) -> Result<AuditPage, StoreError> {
        self.read(move |connection| page(connection, guest, after, limit)).await
    }
}
