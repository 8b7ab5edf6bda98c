//! The audit read from files while the agent runs.

use std::path::Path;

use holdfast_protocol::audit::{AuditLine, Link, hex};
use rusqlite::{Connection, OpenFlags, Row};

use super::StoreError;
use super::segment::{self, Segment, SegmentPlace};

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

/// The extent of an audit, reported before its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of lines that follow.
    pub lines: u64,
    /// The line behind which they begin, where earlier ones were removed.
    pub after: Option<Link>,
}

/// Goes through the lines of the audit in a folder, those in files and those in the database, oldest first, as of one moment.
/// Their extent is reported first.
///
/// # Errors
/// [`StoreError`] when something cannot be read, or the error of `each`.
pub fn each_line<E: From<StoreError>>(
    folder: &Path,
    begin: impl FnOnce(&Extent) -> Result<(), E>,
    mut each: impl FnMut(AuditLine) -> Result<(), E>,
) -> Result<(), E> {
    let failed = || StoreError::sqlite("read the audit");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(folder.join("agent.db"), flags).map_err(failed())?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed())?;
    // Later writes are not seen: count and lines are of one moment.
    let moment = connection.transaction().map_err(failed())?;
    let segments = segment::all(&moment, folder).map_err(failed())?;
    let (removed, filed): (Vec<Segment>, Vec<Segment>) =
        segments.into_iter().partition(|segment| segment.place == SegmentPlace::Removed);
    let after = removed.last().map(|last| Link { number: last.last, chain: last.chain.clone() });
    let lines: i64 = moment.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).map_err(failed())?;
    let in_files: u64 = filed.iter().map(|segment| segment.last + 1 - segment.first).sum();
    begin(&Extent { lines: in_files + u64::try_from(lines).unwrap_or_default(), after })?;
    for segment in &filed {
        segment::each_line(segment, &mut each)?;
    }
    let sql = "SELECT number, at, action, guest, operation, detail, chain FROM audit ORDER BY number";
    let mut select = moment.prepare(sql).map_err(failed())?;
    let mut rows = select.query([]).map_err(failed())?;
    while let Some(row) = rows.next().map_err(failed())? {
        each(line(row).map_err(failed())?)?;
    }
    Ok(())
}
