//! Opening: one agent at a time, the schema brought up to date, a damaged file set aside.

use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use rustix::fs::{FlockOperation, flock};

use super::error::OpenError;
use super::{Store, Work, migration, rows};
use crate::model::planted::{Bug, planted};

/// A damaged database that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it lies now.
    pub set_aside: PathBuf,
}

impl Store {
    /// Opens `agent.db` in a folder, or makes it. A damaged file is set aside and a new one begun; [`Store::damage`]
    /// then says so, in this run and in every later one.
    ///
    /// # Errors
    /// When another agent holds the folder, or it cannot be used.
    pub fn open(folder: &Path, now: Timestamp) -> Result<Self, OpenError> {
        Self::open_for(folder, now, Work::OwnThread)
    }

    /// The same, for a program with one thread and a clock of its own, such as a test under virtual time: each call is
    /// done by whoever calls before it returns, so no time passes meanwhile.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on_callers_thread(folder: &Path, now: Timestamp) -> Result<Self, OpenError> {
        Self::open_for(folder, now, Work::CallersThread)
    }

    fn open_for(folder: &Path, now: Timestamp, work: Work) -> Result<Self, OpenError> {
        let lock = hold(folder)?;
        let path = folder.join("agent.db");
        let (connection, fresh_damage) = match connect(&path) {
            Ok(connection) => (connection, None),
            Err(OpenError::Sqlite { source, .. }) if is_damage(&source) => {
                let damage = set_aside(&path, now)?;
                (connect(&path)?, Some(damage))
            }
            Err(error) => return Err(error),
        };
        let sqlite = |source| OpenError::Sqlite { path: path.clone(), source };
        let damage = match fresh_damage {
            Some(damage) => {
                let text = damage.set_aside.display().to_string();
                connection
                    .execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('damage', ?1)", [text])
                    .map_err(sqlite)?;
                Some(damage)
            }
            None => connection
                .query_row("SELECT value FROM meta WHERE key = 'damage'", [], |row| row.get::<_, String>(0))
                .optional()
                .map_err(sqlite)?
                .map(|text| Damage { set_aside: text.into() }),
        };
        rows::note_time(&connection, now).map_err(sqlite)?;
        Self::start(connection, damage, lock, work).map_err(|source| OpenError::Folder { path, source })
    }
}

/// Two agents on one folder would both believe they are the one writer.
fn hold(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join("agent.lock");
    let failed = |source| OpenError::Folder { path: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    if planted(Bug::NoLock) {
        return Ok(file);
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Held(folder.to_owned())),
        Err(errno) => Err(failed(errno.into())),
    }
}

fn connect(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    // A row of one guest is under 2 KiB; 1 MiB of cache holds the working set of a hundred and keeps the agent small.
    connection.pragma_update(None, "cache_size", -1024).map_err(failed)?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed)?;
    let check: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if check != "ok" {
        let broken = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        return Err(failed(rusqlite::Error::SqliteFailure(broken, Some(check))));
    }
    migration::migrate(&mut connection, path)?;
    Ok(connection)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn set_aside(path: &Path, now: Timestamp) -> Result<Damage, OpenError> {
    let stamp = now.as_second();
    let mut set_aside = path.to_owned();
    set_aside.set_file_name(format!("agent.db.damaged-{stamp}"));
    for (from, to) in ["", "-wal", "-shm"].map(|tail| (with_tail(path, tail), with_tail(&set_aside, tail))) {
        match std::fs::rename(&from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Folder { path: from, source }),
        }
    }
    Ok(Damage { set_aside })
}

fn with_tail(path: &Path, tail: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(tail);
    text.into()
}
