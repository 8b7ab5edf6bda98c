//! Export and import of rows on SQLite.
//!
//! A look is one read transaction, also while a hub serves: the hub's writes go on, and the look does not see them. A new
//! file has no journal while it is filled, since it is given up where anything fails. Deliberately absent: its place.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::{OpenError, schema};
use crate::transfer::{
    Column, ColumnKind, Counters, EachRow, EngineError, ImportError, NextRow, RowSink, RowSource, Table,
    Value, quoted,
};

/// A look at a database file.
pub struct SqliteSnapshot(Connection);

/// A new database file, up to its commit.
pub struct SqliteImport {
    snapshot: SqliteSnapshot,
    path: PathBuf,
    /// Their text, to make them again.
    triggers: Vec<String>,
}

fn failed(action: &'static str) -> impl Fn(rusqlite::Error) -> EngineError {
    move |source| EngineError::Failed { action, source: Box::new(source) }
}

/// Begins a look. Blocks.
///
/// # Errors
/// [`OpenError`]; also where the file is of an older or newer hub.
pub fn snapshot(path: &Path) -> Result<SqliteSnapshot, OpenError> {
    let connection = schema::open_snapshot(path)?;
    let begun = connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;");
    begun.map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })?;
    Ok(SqliteSnapshot(connection))
}

/// Makes a new database file with the hub's tables, to be filled. Blocks.
///
/// # Errors
/// [`OpenError`].
pub fn new_file(path: &Path) -> Result<SqliteImport, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = schema::open_writer(path)?;
    for mode in ["DELETE", "OFF"] {
        let sql = format!("PRAGMA journal_mode = {mode}");
        connection.query_row(&sql, [], |_| Ok(())).map_err(sqlite)?;
    }
    // One sync at the end is enough for a file that has no name yet.
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN IMMEDIATE").map_err(sqlite)?;
    let snapshot = SqliteSnapshot(connection);
    Ok(SqliteImport { snapshot, path: path.to_owned(), triggers: Vec::new() })
}

impl SqliteSnapshot {
    fn names(&self) -> rusqlite::Result<Vec<String>> {
        let sql =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        self.0.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    }

    fn table(&self, name: String) -> Result<Table, EngineError> {
        let of_catalogue = failed("read its tables");
        let (mut columns, mut key) = (Vec::new(), BTreeMap::new());
        let sql = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY name";
        let mut statement = self.0.prepare(sql).map_err(&of_catalogue)?;
        let mut rows = statement.query([&name]).map_err(&of_catalogue)?;
        while let Some(row) = rows.next().map_err(&of_catalogue)? {
            let of = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(String, String, i64, i64)> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            };
            let (column, found, place, hidden) = of(row).map_err(&of_catalogue)?;
            let kind = match (found.as_str(), hidden) {
                ("INTEGER", 0) => ColumnKind::Integer,
                ("TEXT", 0) => ColumnKind::Text,
                ("BLOB", 0) => ColumnKind::Bytes,
                (_, _) => return Err(EngineError::Column { table: name, column, found }),
            };
            if place > 0 {
                key.insert(place, column.clone());
            }
            columns.push(Column { name: column, kind });
        }
        let sql = "SELECT DISTINCT \"table\" FROM pragma_foreign_key_list(?1)";
        let mut statement = self.0.prepare(sql).map_err(&of_catalogue)?;
        let refers_to = statement.query_map([&name], |row| row.get(0)).map_err(&of_catalogue)?;
        let refers_to = refers_to.collect::<rusqlite::Result<_>>().map_err(&of_catalogue)?;
        Ok(Table { name, columns, key: key.into_values().collect(), refers_to })
    }

    /// Tables that never give a number twice.
    fn counted(&self) -> rusqlite::Result<Vec<(String, String)>> {
        let sql = "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_xinfo(m.name) AS c
                   WHERE m.type = 'table' AND m.sql LIKE '%AUTOINCREMENT%' AND c.pk = 1";
        self.0.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}

impl RowSource for SqliteSnapshot {
    fn tables(&mut self) -> Result<Vec<Table>, EngineError> {
        let names = self.names().map_err(failed("list its tables"))?;
        names.into_iter().map(|name| self.table(name)).collect()
    }

