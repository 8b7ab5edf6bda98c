//! Export and import of all rows of a hub.
//!
//! In: one look at a database (`RowSource`), or a file. Out: a file of JSON lines, packed, with a header and a trailer; or
//! the rows of a file in an empty database (`RowSink`). Which tables and columns there are, the database's own catalogue
//! says. Memory is that of one row. Deliberately absent: SQL, which is the engines', and the place of files.
//!
//! ```text
//! {"format":1,"hub":…,"engine":…,"schema":…,"taken_at":…,"ca":…,"tables":[{"name":…,"columns":[…],"key":[…]},…]}
//! {"file":{"name":"ca.key",…}}          the hub's folder, in a backup alone
//! {"table":"hosts"}                     in an order in which each row finds what it refers to
//! [1,null,"box7",{"base64":"AAEC"}]     a row, its columns by name
//! {"end":{"tables":[{"name":…,"rows":…,"sha256":…},…],"counters":{…},"sha256":…}}
//! ```

mod catalogue;
mod error;
mod export;
mod folder;
mod format;
mod import;
mod reader;
mod summary;
mod value;

pub use catalogue::{Column, ColumnKind, LEFT_OUT, Table, is_left_out, ordered, quoted};
pub use error::{EngineError, ExportError, ImportError};
pub use export::{ExportRequest, export};
pub use folder::{FolderError, FolderFile, StagedFolder, is_of_backup, read_folder};
pub use format::{Engine, Header, SchemaNumbers};
pub use import::import;
pub use reader::ExportReader;
pub use summary::{Progress, Summary, TableSummary};
pub use value::{Row, Value};

use std::collections::BTreeMap;

/// The highest number that was ever given to a row, by table: numbers are not given twice.
pub type Counters = BTreeMap<String, i64>;

/// What is done with each row that is read.
pub type EachRow<'a> = dyn FnMut(&[Value<'_>]) -> std::io::Result<()> + 'a;

/// Where the next row to write comes from.
pub type NextRow<'a> = dyn FnMut() -> Result<Option<Row>, ImportError> + 'a;

/// One look at a database, in which nothing changes. All calls block.
pub trait RowSource {
    /// Tables with their columns, in no order; those of the engine itself too.
    ///
    /// # Errors
    /// [`EngineError`].
    fn tables(&mut self) -> Result<Vec<Table>, EngineError>;

    /// # Errors
    /// [`EngineError`].
    fn counters(&mut self) -> Result<Counters, EngineError>;

    /// All rows of a table in the order of its key, or of all its columns where it has none.
    ///
    /// # Errors
    /// [`EngineError`], also where `each` fails.
    fn rows(&mut self, table: &Table, each: &mut EachRow<'_>) -> Result<(), EngineError>;
}

/// A transaction on an empty database. Dropped without [`RowSink::commit`] it leaves nothing.
pub trait RowSink: RowSource {
    /// Refuses a table that has rows, and makes the rest ready: no trigger runs, since rows come with what triggers made.
    ///
    /// # Errors
    /// [`ImportError`].
    fn prepare(&mut self, tables: &[Table]) -> Result<(), ImportError>;

    /// Writes rows until there is no next one.
    ///
    /// # Errors
    /// [`ImportError`].
    fn load(&mut self, table: &Table, next: &mut NextRow<'_>) -> Result<(), ImportError>;

    /// New numbers go on behind these, and behind those of the rows.
    ///
    /// # Errors
    /// [`EngineError`].
    fn set_counters(&mut self, counters: &Counters) -> Result<(), EngineError>;

    /// Returns once everything is durable.
    ///
    /// # Errors
    /// [`EngineError`].
    fn commit(self: Box<Self>) -> Result<(), EngineError>;
}
