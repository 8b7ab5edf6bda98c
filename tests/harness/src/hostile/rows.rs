//! The most rows of each table.

use rusqlite::Connection;

/// A week and a day: an operation that ended earlier has no events any more.
const EVENTS_KEPT_US: i64 = 8 * 24 * 3_600_000_000;

/// Operations of one day that a thief's documents can cause: those of the guests themselves, and those of four guests
/// that the `[backups]` of the policy lets a document promise without a signature. These are 8 snapshots and 8 backups,
/// each of which is removed again.
pub const OPERATIONS_PER_DAY: i64 = 200 + 4 * 2 * (8 + 8);

/// Operations of thirty days and one, and what belongs to each: who it holds, and the lines of the audit about it.
const OPERATIONS: i64 = 31 * OPERATIONS_PER_DAY;

/// VMIDs that a thief's documents come to, one for each guest.
const VMIDS: i64 = 16;

/// Snapshots of one guest: those it requests (`SNAPSHOTS_PER_GUEST`), and those of the densest promise that a document
/// may make without a signature (`SCHEDULED_SNAPSHOTS_PER_GUEST`).
const SNAPSHOTS_OF_ONE: i64 = 8 + 32;

/// How much a table may hold.
#[derive(Clone, Copy)]
enum Most {
    /// At most this many rows.
    Rows(i64),
    /// One for each job that operators signed, and this many in addition.
    Signed(i64),
}

/// Every table. A table that is missing here fails the judge.
const MOST: [(&str, Most); 44] = [
    ("applied", Most::Rows(64)),
    ("asked", Most::Rows(64 * 25)),
    ("audit", Most::Rows(OPERATIONS * 24)),
    ("audit_segment", Most::Rows(64)),
    ("backup", Most::Rows(1_024)),
    ("restored_copy", Most::Rows(8)),
    ("brake_release", Most::Rows(1_024)),
    ("brake_release_use", Most::Rows(1_024)),
    ("controller_fetched", Most::Rows(64)),
    ("controller_verdict", Most::Rows(256)),
    ("counter", Most::Rows(64)),
    ("desired", Most::Rows(10)),
    ("escrow", Most::Rows(64)),
    ("escrow_copy", Most::Rows(64)),
    // Another check besides these limits: no event of an operation that ended long ago.
    ("event", Most::Rows(OPERATIONS * 16)),
    ("forgotten", Most::Rows(64)),
    ("former_token", Most::Rows(256)),
    ("growth", Most::Rows(2_048)),
    ("growth_permit", Most::Signed(0)),
    ("guest", Most::Rows(64)),
    ("idempotency", Most::Rows(512)),
    ("job", Most::Signed(0)),
    ("life", Most::Rows(64)),
    ("meta", Most::Rows(16)),
    ("operation", Most::Rows(OPERATIONS)),
    ("operation_hold", Most::Rows(OPERATIONS * 2)),
    ("protection", Most::Rows(64)),
    ("quiesce_window", Most::Rows(64 * 32)),
    ("recovery", Most::Rows(64)),
    ("release", Most::Rows(64)),
    ("reported_conditions", Most::Rows(1)),
    ("request", Most::Rows(1_024)),
    ("restore_certificate", Most::Rows(64)),
    ("restore_test", Most::Rows(1_024)),
    ("roster", Most::Signed(1)),
    ("schema_reader", Most::Rows(1)),
    ("snapshot", Most::Rows(VMIDS * SNAPSHOTS_OF_ONE)),
    ("starts_forgiven", Most::Rows(64)),
    ("storage_target", Most::Rows(64)),
    ("test_access", Most::Rows(8)),
    ("tier", Most::Rows(64 * 3)),
    ("used_vmid", Most::Rows(VMIDS)),
    ("withdrawn_order", Most::Rows(64)),
    // `ORDERS_KEPT`, and those that were refused.
    ("work_order", Most::Rows(2_000 + 64)),
];

/// How many rows a table has.
pub fn count(books: &Connection, table: &str) -> i64 {
    books.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// The tables that hold more than they may.
pub fn too_many(books: &Connection, now_us: i64, signed: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut select = books
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        )
        .unwrap();
    let tables: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables {
        let Some((_, most)) = MOST.iter().find(|(name, _)| *name == table) else {
            wrong.push(format!("no bound is known for table {table}: name one in hostile/rows.rs"));
            continue;
        };
        let most = match most {
            Most::Rows(most) => *most,
            Most::Signed(copies) => i64::try_from(signed).unwrap() + copies,
        };
        let found = count(books, &table);
        if found > most {
            wrong.push(format!("{found} rows in {table}, and {most} are lawful"));
        }
    }
    let old: i64 = books
        .query_row(
            "SELECT count(*) FROM event JOIN operation ON serial = event.operation
             WHERE ended_at < ?1 AND outcome <> 'parked'",
            [now_us - EVENTS_KEPT_US],
            |row| row.get(0),
        )
        .unwrap();
    if old > 0 {
        wrong.push(format!("{old} events of operations that ended more than a week ago"));
    }
    wrong
}