    fn counters(&mut self) -> Result<Counters, EngineError> {
        let read = || -> rusqlite::Result<Counters> {
            let sql = "SELECT name, seq FROM sqlite_sequence";
            self.0.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        read().map_err(failed("read its counters"))
    }

    fn rows(&mut self, table: &Table, each: &mut EachRow<'_>) -> Result<(), EngineError> {
        let of_rows = failed("read its rows");
        let mut statement = self.0.prepare(&table.select()).map_err(&of_rows)?;
        let mut rows = statement.query([]).map_err(&of_rows)?;
        while let Some(row) = rows.next().map_err(&of_rows)? {
            let mut values = Vec::with_capacity(table.columns.len());
            for (place, column) in table.columns.iter().enumerate() {
                values.push(match row.get_ref(place).map_err(&of_rows)? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(number) => Value::Integer(number),
                    ValueRef::Text(bytes) => Value::text(str_of(bytes).map_err(&of_rows)?),
                    ValueRef::Blob(bytes) => Value::Bytes(bytes.into()),
                    ValueRef::Real(_) => {
                        let (table, column) = (table.name.clone(), column.name.clone());
                        return Err(EngineError::Column { table, column, found: "REAL".to_owned() });
                    }
                });
            }
            each(&values).map_err(EngineError::File)?;
        }
        Ok(())
    }
}

fn str_of(bytes: &[u8]) -> rusqlite::Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}

impl RowSource for SqliteImport {
    fn tables(&mut self) -> Result<Vec<Table>, EngineError> {
        self.snapshot.tables()
    }

    fn counters(&mut self) -> Result<Counters, EngineError> {
        self.snapshot.counters()
    }

    fn rows(&mut self, table: &Table, each: &mut EachRow<'_>) -> Result<(), EngineError> {
        self.snapshot.rows(table, each)
    }
}

impl SqliteImport {
    fn connection(&self) -> &Connection {
        &self.snapshot.0
    }
}

impl RowSink for SqliteImport {
    fn prepare(&mut self, tables: &[Table]) -> Result<(), ImportError> {
        let read = || -> rusqlite::Result<Vec<(String, String)>> {
            let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'";
            self.connection().prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let triggers = read().map_err(failed("read its triggers"))?;
        for (name, _) in &triggers {
            let sql = format!("DROP TRIGGER {}", quoted(name));
            self.connection().execute_batch(&sql).map_err(failed("turn its triggers off"))?;
        }
        self.triggers = triggers.into_iter().map(|(_, text)| text).collect();
        // The file was made for this: rows in it were made with its tables.
        for table in tables.iter().rev() {
            let sql = format!("DELETE FROM {}", quoted(&table.name));
            self.connection().execute_batch(&sql).map_err(failed("empty its tables"))?;
        }
        Ok(())
    }

    fn load(&mut self, table: &Table, next: &mut NextRow<'_>) -> Result<(), ImportError> {
        let of_rows = failed("write its rows");
        let places = vec!["?"; table.columns.len()].join(", ");
        let (name, columns) = (quoted(&table.name), table.column_list());
        let sql = format!("INSERT INTO {name} ({columns}) VALUES ({places})");
        let mut statement = self.connection().prepare(&sql).map_err(&of_rows)?;
        while let Some(row) = next()? {
            statement.execute(params_from_iter(row.iter())).map_err(&of_rows)?;
        }
        Ok(())
    }

    fn set_counters(&mut self, counters: &Counters) -> Result<(), EngineError> {
        let write = || -> rusqlite::Result<()> {
            for (table, _) in self.snapshot.counted()? {
                let Some(highest) = counters.get(&table) else { continue };
                let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
                let found: Option<i64> =
                    self.connection().query_row(sql, [&table], |row| row.get(0)).optional()?;
                match found {
                    Some(found) if found >= *highest => continue,
                    Some(_) => self.connection().execute(
                        "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1",
                        params![table, highest],
                    )?,
                    None => self.connection().execute(
                        "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                        params![table, highest],
                    )?,
                };
            }
            Ok(())
        };
        write().map_err(failed("set its counters"))
    }

    fn commit(self: Box<Self>) -> Result<(), EngineError> {
        for text in &self.triggers {
            self.connection().execute_batch(text).map_err(failed("turn its triggers on"))?;
        }
        self.connection().execute_batch("COMMIT").map_err(failed("commit"))?;
        let Self { snapshot: SqliteSnapshot(connection), path, .. } = *self;
        connection.close().map_err(|(_, error)| failed("close the file")(error))?;
        let synced = File::open(path).and_then(|file| file.sync_all());
        synced.map_err(|error| EngineError::Failed { action: "sync the file", source: Box::new(error) })
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => rusqlite::types::Null.into(),
            Self::Integer(number) => (*number).into(),
            Self::Text(text) => text.as_ref().into(),
            Self::Bytes(bytes) => bytes.as_ref().into(),
        })
    }
}
