//! Statements, parameters and rows of one PostgreSQL session.
//!
//! In: SQL with `$1`, and values of the hub's types. Out: rows that are read by place or name. Each text is prepared once
//! per session. The calls block, and one thread at a time has a session. Deliberately absent: transactions, which belong
//! to the writer and the readers.

mod error;
mod row;
mod value;

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use ::postgres::fallible_iterator::FallibleIterator as _;

pub(super) use self::error::{Error, OptionalExtension, Result};
pub(super) use self::row::{FromColumn, Row, ValueRef};
pub(super) use self::value::{Params, ToColumn, Value, params};

/// Statements that a session keeps; there are fewer in the program. Some texts have lists in them.
const STATEMENTS_MAX: usize = 512;

/// A session at the server. It blocks when it is dropped, too: it says farewell.
pub(super) struct Connection {
    client: RefCell<::postgres::Client>,
    statements: RefCell<HashMap<String, ::postgres::Statement>>,
}

impl Connection {
    pub(super) fn new(client: ::postgres::Client) -> Self {
        Self { client: RefCell::new(client), statements: RefCell::default() }
    }

    /// The driver's own client, for streams and copies.
    pub(super) fn into_client(self) -> ::postgres::Client {
        self.client.into_inner()
    }

    /// Whether the session has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.borrow().is_closed()
    }

    /// Runs statements without parameters and without rows, in one round trip.
    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        Ok(self.client.borrow_mut().batch_execute(sql)?)
    }

    /// Waits for a notice of a channel that this session listens to, and takes those behind it, too.
    pub(super) fn notified(&self, wait: Duration) -> Result<bool> {
        let mut client = self.client.borrow_mut();
        let mut notices = client.notifications();
        let came = notices.timeout_iter(wait).next()?.is_some();
        while notices.iter().next()?.is_some() {}
        Ok(came)
    }

    /// The name is that of the other engine: here every statement is cached.
    pub(super) fn prepare_cached<'a>(&'a self, sql: &'a str) -> Result<Prepared<'a>> {
        Ok(Prepared { connection: self, statement: self.statement(sql)? })
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<u64> {
        self.prepare_cached(sql)?.execute(params)
    }

    pub(super) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare_cached(sql)?.query_row(params, read)
    }

    /// A statement whose parameters are the driver's own types, such as arrays.
    pub(super) fn query_arrays(
        &self,
        sql: &str,
        params: &[&(dyn ::postgres::types::ToSql + Sync)],
    ) -> Result<Vec<::postgres::Row>> {
        let statement = self.statement(sql)?;
        Ok(self.client.borrow_mut().query(&statement, params)?)
    }

    /// The same for a statement without rows: how many it changed.
    pub(super) fn execute_arrays(
        &self,
        sql: &str,
        params: &[&(dyn ::postgres::types::ToSql + Sync)],
    ) -> Result<u64> {
        let statement = self.statement(sql)?;
        Ok(self.client.borrow_mut().execute(&statement, params)?)
    }

    fn statement(&self, sql: &str) -> Result<::postgres::Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.borrow_mut().prepare(sql)?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// A prepared statement of a session.
pub(super) struct Prepared<'a> {
    connection: &'a Connection,
    statement: ::postgres::Statement,
}

impl Prepared<'_> {
    fn rows(&self, params: impl Params) -> Result<Vec<::postgres::Row>> {
        let values = params.values()?;
        let refs = value::references(&values);
        Ok(self.connection.client.borrow_mut().query(&self.statement, &refs)?)
    }

    /// Its rows, for a loop.
    pub(super) fn query(&self, params: impl Params) -> Result<Vec<::postgres::Row>> {
        self.rows(params)
    }

    /// How many rows it changed.
    pub(super) fn execute(&self, params: impl Params) -> Result<u64> {
        let values = params.values()?;
        let refs = value::references(&values);
        Ok(self.connection.client.borrow_mut().execute(&self.statement, &refs)?)
    }

    /// The first row; [`Error::NoRow`] without one.
    pub(super) fn query_row<T>(
        &self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let rows = self.rows(params)?;
        read(&Row(rows.first().ok_or(Error::NoRow)?))
    }

    /// All rows, read: each query has its own bound.
    pub(super) fn query_map<T>(
        &self,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<std::vec::IntoIter<Result<T>>> {
        let read: Vec<_> = self.rows(params)?.iter().map(|row| read(&Row(row))).collect();
        Ok(read.into_iter())
    }

    pub(super) fn exists(&self, params: impl Params) -> Result<bool> {
        Ok(!self.rows(params)?.is_empty())
    }
}
