//! Export and import of rows on PostgreSQL.
//!
//! A look is one read-only transaction that sees one commit, also while hubs serve. An import is one transaction: it has the
//! writers' lock, so no hub writes meanwhile, and rows come by COPY. Deliberately absent: the making of tables, which is
//! `hubd db migrate`.

use std::collections::BTreeMap;

use ::postgres::binary_copy::BinaryCopyInWriter;
use ::postgres::fallible_iterator::FallibleIterator as _;
use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Error};

use super::OpenError;
use super::schema;
use super::server::Server;
use super::sql::{self, ValueRef};
use crate::transfer::{
    Column, ColumnKind, Counters, EachRow, EngineError, ImportError, NextRow, RowSink, RowSource, Table,
    Value, is_left_out, quoted,
};

/// Tables are long, so a statement has no bound here. A wait for a lock keeps its own. The look begins with the first query.
const BEGIN_READ: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; SELECT 1";

/// With the lock that all writers take in turn (`writer`).
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = '10min'; SELECT pg_advisory_xact_lock(1751541858)";

const TABLES: &str = "SELECT c.oid::bigint, c.relname::text FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')";

const COLUMNS: &str = "SELECT attname::text, format_type(atttypid, atttypmod), attgenerated <> ''
    FROM pg_catalog.pg_attribute WHERE attrelid = ($1::bigint)::oid AND attnum > 0 AND NOT attisdropped";

const KEY: &str = "SELECT a.attname::text FROM pg_catalog.pg_index AS i,
        unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (number, place), pg_catalog.pg_attribute AS a
    WHERE i.indrelid = ($1::bigint)::oid AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.number
    ORDER BY k.place";

const REFERS_TO: &str = "SELECT DISTINCT confrelid::regclass::text FROM pg_catalog.pg_constraint
    WHERE conrelid = ($1::bigint)::oid AND contype = 'f'";

/// Columns that the server numbers, with what counts for them.
const COUNTED: &str = "SELECT c.relname::text, a.attname::text,
        pg_get_serial_sequence(quote_ident(c.relname), a.attname::text)
    FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND a.attidentity <> ''";

/// A look at a database.
pub struct PostgresSnapshot(Client);

/// A transaction on an empty database.
pub struct PostgresImport {
    snapshot: PostgresSnapshot,
    /// Tables whose triggers are off.
    quiet: Vec<String>,
}

fn failed(action: &'static str) -> impl Fn(Error) -> EngineError {
    move |source| EngineError::Failed { action, source: Box::new(source) }
}

/// A session at a database whose schema is the hub's.
fn session(server: &Server, begin: &str) -> Result<Client, OpenError> {
    let session = server.session()?;
    schema::check(&session)?;
    let mut client = session.into_client();
    client.batch_execute(begin).map_err(|error| OpenError::Lock(Box::new(error)))?;
    Ok(client)
}

/// Begins a look. Blocks.
///
/// # Errors
/// [`OpenError`].
pub fn snapshot(server: &Server) -> Result<PostgresSnapshot, OpenError> {
    session(server, BEGIN_READ).map(PostgresSnapshot)
}

/// Begins an import. Blocks.
///
/// # Errors
/// [`OpenError`]; also where the tables are not made yet.
pub fn empty_database(server: &Server) -> Result<PostgresImport, OpenError> {
    let client = session(server, BEGIN_WRITE)?;
    Ok(PostgresImport { snapshot: PostgresSnapshot(client), quiet: Vec::new() })
}

impl PostgresSnapshot {
    fn table(&mut self, id: i64, name: String) -> Result<Table, EngineError> {
        let of_catalogue = failed("read its tables");
        let mut columns = Vec::new();
        for row in self.0.query(COLUMNS, &[&id]).map_err(&of_catalogue)? {
            let read = || -> Result<(String, String, bool), Error> {
                Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
            };
            let (column, found, is_generated) = read().map_err(&of_catalogue)?;
            let kind = match found.as_str() {
                "bigint" if !is_generated => ColumnKind::Integer,
                "text" if !is_generated => ColumnKind::Text,
                "bytea" if !is_generated => ColumnKind::Bytes,
                _ => return Err(EngineError::Column { table: name, column, found }),
            };
            columns.push(Column { name: column, kind });
        }
        columns.sort_by(|one, other| one.name.cmp(&other.name));
        let mut names = |sql: &str| -> Result<Vec<String>, Error> {
            self.0.query(sql, &[&id])?.iter().map(|row| row.try_get(0)).collect()
        };
        let key = names(KEY).map_err(&of_catalogue)?;
        let refers_to = names(REFERS_TO).map_err(&of_catalogue)?.into_iter().collect();
        Ok(Table { name, columns, key, refers_to })
    }

    fn counted(&mut self) -> Result<Vec<(String, String, String)>, Error> {
        let rows = self.0.query(COUNTED, &[])?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
    }

    fn number(&mut self, sql: &str) -> Result<Option<i64>, Error> {
        self.0.query_one(sql, &[])?.try_get(0)
    }
}

impl RowSource for PostgresSnapshot {
    fn tables(&mut self) -> Result<Vec<Table>, EngineError> {
        let of_catalogue = failed("list its tables");
        let mut tables = Vec::new();
        for row in self.0.query(TABLES, &[]).map_err(&of_catalogue)? {
            let read = || -> Result<(i64, String), Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
            let (id, name) = read().map_err(&of_catalogue)?;
            if !is_left_out(&name) {
                tables.push(self.table(id, name)?);
            }
        }
        Ok(tables)
    }

