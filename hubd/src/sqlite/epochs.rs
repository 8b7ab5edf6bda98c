//! Ended epochs of hosts, each with its range of audit numbers.

use holdfast_protocol::operator::{EpochEnd, PastEpoch};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::columns::Time;
use super::writer::Tx;
use super::{audit_heads, guest_audit};
use crate::store::EPOCHS_MAX;

/// Ends the present epoch of a host and keeps its last audit number; the next epoch counts from 1.
pub(super) fn close_epoch(
    tx: &Tx<'_>,
    host: i64,
    before_generation: u32,
    end: EpochEnd,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let word = match end {
        EpochEnd::Readmitted => "readmitted",
        EpochEnd::Restored => "restored",
    };
    let sql = "INSERT INTO epochs (host, before_generation, audit_seen, ended_at, ended_by)
               SELECT number, ?2, audit_seen, ?3, ?4 FROM hosts WHERE number = ?1";
    tx.prepare_cached(sql)?.execute(params![host, before_generation, Time(at), word])?;
    tx.prepare_cached("UPDATE hosts SET audit_seen = 0 WHERE number = ?1")?.execute([host])?;
    audit_heads::end_epoch(tx, host, at)?;
    guest_audit::end_epoch(tx, host, at)?;
    let sql = "DELETE FROM epochs WHERE host = ?1 AND before_generation NOT IN (
                   SELECT before_generation FROM epochs WHERE host = ?1 ORDER BY before_generation DESC LIMIT ?2)";
    tx.prepare_cached(sql)?.execute(params![host, EPOCHS_MAX])?;
    Ok(())
}

/// Past epochs of a host, the newest first.
pub(super) fn past(connection: &Connection, host: i64) -> rusqlite::Result<Vec<PastEpoch>> {
    let sql = "SELECT before_generation, audit_seen, ended_at, ended_by FROM epochs
               WHERE host = ?1 ORDER BY before_generation DESC";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(PastEpoch {
            before_generation: row.get(0)?,
            audit_seen: u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default(),
            ended_at: row.get::<_, Time>(2)?.0,
            // The table's check allows these two values only.
            end: match row.get_ref(3)?.as_str()? {
                "restored" => EpochEnd::Restored,
                _ => EpochEnd::Readmitted,
            },
        })
    };
    connection.prepare_cached(sql)?.query_map([host], read)?.collect()
}
