//! The audit as it lies in a file, for who looks at it beside the running agent: read-only, line by line.

use std::path::Path;

use holdfast_protocol::audit::{AuditLine, hex};
use rusqlite::{Connection, OpenFlags, Row};

use super::StoreError;

/// A line, from the columns `number, at, action, guest, operation, detail, chain`.
pub(super) fn line(row: &Row<'_>) -> rusqlite::Result<AuditLine> {
    Ok(AuditLine {
        number: row.get(0)?,
        at_us: row.get(1)?,
        action: row.get(2)?,
        guest: row.get(3)?,
        operation: row.get(4)?,
        detail: row.get(5)?,
        chain: hex(&row.get::<_, Vec<u8>>(6)?),
    })
}

/// Goes through the lines of the database in a folder, oldest first, as of one moment. `count` is told first.
///
/// # Errors
/// [`StoreError`] when the file cannot be read, or what `each` says.
pub fn each_line<E: From<StoreError>>(
    folder: &Path,
    count: impl FnOnce(u64) -> Result<(), E>,
    mut each: impl FnMut(AuditLine) -> Result<(), E>,
) -> Result<(), E> {
    let failed = || StoreError::sqlite("read the audit");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(folder.join("agent.db"), flags).map_err(failed())?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed())?;
    // What is written meanwhile is not seen: count and lines are of one moment.
    let moment = connection.transaction().map_err(failed())?;
    let lines: i64 = moment.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).map_err(failed())?;
    count(u64::try_from(lines).unwrap_or_default())?;
    let sql = "SELECT number, at, action, guest, operation, detail, chain FROM audit ORDER BY number";
    let mut select = moment.prepare(sql).map_err(failed())?;
    let mut rows = select.query([]).map_err(failed())?;
    while let Some(row) = rows.next().map_err(failed())? {
        each(line(row).map_err(failed())?)?;
    }
    Ok(())
}
