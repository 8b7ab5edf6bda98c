//! The database file, opened without a write into its folder.
//!
//! In: a state folder. Out: a connection that only reads. While an agent runs, SQLite's own locks give one moment of the file.
//! Otherwise SQLite would make companion files, or cannot on a disk that takes no writes: then the file is read as it lies
//! there, or, where it has a log of last writes, from a copy of both in a folder of our own.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

/// A larger file is not copied: it is read without its last writes.
const COPY_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// How long to wait for a lock of the running agent.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Whether an agent holds the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentProcess {
    Running,
    Stopped,
    /// The lock file cannot be opened.
    Unknown,
}

/// How the file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenedAs {
    /// Next to a running agent, as of one moment.
    Shared,
    /// As it lies there; it has no log of last writes.
    Whole,
    /// A copy of it with its log of last writes.
    Copy,
    /// As it lies there, without its log of last writes, which could not be copied.
    WithoutLastWrites,
}

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
pub enum RescueOpenError {
    #[error(
        "there is no agent.db in {}: name the state folder or a copy of it with --state; a damaged one was renamed to `agent.db.damaged-…`",
        folder.display()
    )]
    NoFile { folder: PathBuf },
    #[error("{} cannot be read: run this as root or as the agent's user", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{} cannot be read as a database at all: keep it as it is, and try a backup of it with --state",
        path.display()
    )]
    NotADatabase {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("{} cannot be opened; nothing was changed", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

/// An open file.
#[derive(Debug)]
pub struct RescueFile {
    connection: Connection,
    agent: AgentProcess,
    opened: OpenedAs,
    /// Removed after the connection is closed, by the order of fields.
    _copy: Option<OwnFolder>,
}

impl RescueFile {
    /// Opens `agent.db` in a folder.
    ///
    /// # Errors
    /// [`RescueOpenError`].
    pub fn open(folder: &Path) -> Result<Self, RescueOpenError> {
        let path = folder.join("agent.db");
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(RescueOpenError::NoFile { folder: folder.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RescueOpenError::NoFile { folder: folder.to_owned() });
            }
            Err(source) => return Err(RescueOpenError::File { path, source }),
        }
        // The error of SQLite alone would not say that a right is missing.
        drop(plain(&path).map_err(|source| RescueOpenError::File { path: path.clone(), source })?);
        let agent = agent_process(folder);
        let (connection, opened, copy) = match agent {
            AgentProcess::Running | AgentProcess::Unknown => match shared(&path) {
                Ok(connection) => (connection, OpenedAs::Shared, None),
                Err(_) => at_rest(&path)?,
            },
            AgentProcess::Stopped => at_rest(&path)?,
        };
        Ok(Self { connection, agent, opened, _copy: copy })
    }

    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    #[must_use]
    pub const fn agent(&self) -> AgentProcess {
        self.agent
    }

    #[must_use]
    pub const fn opened(&self) -> OpenedAs {
        self.opened
    }
}

/// Follows no link: the folder belongs to the agent's user, and root may be the reader.
fn plain(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    File::options().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)
}

/// Whether an agent holds its lock. The lock is taken for a moment; nothing is written.
fn agent_process(folder: &Path) -> AgentProcess {
    let file = match plain(&folder.join("agent.lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return AgentProcess::Stopped,
        Err(_) => return AgentProcess::Unknown,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => AgentProcess::Stopped,
        Err(rustix::io::Errno::WOULDBLOCK) => AgentProcess::Running,
        Err(_) => AgentProcess::Unknown,
    }
}

fn shared(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    prepare(&connection)?;
    // One moment for all that follows: a read transaction that is never ended.
    connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    Ok(connection)
}

type AtRest = (Connection, OpenedAs, Option<OwnFolder>);

fn at_rest(path: &Path) -> Result<AtRest, RescueOpenError> {
    let log = with_tail(path, "-wal");
    let has_log = std::fs::symlink_metadata(&log).is_ok_and(|log| log.is_file() && log.len() > 0);
    if !has_log {
        return Ok((unchanged(path).map_err(judged(path))?, OpenedAs::Whole, None));
    }
    match copied(path, &log) {
        Ok((copy, folder)) => {
            let connection = copy.map_err(judged(path))?;
            Ok((connection, OpenedAs::Copy, Some(folder)))
        }
        // No room, or no folder of ours: what is in the file itself is better than nothing.
        Err(_) => Ok((unchanged(path).map_err(judged(path))?, OpenedAs::WithoutLastWrites, None)),
    }
}

/// SQLite believes that nobody changes the file, so it needs no lock and no companion file.
fn unchanged(path: &Path) -> rusqlite::Result<Connection> {
    let name: String = path.as_os_str().as_bytes().iter().map(|byte| spelled(*byte)).collect();
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)?;
    prepare(&connection)?;
    Ok(connection)
}

/// A byte of a path in a URI.
fn spelled(byte: u8) -> String {
    let is_plain = byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
    if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

fn copied(path: &Path, log: &Path) -> io::Result<(rusqlite::Result<Connection>, OwnFolder)> {
    let folder = OwnFolder::make()?;
    let copy = folder.0.join("agent.db");
    let mut room = COPY_BYTES_MAX;
    for (from, to) in [(path, copy.clone()), (log, with_tail(&copy, "-wal"))] {
        let mut from = plain(from)?;
        let bytes = from.metadata()?.len();
        room = room.checked_sub(bytes).ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut to = File::options().write(true).create_new(true).mode(0o600).open(to)?;
        io::copy(&mut io::Read::take(&mut from, bytes), &mut to)?;
    }
    Ok((open_copy(&copy), folder))
}

/// In our own folder SQLite may write: it takes the last writes in, in the copy.
fn open_copy(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // The first read: whether it is a database.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    Ok(())
}

fn judged(path: &Path) -> impl FnOnce(rusqlite::Error) -> RescueOpenError {
    let path = path.to_owned();
    move |source| match crate::check::is_damage(&source) {
        true => RescueOpenError::NotADatabase { path, source },
        false => RescueOpenError::Sqlite { path, source },
    }
}

pub(super) fn with_tail(path: &Path, tail: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(tail);
    text.into()
}

/// A folder that only we can read, in the memory of the machine where that is possible.
#[derive(Debug)]
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn make() -> io::Result<Self> {
        let parents = [PathBuf::from("/dev/shm"), std::env::temp_dir(), PathBuf::from("/run")];
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in parents {
            for number in 0..16_u8 {
                let path = parent.join(format!("agentd-rescue-{}-{number}", std::process::id()));
                match DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => return Ok(Self(path)),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
