//! Lines of an export file.
//!
//! A file is a header, files of the folder in a backup, rows by table, and a trailer. Every line but the trailer counts for
//! the digest of the whole.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Counters, FolderFile, Table, TableSummary};

/// The form of the file. A reader refuses a higher one.
pub(super) const FORMAT: u32 = 1;

/// A line holds one row at most; the largest is a report.
pub(super) const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What keeps the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// The numbers of the shared tables in both engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaNumbers {
    pub sqlite: u32,
    pub postgres: u32,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub format: u32,
    /// The version of the hub that wrote it.
    pub hub: String,
    pub engine: Engine,
    pub schema: SchemaNumbers,
    pub taken_at: Timestamp,
    /// The fingerprint of the hub's CA.
    pub ca: String,
    pub tables: Vec<Table>,
}

/// The part of the first line that every form has.
#[derive(Deserialize)]
pub(super) struct AnyHeader {
    pub(super) format: u32,
    pub(super) hub: String,
}

/// A later line that is no row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    File(FolderFile),
    Table(String),
    End(Trailer),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trailer {
    pub(super) tables: Vec<TableSummary>,
    pub(super) counters: Counters,
    /// Of all lines before.
    pub(super) sha256: String,
}
