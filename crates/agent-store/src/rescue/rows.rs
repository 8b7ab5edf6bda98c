//! Rows of the records, each table by itself.
//!
//! In: a connection that only reads. Out: for each table its rows, how many could not be understood, and why reading stopped
//! before the end. Columns are those of the first versions of the file where that is possible, so that an older or a newer file
//! can be read too. Deliberately absent: columns with secrets.

use std::path::Path;
use std::time::SystemTime;

use holdfast_protocol::operation::OperationView;
use holdfast_protocol::storage::Approval;
use jiff::Timestamp;
use rusqlite::{Connection, Row};
use serde::Serialize;

use super::chain::AuditState;
use super::open::with_tail;
use crate::columns::when;
use crate::journal_read::{self, PARKED};
use crate::migration;
use agent_core::model::parked::ParkedEntry;
use agent_core::plan::recovery::{Recover, StartObservation, recovery};

/// As many rows of one table are read.
const ROWS_MAX: u32 = 10_000;

/// As many findings of the check of the file are read.
const FINDINGS_MAX: u32 = 20;

/// Rows of one table.
#[derive(Debug, Serialize)]
pub struct Rows<T> {
    pub rows: Vec<T>,
    /// Rows that were read and not understood.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_understood: u32,
    /// Why there may be more than these: damage, a missing column, or the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), not_understood: 0, incomplete: None }
    }
}

/// The file itself.
#[derive(Debug, Serialize)]
pub struct FileState {
    /// The version of its schema; none where it cannot be read.
    pub version: Option<i64>,
    /// The version that this program knows.
    pub known_version: i64,
    pub bytes: u64,
    /// The log of last writes next to it.
    pub log_bytes: u64,
    /// When a file of both was last changed, by the clock of the machine.
    pub changed_at: Option<Timestamp>,
    /// When an agent last opened it.
    pub opened_at: Option<Timestamp>,
    /// The last line of the audit.
    pub last_line_at: Option<Timestamp>,
    /// What SQLite's check found; empty where the file is sound.
    pub findings: Rows<String>,
    /// Where the damaged file before this one is.
    pub damaged_copy: Option<String>,
    /// By whom it was ordered that another machine replaces this host.
    pub replaced_by: Option<String>,
}

/// An operation that has not ended.
#[derive(Debug, Serialize)]
pub struct OpenOperation {
    pub id: String,
    pub kind: String,
    pub guest: String,
    pub opened_at: Option<Timestamp>,
    /// Its steps; none where its journal cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<OperationView>,
    /// What the agent would do at its start, as far as its journal alone says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recover: Option<Recover>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// A quiesce window that was not released.
#[derive(Debug, Serialize)]
pub struct WindowRow {
    pub operation: String,
    pub guest: String,
    pub granted_at: Option<Timestamp>,
}

/// A guest of ours.
#[derive(Debug, Serialize)]
pub struct GuestRow {
    pub uid: String,
    pub name: String,
    pub customer: String,
    /// `nowhere`, `making` or `made`.
    pub place: String,
    pub vmid: Option<i64>,
    /// `open` or `frozen`.
    pub access: String,
}

/// The newest backup of a guest on one storage.
#[derive(Debug, Serialize)]
pub struct BackupRow {
    pub guest: String,
    pub storage: String,
    pub archive: String,
    pub taken_at: Option<Timestamp>,
    pub bytes: i64,
    /// How many there are on that storage.
    pub count: i64,
}

/// The last restore test of a guest.
#[derive(Debug, Serialize)]
pub struct TestRow {
    pub guest: String,
    pub archive: String,
    pub verdict: String,
    pub at: Option<Timestamp>,
}

/// A storage target.
#[derive(Debug, Serialize)]
pub struct TargetRow {
    pub name: String,
    /// `attached`, `disconnected` or `decommissioned`.
    pub state: String,
    /// Where its data is; none where the approval is not understood.
    pub backend: Option<String>,
    pub approved_at: Option<Timestamp>,
}

/// Reads until the end, the bound, or the first row that SQLite cannot give.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Rows<T> {
    let mut all = Rows::default();
    let mut walk = || -> rusqlite::Result<()> {
        let mut select = connection.prepare(sql)?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            if all.rows.len() >= ROWS_MAX as usize {
                all.incomplete = Some(format!("only the first {ROWS_MAX} are read"));
                return Ok(());
            }
            match read(row) {
                Ok(one) => all.rows.push(one),
                Err(_) => all.not_understood += 1,
            }
        }
        Ok(())
    };
    if let Err(error) = walk() {
        all.incomplete = Some(error.to_string());
    }
    all
}

