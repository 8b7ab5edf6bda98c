//! Counts and digests of tables.
//!
//! They are the same for an export, its import, and an export of the other engine.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSummary {
    pub name: String,
    pub rows: u64,
    pub sha256: String,
}

/// All tables, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub tables: Vec<TableSummary>,
    pub rows: u64,
    /// Over all counts and digests, for one look.
    pub sha256: String,
}

impl Summary {
    #[must_use]
    pub fn of(tables: &[TableSummary]) -> Self {
        let mut tables = tables.to_vec();
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        let mut hash = Sha256::new();
        for TableSummary { name, rows, sha256 } in &tables {
            hash.update(format!("{name} {rows} {sha256}\n"));
        }
        Self {
            rows: tables.iter().map(|table| table.rows).sum(),
            sha256: hex::encode(hash.finalize()),
            tables,
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// In the middle of a large table.
    Rows { table: &'a str, rows: u64 },
    /// A table is through.
    Table { table: &'a str, rows: u64 },
    /// All rows were written, and are read again.
    Verifying,
}

/// Rows between two announcements within a table.
pub(super) const ANNOUNCED_ROWS: u64 = 250_000;
