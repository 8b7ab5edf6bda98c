//! Opening the database: lock, schema and damaged files.

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use rustix::fs::{FlockOperation, flock};

use super::error::OpenError;
use super::migration::BuildStanding;
use super::refusal::{self, Health, Refusal};
use super::{Store, Work, check, columns, migration, replaced, roster};

/// Only the agent may read the audit, the hashes of tokens and the signed orders.
const FILE_MODE: u32 = 0o600;

impl Store {
    /// Opens `agent.db` in a folder, or makes it. A damaged file is set aside, and a new one is begun in which all
    /// writes are refused. A file on a full or failing disk is opened only for reading. [`Store::refusal`] then says
    /// so.
    ///
    /// # Errors
    /// When another agent holds the folder, or it cannot be used.
    pub fn open(folder: &Path, now: Timestamp) -> Result<Self, OpenError> {
        Self::open_for(folder, now, Work::OwnThread, BuildStanding::Settled)
    }

    /// As [`Store::open`], for a build that may be on trial.
    ///
    /// # Errors
    /// As [`Store::open`], and where the build before could not read the file any more.
    pub fn open_by(folder: &Path, now: Timestamp, standing: BuildStanding) -> Result<Self, OpenError> {
        Self::open_for(folder, now, Work::OwnThread, standing)
    }

    /// As [`Store::open`], for a program with one thread and its own clock, such as a test under virtual time. Each
    /// call does its work on the caller's thread before it returns, so no time passes meanwhile.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on_callers_thread(folder: &Path, now: Timestamp) -> Result<Self, OpenError> {
        Self::open_for(folder, now, Work::CallersThread, BuildStanding::Settled)
    }

    fn open_for(
        folder: &Path,
        now: Timestamp,
        work: Work,
        standing: BuildStanding,
    ) -> Result<Self, OpenError> {
        let lock = hold(folder)?;
        let path = folder.join("agent.db");
        let (connection, refusal) = open_file((folder, &path), now, standing)?;
        connection
            .busy_timeout(LOCK_WAIT)
            .map_err(|source| OpenError::Sqlite { path: path.clone(), source })?;
        let health = Health::new(folder, refusal);
        Self::start(connection, health, (lock, work), now)
            .map_err(|source| OpenError::Folder { path, source })
    }
}

/// A call waits so long for another program that holds the file's lock. Then it fails, and its caller tries again.
const LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// A start waits longer: an end would only begin the next start, and use up those of a build on trial. systemd waits 90 s.
const START_LOCK_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(45);

/// The file, and why nothing may be written into it, if so.
fn open_file(
    (folder, path): (&Path, &Path),
    now: Timestamp,
    standing: BuildStanding,
) -> Result<(Connection, Option<Refusal>), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    if let Err(error) = make_private(path) {
        // A disk that takes no writes is handled below, by SQLite's error.
        tracing::warn!(%error, "the mode of the database is not set");
    }
    let connection = match connect(path, standing) {
        Ok(connection) => connection,
        Err(OpenError::Sqlite { source, .. }) if check::is_damage(&source) => return begin_anew(path, now),
        Err(OpenError::Sqlite { source, .. }) => {
            // The `-shm` file that readers share may need space that the disk lacks. A single connection works without
            // it.
            let refusal = refusal::at_start(folder, &source);
            return match (refusal, connect_alone(path)) {
                (Some(refusal), Ok(connection)) => Ok((connection, Some(refusal))),
                _ => Err(sqlite(source)),
            };
        }
        Err(error) => return Err(error),
    };
    let damaged = connection
        .query_row("SELECT value FROM meta WHERE key = 'damage'", [], |row| row.get::<_, String>(0))
        .optional()
        .map_err(sqlite)?;
    if let Some(text) = damaged {
        return Ok((connection, Some(Refusal::Damaged { quarantined: text.into() })));
    }
    if let Some(by) = replaced::found(&connection).map_err(sqlite)? {
        return Ok((connection, Some(Refusal::Replaced { by })));
    }
    match note_opening(&connection, now).and_then(|()| roster::begin_life(&connection, now)) {
        Ok(()) => Ok((connection, None)),
        Err(source) => match refusal::at_start(folder, &source) {
            Some(refusal) => Ok((connection, Some(refusal))),
            None => Err(sqlite(source)),
        },
    }
}