pub(super) fn file_state(connection: &Connection, folder: &Path, audit: &AuditState) -> FileState {
    let path = folder.join("agent.db");
    let files = [path.clone(), with_tail(&path, "-wal")].map(|path| std::fs::symlink_metadata(path).ok());
    let bytes = files.each_ref().map(|file| file.as_ref().map_or(0, std::fs::Metadata::len));
    let changed = files.iter().flatten().filter_map(|file| file.modified().ok()).max();
    let meta = |key: &str| -> Option<String> {
        connection.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).ok()
    };
    let check = format!("PRAGMA quick_check({FINDINGS_MAX})");
    let mut findings = rows(connection, &check, |row| row.get::<_, String>(0));
    findings.rows.retain(|finding| finding != "ok");
    let [bytes, log_bytes] = bytes;
    FileState {
        version: connection.pragma_query_value(None, "user_version", |row| row.get(0)).ok(),
        known_version: migration::VERSION,
        bytes,
        log_bytes,
        changed_at: changed.and_then(|at| Timestamp::try_from(at.max(SystemTime::UNIX_EPOCH)).ok()),
        opened_at: meta("opened").and_then(|text| text.parse().ok()).and_then(when),
        last_line_at: audit.last_line_at,
        findings,
        damaged_copy: meta("damage"),
        replaced_by: meta("replaced"),
    }
}

/// What the agent would do with each is planned by its journal alone: no host is observed.
pub(super) fn open_operations(connection: &Connection, now: Timestamp) -> Rows<OpenOperation> {
    let sql =
        "SELECT serial, id, kind, guest, opened_at FROM operation WHERE ended_at IS NULL ORDER BY serial";
    let found = rows(connection, sql, |row| {
        let open = OpenOperation {
            id: row.get(1)?,
            kind: row.get(2)?,
            guest: row.get(3)?,
            opened_at: when(row.get(4)?),
            view: None,
            recover: None,
            unreadable: None,
        };
        Ok((row.get::<_, i64>(0)?, open))
    });
    let tasks = std::collections::BTreeMap::new();
    let read = |(serial, mut open): (i64, OpenOperation)| {
        match journal_read::load(connection, serial) {
            Ok(state) => {
                let seen = StartObservation { observed: None, tasks: &tasks };
                let plan = recovery(std::slice::from_ref(&state), seen, now);
                open.recover = plan.lines.into_iter().next().map(|line| line.recover);
                open.view = Some(state.view());
            }
            Err(error) => open.unreadable = Some(holdfast_protocol::json::chain(&error)),
        }
        open
    };
    let Rows { rows, not_understood, incomplete } = found;
    Rows { rows: rows.into_iter().map(read).collect(), not_understood, incomplete }
}

pub(super) fn parked(connection: &Connection) -> Rows<ParkedEntry> {
    let sql = PARKED.replace("?1", &ROWS_MAX.to_string());
    let serials = rows(connection, &sql, |row| row.get::<_, i64>(0));
    let mut all =
        Rows { incomplete: serials.incomplete, not_understood: serials.not_understood, rows: Vec::new() };
    for serial in serials.rows {
        match journal_read::load(connection, serial).map(|state| state.parked_entry()) {
            Ok(Some(entry)) => all.rows.push(entry),
            Ok(None) | Err(_) => all.not_understood += 1,
        }
    }
    all
}

pub(super) fn windows(connection: &Connection) -> Rows<WindowRow> {
    let sql = "SELECT operation, guest, granted_at FROM quiesce_window WHERE released_at IS NULL ORDER BY granted_at";
    rows(connection, sql, |row| {
        Ok(WindowRow { operation: row.get(0)?, guest: row.get(1)?, granted_at: when(row.get(2)?) })
    })
}

pub(super) fn guests(connection: &Connection) -> Rows<GuestRow> {
    let sql = "SELECT uid, name, customer, place, vmid, access FROM guest ORDER BY name, uid";
    rows(connection, sql, |row| {
        Ok(GuestRow {
            uid: row.get(0)?,
            name: row.get(1)?,
            customer: row.get(2)?,
            place: row.get(3)?,
            vmid: row.get(4)?,
            access: row.get(5)?,
        })
    })
}

pub(super) fn backups(connection: &Connection) -> Rows<BackupRow> {
    // With max() SQLite gives the other columns of the row that has it.
    let sql =
        "SELECT guest, storage, volid, max(taken_at), bytes, count(*) FROM backup GROUP BY guest, storage
               ORDER BY guest, max(taken_at) DESC";
    rows(connection, sql, |row| {
        Ok(BackupRow {
            guest: row.get(0)?,
            storage: row.get(1)?,
            archive: row.get(2)?,
            taken_at: when(row.get(3)?),
            bytes: row.get(4)?,
            count: row.get(5)?,
        })
    })
}

pub(super) fn tests(connection: &Connection) -> Rows<TestRow> {
    let sql = "SELECT guest, archive, verdict, max(at) FROM restore_test GROUP BY guest ORDER BY guest";
    rows(connection, sql, |row| {
        Ok(TestRow { guest: row.get(0)?, archive: row.get(1)?, verdict: row.get(2)?, at: when(row.get(3)?) })
    })
}

pub(super) fn targets(connection: &Connection) -> Rows<TargetRow> {
    let sql = "SELECT name, standing, approval, at FROM storage_target ORDER BY name";
    rows(connection, sql, |row| {
        let approval: String = row.get(2)?;
        // Of the approval only the backend's words: it may carry sealed credentials.
        let backend = serde_json::from_str::<Approval>(&approval).ok().map(|one| one.backend.to_string());
        Ok(TargetRow { name: row.get(0)?, state: row.get(1)?, backend, approved_at: when(row.get(3)?) })
    })
}
