//! The agent's database, read from its file.
//!
//! In: the agent's folder, while no agent holds it. Out: audit lines, counters, how operations ended, how many events each
//! journal has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;

/// One line of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub number: i64,
    /// When, in microseconds since 1970.
    pub at: i64,
    pub action: String,
    /// In which operation, if in one.
    pub operation: String,
    /// More of it.
    pub detail: String,
}

/// The label of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupLabel {
    /// The operation that took it.
    pub operation: String,
    pub archive: String,
    /// `application` or `crash`.
    pub consistency: String,
}

/// When a window's copy was observed to be fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    pub window: String,
    /// After how long, in milliseconds from the grant.
    pub at_ms: i64,
    /// Its bound, in seconds.
    pub bound_s: i64,
}

/// A backup on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecords {
    /// Of which guest.
    pub guest: String,
    pub archive: String,
    /// The operation that took it.
    pub taken_by: String,
    /// Whether its storage does not list it any more.
    pub missing: bool,
}

/// The contents of the agent's database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    pub audit: Vec<Line>,
    /// Counters by name, with the token generation of each guest.
    pub counters: BTreeMap<String, i64>,
    /// Outcomes of ended operations, by id.
    pub outcomes: BTreeMap<String, String>,
    /// Operations that have not ended.
    pub open: Vec<String>,
    /// Events in each journal.
    pub events: BTreeMap<String, u32>,
    /// Guests by identity, with every number that is or was theirs.
    pub numbers: Vec<(String, u32)>,
    /// Numbers of guests that are made.
    pub made: BTreeSet<u32>,
    /// Numbers of guests with an operation that was parked.
    pub parked: BTreeSet<u32>,
    /// The labels of backups.
    pub labels: Vec<BackupLabel>,
    /// When the contents of backups were fixed.
    pub captures: Vec<Capture>,
    /// Backups that are on record, oldest first.
    pub backups: Vec<StoredRecords>,
}

impl Book {
    /// Reads it. An agent that never ran has written nothing.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        let path = folder.join("agent.db");
        if !path.exists() {
            return Self::default();
        }
        let connection = Connection::open(path).unwrap();
        let mut book = Self::default();
        each(
            &connection,
            "SELECT number, at, action, coalesce(operation, ''), detail FROM audit ORDER BY number",
            |row| {
                let (number, at, action) = (row.get(0)?, row.get(1)?, row.get(2)?);
                book.audit.push(Line { number, at, action, operation: row.get(3)?, detail: row.get(4)? });
                Ok(())
            },
        );
        each(
            &connection,
            "SELECT key, value FROM counter UNION ALL SELECT 'tokens of ' || uid, token_generation FROM guest",
            |row| {
                book.counters.insert(row.get(0)?, row.get(1)?);
                Ok(())
            },
        );
        each(
            &connection,
            "SELECT id, outcome, (SELECT count(*) FROM event WHERE operation = serial) FROM operation",
            |row| {
                let (id, outcome): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                book.events.insert(id.clone(), row.get(2)?);
                match outcome {
                    Some(outcome) => drop(book.outcomes.insert(id, outcome)),
                    None => book.open.push(id),
                }
                Ok(())
            },
        );
        each(
            &connection,
            "SELECT uid, vmid FROM used_vmid UNION SELECT uid, vmid FROM guest WHERE vmid IS NOT NULL",
            |row| {
                book.numbers.push((row.get(0)?, row.get(1)?));
                Ok(())
            },
        );
        each(&connection, "SELECT vmid FROM guest WHERE place = 'made'", |row| {
            book.made.insert(row.get(0)?);
            Ok(())
        });
        each(
            &connection,
            "SELECT vmid FROM used_vmid WHERE uid IN (SELECT guest FROM operation WHERE outcome = 'parked')",
            |row| {
                book.parked.insert(row.get(0)?);
                Ok(())
            },
        );
        each(
            &connection,
            "SELECT operation, volid, label ->> '$.consistency' FROM backup WHERE label IS NOT NULL ORDER BY volid",
            |row| {
                let (operation, archive) = (row.get(0)?, row.get(1)?);
                book.labels.push(BackupLabel { operation, archive, consistency: row.get(2)? });
                Ok(())
            },
        );
        each(
            &connection,
            "SELECT operation, body ->> '$.captured_ms', body ->> '$.bound' FROM quiesce_window
             WHERE body ->> '$.captured_ms' IS NOT NULL ORDER BY operation",
            |row| {
                let (window, at_ms) = (row.get(0)?, row.get(1)?);
                book.captures.push(Capture { window, at_ms, bound_s: row.get(2)? });
                Ok(())
            },
        );
        each(
            &connection,
            "SELECT guest, volid, operation, missing_since IS NOT NULL FROM backup ORDER BY taken_at, volid",
            |row| {
                let (guest, archive, taken_by) = (row.get(0)?, row.get(1)?, row.get(2)?);
                book.backups.push(StoredRecords { guest, archive, taken_by, missing: row.get(3)? });
                Ok(())
            },
        );
        book
    }
}

/// The VMIDs of whole guests, without copies next to them.
#[must_use]
pub fn guests(folder: &Path) -> BTreeSet<u32> {
    let connection = Connection::open(folder.join("agent.db")).unwrap();
    let mut guests = BTreeSet::new();
    each(&connection, "SELECT vmid FROM guest WHERE place = 'made'", |row| {
        guests.insert(row.get(0)?);
        Ok(())
    });
    guests
}

/// Numbers of guests that are made; copies next to a guest are whole when their records say so.
#[must_use]
pub fn made(folder: &Path) -> BTreeSet<u32> {
    let connection = Connection::open(folder.join("agent.db")).unwrap();
    let mut made = BTreeSet::new();
    let sql = "SELECT vmid FROM guest WHERE place = 'made' UNION SELECT vmid FROM restored_copy WHERE stage = 'made'";
    each(&connection, sql, |row| {
        made.insert(row.get(0)?);
        Ok(())
    });
    made
}

/// Writes the result of a restore test of a backup, as the agent would have, while no agent runs.
pub fn prove(folder: &Path, kept: &StoredRecords, at_us: i64) {
    let connection = Connection::open(folder.join("agent.db")).unwrap();
    let sql =
        "INSERT INTO restore_test (operation, guest, archive, backup, taken_at, verdict, why, began_at, at)
               VALUES ('00000000-0000-0000-0000-0000000000ff', ?1, ?2, ?3, ?4, 'proved', 'a story', ?4, ?4)";
    connection.execute(sql, (&kept.guest, &kept.archive, &kept.taken_by, at_us)).unwrap();
}

fn each(
    connection: &Connection,
    sql: &str,
    mut see: impl FnMut(&rusqlite::Row<'_>) -> Result<(), rusqlite::Error>,
) {
    let mut select = connection.prepare(sql).unwrap();
    let mut rows = select.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        see(row).unwrap();
    }
}
