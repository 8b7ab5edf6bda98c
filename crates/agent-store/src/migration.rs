//! The file's version, and the way from every older one to it.
//!
//! Input: an open file, and whether this build is on trial. Output: its rows in the present schema, or the refusal of a
//! file that this program cannot work with. A step that only adds leaves the file open to the program before it, so a
//! build on trial takes such steps alone: when it is taken back, the one before goes on with all that was done since.
//! Deliberately absent: a downgrade.

use std::path::Path;

use rusqlite::Connection;

use super::error::OpenError;

/// The steps that made the present schema: step `n` makes version `n` from version `n - 1`. A step that was released
/// never changes; a new table or column is a new step.
const STEPS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
    include_str!("schema/10.sql"),
    include_str!("schema/11.sql"),
    include_str!("schema/12.sql"),
    include_str!("schema/13.sql"),
    include_str!("schema/14.sql"),
    include_str!("schema/15.sql"),
    include_str!("schema/16.sql"),
    include_str!("schema/17.sql"),
    include_str!("schema/18.sql"),
    include_str!("schema/19.sql"),
    include_str!("schema/20.sql"),
    include_str!("schema/21.sql"),
    include_str!("schema/22.sql"),
    include_str!("schema/23-records.sql"),
    include_str!("schema/24-promises.sql"),
    include_str!("schema/25-signed-orders.sql"),
    include_str!("schema/26-updates.sql"),
    include_str!("schema/27-growth.sql"),
    include_str!("schema/28-conditions.sql"),
    include_str!("schema/29-correlation.sql"),
    include_str!("schema/30-restore-certificates.sql"),
    include_str!("schema/31-backup-duration.sql"),
    include_str!("schema/32-oldest-reader.sql"),
    include_str!("schema/33-work-orders.sql"),
];

/// The version that this agent knows: the number of the last step.
pub(super) const VERSION: i64 = 33;

/// The first version whose program looks for the oldest reader. Every step up to it shuts older programs out.
const FIRST_READER: i64 = 32;

/// Later steps that change or remove what the program before works with. Each comes one release after the last program
/// that needs it (`docs/upgrade.md`). Every other step only adds tables, indices, and columns with a default.
const CONTRACTING: &[i64] = &[];

/// Whether a build may shut the one before it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildStanding {
    /// It is confirmed, or the package's.
    Settled,
    /// It is on trial: the build before may be put back.
    OnTrial,
}

/// The steps of a program.
#[derive(Clone, Copy)]
struct Schema<'a> {
    steps: &'a [&'a str],
    contracting: &'a [i64],
}

const OWN: Schema<'static> = Schema { steps: STEPS, contracting: CONTRACTING };

impl Schema<'_> {
    fn version(self) -> i64 {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX)
    }

    fn contracts(self, version: i64) -> bool {
        version <= FIRST_READER || self.contracting.contains(&version)
    }
}

/// Brings a file up to date, each step whole or not at all: a kill between two steps leaves a valid older version.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    standing: BuildStanding,
) -> Result<(), OpenError> {
    migrate_to(OWN, connection, path, standing)
}

