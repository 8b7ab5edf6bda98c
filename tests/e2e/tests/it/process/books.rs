//! The agent's database and audit, checked without its code.
//!
//! In: a state folder, whether its agent runs or was just killed. A copy is read: opening the file itself would
//! complete work that the killed agent left to its next start. Out: what was written, or a panic that names what does
//! not hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use sha2::{Digest, Sha256};

#[derive(Debug)]
pub struct Operation {
    pub id: String,
    pub kind: String,
    /// How it ended, if it did.
    pub outcome: Option<String>,
}

/// What was written down.
#[derive(Debug, Default)]
pub struct Books {
    /// Operations by serial.
    pub operations: BTreeMap<i64, Operation>,
    /// Every task of Proxmox that the journal names.
    pub tasks: BTreeSet<String>,
    /// The hash of each audit line, the first one first.
    pub chain: Vec<Vec<u8>>,
}

impl Books {
    /// How many operations have not ended.
    pub fn open(&self) -> usize {
        self.operations.values().filter(|operation| operation.outcome.is_none()).count()
    }

    /// Reads and checks.
    pub fn read(state: &Path) -> Self {
        let copy = tempfile::tempdir().unwrap();
        // The log first: what the agent writes meanwhile is then missing as a whole, never by half.
        for name in ["agent.db-wal", "agent.db"] {
            match std::fs::copy(state.join(name), copy.path().join(name)) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        let connection = Connection::open(copy.path().join("agent.db")).unwrap();
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok", "the database file");
        let mut books = Self { chain: audit(&connection), ..Self::default() };
        let mut rows =
            connection.prepare("SELECT serial, id, kind, outcome FROM operation ORDER BY serial").unwrap();
        books.operations = rows
            .query_map([], |row| {
                Ok((row.get(0)?, Operation { id: row.get(1)?, kind: row.get(2)?, outcome: row.get(3)? }))
            })
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for serial in books.operations.keys() {
            for task in journal(&connection, *serial) {
                assert!(books.tasks.insert(task.clone()), "{task} stands in two journals");
            }
        }
        books
    }

    /// Nothing that was written before is gone or changed: I7, I11.
    pub fn assert_continues(&self, before: &Self) {
        assert!(self.chain.starts_with(&before.chain), "the audit lost or changed a line");
        assert!(self.tasks.is_superset(&before.tasks), "the journal lost a task");
        for (serial, then) in &before.operations {
            let now = &self.operations[serial];
            assert_eq!((&now.id, &now.kind), (&then.id, &then.kind), "operation {serial}");
            let went_on = then.outcome.is_none() || then.outcome == now.outcome;
            assert!(went_on, "operation {serial} ended twice");
        }
    }
}

/// Checks one operation's journal against the rules of steps, and returns the tasks it names.
fn journal(connection: &Connection, serial: i64) -> Vec<String> {
    let mut rows =
        connection.prepare("SELECT number, body FROM event WHERE operation = ?1 ORDER BY number").unwrap();
    let events: Vec<(i64, String)> = rows
        .query_map([serial], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let (mut tasks, mut open, mut kinds) = (Vec::new(), None, BTreeSet::new());
    for (expected, (number, body)) in (1_i64..).zip(&events) {
        assert_eq!(*number, expected, "operation {serial} has a gap in its journal");
        let event: Value = serde_json::from_str(body).unwrap();
        let Some((name, part)) = event.as_object().and_then(|map| map.iter().next()) else { continue };
        let step = part["step"].as_u64();
        match name.as_str() {
            "intended" | "undo_intended" => {
                assert_eq!(open, None, "operation {serial}: a step begins while another is open: {body}");
                open = step;
                kinds.clear();
            }
            "posted" => {
                let task = part["upid"].as_str().unwrap();
                assert_eq!(step, open, "operation {serial}: a task of a step that was not intended: {body}");
                let kind = task.split(':').nth(5).unwrap().to_owned();
                assert!(
                    kinds.insert(kind),
                    "operation {serial}: one try of a step has two such tasks: {body}"
                );
                tasks.push(task.to_owned());
            }
            "succeeded" | "failed" | "undo_succeeded" => {
                assert_eq!(
                    step, open,
                    "operation {serial}: an outcome of a step that was not intended: {body}"
                );
                open = None;
            }
            _ => {}
        }
    }
    tasks
}

/// Checks the hashes of the audit, as `agent_store::audit` describes them.
fn audit(connection: &Connection) -> Vec<Vec<u8>> {
    let mut rows = connection
        .prepare("SELECT number, at, action, guest, operation, detail, chain FROM audit ORDER BY number")
        .unwrap();
    let mut rows = rows.query([]).unwrap();
    let mut chain: Vec<Vec<u8>> = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let number: i64 = row.get(0).unwrap();
        assert_eq!(usize::try_from(number).unwrap(), chain.len() + 1, "the audit has a gap");
        let mut hash = Sha256::new();
        let mut field = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        field(chain.last().map_or(&[], Vec::as_slice));
        field(&number.to_be_bytes());
        field(&row.get::<_, i64>(1).unwrap().to_be_bytes());
        field(row.get::<_, String>(2).unwrap().as_bytes());
        for place in [3, 4] {
            let text: Option<String> = row.get(place).unwrap();
            field(&[u8::from(text.is_some())]);
            field(text.unwrap_or_default().as_bytes());
        }
        field(row.get::<_, String>(5).unwrap().as_bytes());
        let reported: Vec<u8> = row.get(6).unwrap();
        assert_eq!(
            reported,
            hash.finalize().to_vec(),
            "the audit's line {number} does not fit the one before"
        );
        chain.push(reported);
    }
    chain
}
