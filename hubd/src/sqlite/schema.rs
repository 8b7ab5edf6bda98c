//! The database file: mode, pragmas and migrations.

use std::cmp::Ordering;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::OpenError;

/// `hfhb`: what `file` shows, and what keeps us off other programs' databases.
const APPLICATION_ID: u32 = 0x6866_6862;

/// Each schema's step from the one before. The number of a schema is its place here, from 1.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_first.sql"),
    include_str!("../../migrations/sqlite/0002_jobs.sql"),
    include_str!("../../migrations/sqlite/0003_keys.sql"),
    include_str!("../../migrations/sqlite/0004_storage.sql"),
    include_str!("../../migrations/sqlite/0005_escrow.sql"),
    include_str!("../../migrations/sqlite/0006_restore.sql"),
    include_str!("../../migrations/sqlite/0007_degraded.sql"),
    include_str!("../../migrations/sqlite/0008_restore_withdrawn.sql"),
    include_str!("../../migrations/sqlite/0009_enrollment_origin.sql"),
    include_str!("../../migrations/sqlite/0010_readmission.sql"),
    include_str!("../../migrations/sqlite/0011_alarm.sql"),
    include_str!("../../migrations/sqlite/0012_conditions.sql"),
    include_str!("../../migrations/sqlite/0013_alerts.sql"),
    include_str!("../../migrations/sqlite/0014_audit_heads.sql"),
    include_str!("../../migrations/sqlite/0015_usage.sql"),
    include_str!("../../migrations/sqlite/0016_job_correlation.sql"),
    include_str!("../../migrations/sqlite/0017_restore_certificates.sql"),
    include_str!("../../migrations/sqlite/0018_hardware.sql"),
    include_str!("../../migrations/sqlite/0019_guest_audit.sql"),
    include_str!("../../migrations/sqlite/0020_usage_size.sql"),
    include_str!("../../migrations/sqlite/0021_releases.sql"),
    include_str!("../../migrations/sqlite/0022_host_updates.sql"),
    include_str!("../../migrations/sqlite/0023_release_offers.sql"),
    include_str!("../../migrations/sqlite/0024_rollouts.sql"),
    include_str!("../../migrations/sqlite/0025_host_labels.sql"),
    include_str!("../../migrations/sqlite/0026_rollout_fallback.sql"),
    include_str!("../../migrations/sqlite/0027_rollout_subject.sql"),
    include_str!("../../migrations/sqlite/0028_images.sql"),
    include_str!("../../migrations/sqlite/0029_tunnels_and_withdrawals.sql"),
    include_str!("../../migrations/sqlite/0030_work_orders.sql"),
    include_str!("../../migrations/sqlite/0031_replicas.sql"),
    include_str!("../../migrations/sqlite/0032_people_and_tokens.sql"),
    include_str!("../../migrations/sqlite/0033_state_snapshots.sql"),
    include_str!("../../migrations/sqlite/0034_sign_in.sql"),
    include_str!("../../migrations/sqlite/0035_oidc.sql"),
    include_str!("../../migrations/sqlite/0036_page_changes.sql"),
];

/// The hub's own to read: it holds invites, reports and wrapped keys.
const FILE_MODE: u32 = 0o600;

/// How long to wait for a lock that another process (`hubd operator`) holds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Statements kept prepared per connection; there are fewer in the program.
const STATEMENTS: usize = 128;

pub(super) fn open_writer(path: &Path) -> Result<Connection, OpenError> {
    // SQLite would make the file by the umask; its companions take over the mode.
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(FILE_MODE)
        .open(path)
        .map_err(|source| OpenError::File { path: path.to_owned(), source })?;
    make_private(path)?;
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let mut connection = Connection::open(path).map_err(sqlite)?;
    connection.busy_timeout(LOCK_WAIT).map_err(sqlite)?;
    check_owner(&connection, path)?;
    prepare(&connection).map_err(sqlite)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Takes others' rights away from files that an earlier start, a copy or a restore left open to them.
fn make_private(path: &Path) -> Result<(), OpenError> {
    for tail in ["", "-wal", "-shm"] {
        let mut text = path.as_os_str().to_owned();
        text.push(tail);
        let path = PathBuf::from(text);
        let failed = |source| OpenError::File { path: path.clone(), source };
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

pub(super) fn open_reader(path: &Path) -> Result<Connection, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    connection.busy_timeout(LOCK_WAIT).map_err(sqlite)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;")
}

fn check_owner(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, u32>(0)).map_err(sqlite);
    // A first start that ended before its first commit leaves a database with pages and without tables.
    let (application, tables) =
        (number("PRAGMA application_id")?, number("SELECT count(*) FROM sqlite_schema")?);
    if application == APPLICATION_ID || (application == 0 && tables == 0) {
        Ok(())
    } else {
        Err(OpenError::Foreign { path: path.to_owned() })
    }
}

/// The number of the schema that this hub makes.
#[must_use]
pub fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Opens a hub's file for reading, where it has the schema of this hub.
pub(super) fn open_snapshot(path: &Path) -> Result<Connection, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = open_reader(path)?;
    let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, u32>(0)).map_err(sqlite);
    let (application, found) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let (path, known) = (path.to_owned(), known());
    match found.cmp(&known) {
        _ if application != APPLICATION_ID => Err(OpenError::Foreign { path }),
        Ordering::Less => Err(OpenError::Older { path, found, known }),
        Ordering::Equal => Ok(connection),
        Ordering::Greater => Err(OpenError::Newer { path, found, known }),
    }
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(sqlite)?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    let known = known();
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step).map_err(sqlite)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(sqlite)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
    transaction.commit().map_err(sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_schema_and_another_programs_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let newer = folder.path().join("newer.db");
        drop(open_writer(&newer).unwrap());
        drop(open_writer(&newer).unwrap());
        Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(open_writer(&newer), Err(OpenError::Newer { found: 99, .. })));
        let foreign = folder.path().join("foreign.db");
        Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE other (x)").unwrap();
        assert!(matches!(open_writer(&foreign), Err(OpenError::Foreign { .. })));
    }

    #[test]
    fn a_first_start_that_ended_before_its_first_commit_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.db");
        Connection::open(&path).unwrap().query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "it has a page");
        open_writer(&path).unwrap();
    }

    #[test]
    fn writes_are_synced_and_the_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.db");
        drop(open_writer(&path).unwrap());
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let connection = open_writer(&path).unwrap();
        let text = |pragma| connection.query_row(pragma, [], |row| row.get::<_, String>(0)).unwrap();
        let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, u32>(0)).unwrap();
        assert_eq!(text("PRAGMA journal_mode"), "wal");
        assert_eq!((number("PRAGMA synchronous"), number("PRAGMA foreign_keys")), (2, 1));
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        }
    }
}
