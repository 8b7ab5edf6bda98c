//! The schema of the database: its migrations and its check.
//!
//! A schema has a number, and the lowest number that a hub must know to work with it. A migration that only adds leaves the
//! latter as it is, so hubs of two releases can work side by side; what was replaced goes one release later. Only the
//! verb changes the schema. It polls for its lock: a session that waited inside the server would hold a transaction open,
//! and some statements of migrations wait for all of those.

use std::time::Duration;

use ::postgres::error::SqlState;

use super::server::{ConnectError, Server};
use super::sql::{self, Connection, Error, OptionalExtension as _, params};

/// A step from the schema before.
struct Migration {
    sql: &'static str,
    /// The lowest schema number that a hub must know to work with this one.
    readable_from: u32,
}

/// The number of a schema is its place here, from 1.
const MIGRATIONS: &[Migration] =
    &[Migration { sql: include_str!("../../migrations/postgres/0001_first.sql"), readable_from: 1 }];

/// What the other engine has in its header. It is made by the first migration.
const OWN_TABLE: &str = "CREATE TABLE hub_schema (
    one            BIGINT PRIMARY KEY CHECK (one = 1),
    version        BIGINT NOT NULL,
    -- The lowest number that a hub must know to work with this schema.
    readable_from  BIGINT NOT NULL
)";

/// Whether the schema is the hub's own, and how many tables are there.
const LOOK: &str = "SELECT to_regclass('public.hub_schema') IS NOT NULL,
    (SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'public')";

/// One migration at a time. The number is `hfhc` as ASCII.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(1751541859)";

const LOCK_POLL: Duration = Duration::from_millis(500);

const LOCK_TRIES: u32 = 120;

/// A statement that waits for others' transactions gives up soon, and the whole step is tried again.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '3s'; SET LOCAL statement_timeout = 0";

const STEP_TRIES: u32 = 10;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why the hub cannot work with the schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the database is empty, and nothing was changed: `hubd db migrate` makes the hub's tables")]
    Missing,
    #[error(
        "the database has schema {found}, this hub needs {known}, and nothing was changed: `hubd db migrate` brings it there"
    )]
    Older { found: u32, known: u32 },
    #[error(
        "the database has schema {found}, this hub knows up to {known}, and nothing was changed: install the newer hub"
    )]
    Newer { found: u32, known: u32 },
    #[error(
        "the database has tables of another program, and nothing was changed: give the hub one of its own"
    )]
    Foreign,
    #[error("the schema of the database cannot be read")]
    Unreadable(#[source] Source),
}

impl From<Error> for SchemaError {
    fn from(error: Error) -> Self {
        Self::Unreadable(Box::new(error))
    }
}

/// Why the schema was not changed.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("another `hubd db migrate` works on this database, and nothing was changed: wait for its end")]
    Busy,
    #[error("schema {number} could not be made, and the database is as before")]
    Step {
        number: u32,
        #[source]
        source: Source,
    },
}

/// From which schema to which; 0 is an empty database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    pub from: u32,
    pub to: u32,
}

/// The newest schema that this hub knows.
#[must_use]
pub fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

struct StoredSchema {
    version: u32,
    readable_from: u32,
}

fn find(connection: &Connection) -> Result<Option<StoredSchema>, SchemaError> {
    let look = |row: &sql::Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, u32>(1)?));
    let (is_own, tables) = connection.query_row(LOOK, [], look)?;
    match (is_own, tables) {
        (false, 0) => return Ok(None),
        (false, _) => return Err(SchemaError::Foreign),
        (true, _) => {}
    }
    let read = |row: &sql::Row<'_>| Ok(StoredSchema { version: row.get(0)?, readable_from: row.get(1)? });
    let sql = "SELECT version, readable_from FROM hub_schema";
    connection.query_row(sql, [], read).optional()?.ok_or(SchemaError::Foreign).map(Some)
}

/// Whether this hub can work with the schema.
pub(super) fn check(connection: &Connection) -> Result<(), SchemaError> {
    let StoredSchema { version, readable_from } = find(connection)?.ok_or(SchemaError::Missing)?;
    let known = known();
    if readable_from > known {
        Err(SchemaError::Newer { found: version, known })
    } else if version < known {
        Err(SchemaError::Older { found: version, known })
    } else {
        Ok(())
    }
}

impl Server {
    /// Brings the schema to the newest that this hub knows. Blocks.
    ///
    /// # Errors
    /// [`MigrateError`]; then nothing was changed since the last step that is named in the log.
    pub fn migrate(&self) -> Result<Migrated, MigrateError> {
        let session = self.session()?;
        lock(&session)?;
        let from = find(&session)?;
        let known = known();
        let version = from.as_ref().map_or(0, |found| found.version);
        if version > known {
            return Err(SchemaError::Newer { found: version, known }.into());
        }
        for (number, migration) in (1..).zip(MIGRATIONS).skip(version as usize) {
            apply(&session, number, migration)
                .map_err(|error| MigrateError::Step { number, source: Box::new(error) })?;
            tracing::info!(action = "migrate", result = "done", schema = number);
        }
        Ok(Migrated { from: version, to: known })
    }
}

/// The lock is the session's: it ends with it.
fn lock(session: &Connection) -> Result<(), MigrateError> {
    for attempt in 1..=LOCK_TRIES {
        let locked = session.query_row(TRY_LOCK, [], |row| row.get::<_, bool>(0));
        if locked.map_err(SchemaError::from)? {
            return Ok(());
        }
        if attempt < LOCK_TRIES {
            std::thread::sleep(LOCK_POLL);
        }
    }
    Err(MigrateError::Busy)
}

fn apply(session: &Connection, number: u32, migration: &Migration) -> sql::Result<()> {
    for attempt in 1.. {
        match step(session, number, migration) {
            Err(Error::Server(error))
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) && attempt < STEP_TRIES =>
            {
                session.execute_batch("ROLLBACK")?;
            }
            other => return other,
        }
    }
    Ok(())
}

/// One step in one transaction, with its number.
fn step(session: &Connection, number: u32, migration: &Migration) -> sql::Result<()> {
    session.execute_batch(BEGIN)?;
    if number == 1 {
        session.execute_batch(OWN_TABLE)?;
        session.execute_batch("INSERT INTO hub_schema (one, version, readable_from) VALUES (1, 0, 0)")?;
    }
    session.execute_batch(migration.sql)?;
    let sql = "UPDATE hub_schema SET version = $1, readable_from = $2";
    session.execute(sql, params![number, migration.readable_from])?;
    session.execute_batch("COMMIT")
}

/// What cannot be read of the hub's tables: one sentence at most.
pub(super) fn faults(connection: &Connection) -> sql::Result<Vec<String>> {
    connection.execute_batch("SET LOCAL statement_timeout = 0")?;
    let sql = "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = 'public' ORDER BY 1";
    let tables: Vec<String> =
        connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect::<sql::Result<_>>()?;
    for table in tables {
        let sql = format!("SELECT coalesce(sum(length(whole::text)), 0)::bigint FROM {table} AS whole");
        match connection.query_row(&sql, [], |row| row.get::<_, i64>(0)) {
            Ok(_) => {}
            Err(Error::Server(error)) if is_damage(&error) => {
                return Ok(vec![format!("table {table}: {error}")]);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

fn is_damage(error: &::postgres::Error) -> bool {
    error.code().is_some_and(|code| [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code))
}