    fn counters(&mut self) -> Result<Counters, EngineError> {
        let mut read = || -> Result<Counters, Error> {
            let mut counters = BTreeMap::new();
            for (table, _, sequence) in self.counted()? {
                let sql = format!("SELECT CASE WHEN is_called THEN last_value END FROM {sequence}");
                counters.extend(self.number(&sql)?.map(|highest| (table, highest)));
            }
            Ok(counters)
        };
        read().map_err(failed("read its counters"))
    }

    fn rows(&mut self, table: &Table, each: &mut EachRow<'_>) -> Result<(), EngineError> {
        let of_rows = failed("read its rows");
        let none: [&(dyn ToSql + Sync); 0] = [];
        let mut rows = self.0.query_raw(table.select().as_str(), none).map_err(&of_rows)?;
        while let Some(row) = rows.next().map_err(&of_rows)? {
            let mut values = Vec::with_capacity(table.columns.len());
            for place in 0..table.columns.len() {
                values.push(value(row.try_get(place).map_err(&of_rows)?));
            }
            each(&values).map_err(EngineError::File)?;
        }
        Ok(())
    }
}

fn value(column: ValueRef<'_>) -> Value<'_> {
    match column {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Boolean(truth) => Value::Integer(truth.into()),
        ValueRef::Text(text) => Value::text(text),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.into()),
    }
}

fn parameter<'a>(value: &'a Value<'_>) -> sql::Value<'a> {
    match value {
        Value::Null => sql::Value::Null,
        Value::Integer(number) => sql::Value::Integer(*number),
        Value::Text(std::borrow::Cow::Borrowed(text)) => sql::Value::Text(text),
        Value::Text(std::borrow::Cow::Owned(text)) => sql::Value::Text(text.as_str()),
        Value::Bytes(std::borrow::Cow::Borrowed(bytes)) => sql::Value::Blob(bytes),
        Value::Bytes(std::borrow::Cow::Owned(bytes)) => sql::Value::Blob(bytes.as_slice()),
    }
}

fn type_of(kind: ColumnKind) -> Type {
    match kind {
        ColumnKind::Integer => Type::INT8,
        ColumnKind::Text => Type::TEXT,
        ColumnKind::Bytes => Type::BYTEA,
    }
}

impl RowSource for PostgresImport {
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

impl RowSink for PostgresImport {
    fn prepare(&mut self, tables: &[Table]) -> Result<(), ImportError> {
        let client = &mut self.snapshot.0;
        for table in tables {
            let name = quoted(&table.name);
            if table.is_singleton() {
                client.batch_execute(&format!("DELETE FROM {name}")).map_err(failed("empty its tables"))?;
                continue;
            }
            let sql = format!("SELECT EXISTS (SELECT FROM {name})");
            let looked = client.query_one(&sql, &[]).and_then(|row| row.try_get::<_, bool>(0));
            if looked.map_err(failed("look whether it is empty"))? {
                return Err(ImportError::NotEmpty(table.name.clone()));
            }
        }
        let sql = "SELECT DISTINCT tgrelid::regclass::text FROM pg_catalog.pg_trigger AS t
            JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
            WHERE NOT tgisinternal AND c.relnamespace = 'public'::regnamespace";
        let rows = client.query(sql, &[]).map_err(failed("read its triggers"))?;
        let names: Result<Vec<String>, Error> = rows.iter().map(|row| row.try_get(0)).collect();
        self.quiet = names.map_err(failed("read its triggers"))?;
        for table in &self.quiet {
            let sql = format!("ALTER TABLE {table} DISABLE TRIGGER USER");
            client.batch_execute(&sql).map_err(failed("turn its triggers off"))?;
        }
        Ok(())
    }

    fn load(&mut self, table: &Table, next: &mut NextRow<'_>) -> Result<(), ImportError> {
        let of_rows = failed("write its rows");
        let sql =
            format!("COPY {} ({}) FROM STDIN (FORMAT binary)", quoted(&table.name), table.column_list());
        let types: Vec<Type> = table.columns.iter().map(|column| type_of(column.kind)).collect();
        let copy = self.snapshot.0.copy_in(&sql).map_err(&of_rows)?;
        let mut writer = BinaryCopyInWriter::new(copy, &types);
        while let Some(row) = next()? {
            let values: Vec<sql::Value<'_>> = row.iter().map(parameter).collect();
            let values: Vec<&(dyn ToSql + Sync)> =
                values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
            writer.write(&values).map_err(&of_rows)?;
        }
        writer.finish().map_err(&of_rows)?;
        Ok(())
    }

    /// Sequences are not the transaction's: where its end fails, an empty database goes on with higher numbers.
    fn set_counters(&mut self, counters: &Counters) -> Result<(), EngineError> {
        let mut write = || -> Result<(), Error> {
            for (table, column, sequence) in self.snapshot.counted()? {
                let sql = format!("SELECT max({}) FROM {}", quoted(&column), quoted(&table));
                let highest = self.snapshot.number(&sql)?.max(counters.get(&table).copied());
                let Some(highest) = highest.filter(|highest| *highest > 0) else { continue };
                self.snapshot
                    .0
                    .query_one("SELECT setval(($1::text)::regclass, $2)", &[&sequence, &highest])?;
            }
            Ok(())
        };
        write().map_err(failed("set its counters"))
    }

    fn commit(mut self: Box<Self>) -> Result<(), EngineError> {
        let client = &mut self.snapshot.0;
        for table in &self.quiet {
            let sql = format!("ALTER TABLE {table} ENABLE TRIGGER USER");
            client.batch_execute(&sql).map_err(failed("turn its triggers on"))?;
        }
        client.batch_execute("COMMIT").map_err(failed("commit"))?;
        // Only plans depend on it, and the server does it by itself a minute later.
        if let Err(error) = client.batch_execute("SET statement_timeout = 0; ANALYZE") {
            tracing::warn!(action = "analyze", result = "failed", error = %error);
        }
        Ok(())
    }
}