/// The first write of a run: a disk that takes no writes is reported at once. It does not vouch for the time, which may
/// be wrong.
fn note_opening(connection: &Connection, now: Timestamp) -> Result<(), rusqlite::Error> {
    let at = columns::micros(now).to_string();
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('opened', ?1)", [at])?;
    Ok(())
}

/// Sets the damaged file aside, and begins one that only records this, for this run and every later one.
fn begin_anew(path: &Path, now: Timestamp) -> Result<(Connection, Option<Refusal>), OpenError> {
    let quarantine = quarantine(path, now)?;
    make_private(path)?;
    let connection = connect(path, BuildStanding::Settled)?;
    connection
        .execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('damage', ?1)",
            [quarantine.display().to_string()],
        )
        .map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })?;
    Ok((connection, Some(Refusal::Damaged { quarantined: quarantine })))
}

/// The folder is ours, until this is dropped.
pub(super) struct Hold(File);

impl Drop for Hold {
    /// Unlocks explicitly, not only by closing the file: a child process that is being started holds our open files for
    /// a moment.
    fn drop(&mut self) {
        if let Err(errno) = flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%errno, "the folder's lock goes with its file alone");
        }
    }
}

/// Two agents on one folder would both believe they are the one writer.
fn hold(folder: &Path) -> Result<Hold, OpenError> {
    let path = folder.join("agent.lock");
    let failed = |source| OpenError::Folder { path: path.clone(), source };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(&path)
        .map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Hold(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Held(folder.to_owned())),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Makes the file, or takes others' rights to it and its companions away: SQLite uses the umask for a file that it
/// makes, and the mode of that file for its companions.
fn make_private(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Folder { path: path.to_owned(), source };
    drop(File::options().create(true).append(true).mode(FILE_MODE).open(path).map_err(failed)?);
    for tail in ["", "-wal", "-shm"] {
        let path = with_tail(path, tail);
        let failed = |source| OpenError::Folder { path: path.clone(), source };
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.mode() & 0o777 != FILE_MODE => {
                std::fs::set_permissions(&path, Permissions::from_mode(FILE_MODE)).map_err(failed)?;
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(source)),
        }
    }
    Ok(())
}

/// Statements that stay prepared: enough for reading all records, a plan and a report, so that none evicts another.
const STATEMENTS: usize = 128;

fn connect(path: &Path, standing: BuildStanding) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    // A row of one guest is under 2 KiB; 1 MiB of cache holds the working set of a hundred and keeps the agent small.
    connection.pragma_update(None, "cache_size", -1024).map_err(failed)?;
    connection.busy_timeout(START_LOCK_WAIT_MAX).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    check::at_start(&connection, path).map_err(failed)?;
    migration::migrate(&mut connection, path, standing)?;
    Ok(connection)
}

/// Opens the file so that it can be read without writing any companion file: its index is kept in memory. Only for a
/// file of our own version, since it cannot be migrated.
fn connect_alone(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    migration::is_current(&connection, path)?;
    Ok(connection)
}

fn quarantine(path: &Path, now: Timestamp) -> Result<PathBuf, OpenError> {
    let stamp = now.as_second();
    let mut quarantine = path.to_owned();
    quarantine.set_file_name(format!("agent.db.damaged-{stamp}"));
    for (from, to) in ["", "-wal", "-shm"].map(|tail| (with_tail(path, tail), with_tail(&quarantine, tail))) {
        match std::fs::rename(&from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Folder { path: from, source }),
        }
    }
    check::is_quarantined(path);
    Ok(quarantine)
}

fn with_tail(path: &Path, tail: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(tail);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As between a fork and its exec, in a program that another thread starts.
    #[test]
    fn the_folder_is_free_though_the_locks_file_is_still_open_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let ours = hold(folder.path()).unwrap();
        let elsewhere = ours.0.try_clone().unwrap();
        assert!(matches!(hold(folder.path()), Err(OpenError::Held(_))));
        drop(ours);
        hold(folder.path()).unwrap();
        drop(elsewhere);
    }
}
