//! Every row of a database, for comparisons.
//!
//! Included by path in the test programs of agent and hub, which share no crate of their own. In: the file, which
//! another program may have open for writing. Out: table after table, in the order of their names. Deliberately absent:
//! which tables may change.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

/// One row, with the name of its table.
pub type Row = (String, Vec<Value>);

/// Every row of every table.
pub fn rows(database: &Path) -> Vec<Row> {
    let raw = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let names: Vec<String> =
        raw.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut all = Vec::new();
    for name in names {
        let mut select = raw.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let width = select.column_count();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            all.push((name.clone(), (0..width).map(|place| row.get(place).unwrap()).collect()));
        }
    }
    all
}