fn migrate_to(
    schema: Schema<'_>,
    connection: &mut Connection,
    path: &Path,
    standing: BuildStanding,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let found = version_of(connection).map_err(failed)?;
    if found > schema.version() {
        return readable(schema, connection, found).map_err(failed)?;
    }
    // An empty file has no build before.
    let standing = if found == 0 { BuildStanding::Settled } else { standing };
    for (version, step) in (1_i64..).zip(schema.steps).filter(|(version, _)| *version > found) {
        let contracts = schema.contracts(version);
        if contracts && standing == BuildStanding::OnTrial {
            return if version <= FIRST_READER { Err(OpenError::TrialTooEarly { found }) } else { Ok(()) };
        }
        let transaction = connection.transaction().map_err(failed)?;
        transaction.execute_batch(step).map_err(failed)?;
        if contracts && version > FIRST_READER {
            transaction.execute("UPDATE schema_reader SET oldest = ?1", [version]).map_err(failed)?;
        }
        transaction.pragma_update(None, "user_version", version).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    Ok(())
}

fn version_of(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Whether this program can work with a newer file.
fn readable(
    schema: Schema<'_>,
    connection: &Connection,
    found: i64,
) -> Result<Result<(), OpenError>, rusqlite::Error> {
    let known = schema.version();
    let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_reader'";
    let has_table: i64 = connection.query_row(table, [], |row| row.get(0))?;
    if known < FIRST_READER || has_table == 0 {
        return Ok(Err(OpenError::Newer { found, known }));
    }
    let oldest: i64 = connection.query_row("SELECT oldest FROM schema_reader", [], |row| row.get(0))?;
    Ok(if oldest <= known { Ok(()) } else { Err(OpenError::Newer { found, known }) })
}

/// Whether a file can be worked with as it is.
pub(super) fn is_current(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let found = version_of(connection).map_err(failed)?;
    match found.cmp(&VERSION) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(OpenError::Newer { found, known: VERSION }),
        std::cmp::Ordering::Greater => readable(OWN, connection, found).map_err(failed)?,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rusqlite::types::Value;

    use super::*;
    use crate::Store;

    /// Rows as version 1 wrote them.
    const ROWS: &str = include_str!("schema/1-rows.sql");

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    /// The tables of a file, each with its columns.
    fn tables(connection: &Connection) -> Vec<(String, String)> {
        let sql = "SELECT t.name, group_concat(c.name, ', ') FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                   WHERE t.type = 'table' GROUP BY t.name ORDER BY t.name";
        let mut select = connection.prepare(sql).unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// Every row of these tables, in these columns.
    fn rows(connection: &Connection, tables: &[(String, String)]) -> Vec<(String, Vec<Value>)> {
        let mut all = Vec::new();
        for (table, columns) in tables {
            let mut select =
                connection.prepare(&format!("SELECT {columns} FROM {table} ORDER BY 1, 2")).unwrap();
            let width = select.column_count();
            let mut found = select.query([]).unwrap();
            while let Some(row) = found.next().unwrap() {
                let cells = (0..width).map(|place| row.get::<_, Value>(place).unwrap());
                all.push((table.clone(), cells.collect()));
            }
        }
        all
    }

    #[test]
    fn the_last_step_makes_the_version_we_know() {
        assert_eq!(i64::try_from(STEPS.len()).unwrap(), VERSION);
    }

    /// A released step is in files on customers' hosts: to change it is to believe in tables that are not there.
    #[test]
    fn the_first_step_is_as_it_was_released() {
        use sha2::{Digest, Sha256};
        let hash: String = Sha256::digest(STEPS[0]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, "e965d43afd4db5c7466872112ed3822b259867d5d7bbb182ea7a4ab1a659ac5c");
    }

    #[tokio::test]
    async fn a_file_of_version_1_keeps_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(STEPS[0]).unwrap();
        old.execute_batch(ROWS).unwrap();
        old.pragma_update(None, "user_version", 1).unwrap();
        let (kept, written) = (tables(&old), rows(&old, &tables(&old)));
        assert_eq!(kept.len(), 9, "{kept:?}");
        drop(old);
        let store = Store::open(folder.path(), Timestamp::from_second(1_800_000_000).unwrap()).unwrap();
        // The rows are not only there, they are understood.
        assert_eq!(store.open_operations().await.unwrap().len(), 1);
        assert_eq!(store.used_vmids().await.unwrap().len(), 1);
        let raw = Connection::open(&path).unwrap();
        assert_eq!(version(&raw), VERSION);
        assert_eq!(rows(&raw, &kept), written);
        for (table, _) in &kept {
            assert!(written.iter().any(|(of, _)| of == table), "version 1 has no row in {table}");
        }
    }

    #[test]
    fn a_kill_between_two_steps_is_caught_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.db");
        let mut connection = Connection::open(&path).unwrap();
        connection.execute_batch(STEPS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        // The file after a step that died half-way: nothing of the step is there.
        let half = connection.transaction().unwrap();
        half.execute_batch(STEPS[1]).unwrap();
        drop(half);
        assert_eq!(version(&connection), 1);
        migrate(&mut connection, &path, BuildStanding::Settled).unwrap();
        migrate(&mut connection, &path, BuildStanding::Settled).unwrap();
        assert_eq!(version(&connection), VERSION);
    }

    /// A build that was bad for the whole host before the migration is bad only in the guest in which that was seen.
    #[test]
    fn a_bad_controller_is_kept_with_its_guest() {
        let connection = Connection::open_in_memory().unwrap();
        let (before, later) = STEPS.split_at(25);
        for step in before {
            connection.execute_batch(step).unwrap();
        }
        let row =
            "INSERT INTO bad_controller VALUES ('ab', '0.2.0', 'web', 'operation', 'it is not well', 7)";
        connection.execute_batch(row).unwrap();
        connection.execute_batch(later[0]).unwrap();
        let sql =
            "SELECT sha256 || guest || version || verdict || operation || why || at FROM controller_verdict";
        let kept: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "abweb0.2.0badoperationit is not well7");
    }

    #[test]
    fn a_newer_file_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        let refused = migrate(&mut connection, Path::new("agent.db"), BuildStanding::Settled).unwrap_err();
        assert!(matches!(refused, OpenError::Newer { found, known: VERSION } if found == VERSION + 1));
    }

    /// The build after ours, and the one after that: an added column, then another one removed.
    const ADDED: &str = "ALTER TABLE schema_reader ADD COLUMN note TEXT NOT NULL DEFAULT ''";
    const REMOVED: &str = "ALTER TABLE schema_reader DROP COLUMN note";

    #[test]
    fn a_build_on_trial_leaves_the_file_to_the_one_before() {
        let (next, later) = ([STEPS, &[ADDED]].concat(), [STEPS, &[ADDED, REMOVED]].concat());
        let next = Schema { steps: &next, contracting: &[] };
        let later = Schema { steps: &later, contracting: &[VERSION + 2] };
        let path = Path::new("agent.db");
        let mut file = Connection::open_in_memory().unwrap();
        let mut opens =
            |schema, standing| migrate_to(schema, &mut file, path, standing).map(|()| version(&file));
        assert_eq!(opens(OWN, BuildStanding::Settled).unwrap(), VERSION);
        // The next build is tried, taken back, tried again and confirmed: ours could go on at any time.
        assert_eq!(opens(next, BuildStanding::OnTrial).unwrap(), VERSION + 1);
        assert_eq!(opens(OWN, BuildStanding::Settled).unwrap(), VERSION + 1);
        assert_eq!(opens(next, BuildStanding::Settled).unwrap(), VERSION + 1);
        // The later build changes what the next one needs only when it is confirmed.
        assert_eq!(opens(later, BuildStanding::OnTrial).unwrap(), VERSION + 1);
        assert_eq!(opens(next, BuildStanding::Settled).unwrap(), VERSION + 1);
        assert_eq!(opens(later, BuildStanding::Settled).unwrap(), VERSION + 2);
        for old in [OWN, next] {
            let refused = opens(old, BuildStanding::Settled).unwrap_err();
            assert!(matches!(refused, OpenError::Newer { found, .. } if found == VERSION + 2));
        }
    }

    #[test]
    fn a_build_on_trial_does_not_begin_with_a_file_from_before_there_were_trials() {
        let mut file = Connection::open_in_memory().unwrap();
        file.execute_batch(STEPS[0]).unwrap();
        file.pragma_update(None, "user_version", 1).unwrap();
        let refused = migrate(&mut file, Path::new("agent.db"), BuildStanding::OnTrial).unwrap_err();
        assert!(matches!(refused, OpenError::TrialTooEarly { found: 1 }));
        // A new host has no build before.
        let mut empty = Connection::open_in_memory().unwrap();
        migrate(&mut empty, Path::new("agent.db"), BuildStanding::OnTrial).unwrap();
        assert_eq!(version(&empty), VERSION);
    }
}
