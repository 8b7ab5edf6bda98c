//! Why rows are not exported or imported.

use std::io;

use super::FolderError;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// The engine did not carry it out.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the database could not {action}")]
    Failed {
        action: &'static str,
        #[source]
        source: Source,
    },
    #[error(
        "column {column} of table {table} is of type {found}, which cannot be carried over: it is not of this hub's schema"
    )]
    Column { table: String, column: String, found: String },
    #[error("these tables refer to each other in a circle, and their rows have no order: {0}")]
    Circle(String),
    /// What was done with a row failed.
    #[error("a row could not be written to the file")]
    File(#[source] io::Error),
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the file cannot be written: look at its disk")]
    Write(#[source] io::Error),
    #[error("a line cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(
        "the file cannot be read as an export of a hub, and nothing was changed: give the file that `hubd db export` or `hubd backup` wrote"
    )]
    Foreign(#[source] Source),
    #[error("the file cannot be read, and nothing was changed")]
    Read(#[source] io::Error),
    #[error("the file was cut off, and nothing was changed: copy it again, or take another export")]
    Cut,
    #[error(
        "line {line} of the file is not what must be there, and nothing was changed: the file was changed or damaged"
    )]
    Line {
        line: u64,
        #[source]
        source: Source,
    },
    #[error(
        "the file was changed after it was written, and nothing was changed here: {what} has another digest"
    )]
    Changed { what: String },
    #[error(
        "the file was written by a newer hub ({hub}), and nothing was changed: import it with that version or a later one"
    )]
    Newer { hub: String },
    #[error(
        "the tables of the file (hub {hub}) differ from those of the database, and nothing was changed: {difference}. Import it \
         with that version, then upgrade"
    )]
    Tables { hub: String, difference: String },
    #[error("the database is not empty, and nothing was changed: table {0} has rows. Give an empty one")]
    NotEmpty(String),
    #[error(
        "what the database holds after the import differs from the file in table {0}, and nothing was changed"
    )]
    Differs(String),
    #[error(
        "the file is of the hub with CA {file} and this folder of the one with CA {folder}, and nothing was changed: give the \
         folder of the same hub"
    )]
    OtherHub { file: String, folder: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl ImportError {
    pub(super) fn line(line: u64, source: impl Into<Source>) -> Self {
        Self::Line { line, source: source.into() }
    }
}
