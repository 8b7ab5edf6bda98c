//! The file's version, and the way from every older one to it.
//!
//! Input: an open file of any version up to ours. Output: its rows in the present schema, or the refusal of a file that
//! a newer agent wrote. Deliberately absent: a downgrade.

use std::path::Path;

use rusqlite::Connection;

use super::error::OpenError;

/// The steps that made the present schema: step `n` makes version `n` from version `n - 1`. A step that was released
/// never changes; a new table or column is a new step.
const STEPS: [&str; 31] = [
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
];

/// The version that this agent knows: the number of the last step.
const VERSION: i64 = 31;

/// Brings a file up to date, each step whole or not at all: a kill between two steps leaves a valid older version.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found > VERSION {
        return Err(OpenError::Newer { found, known: VERSION });
    }
    for (version, step) in (1_i64..).zip(STEPS).filter(|(version, _)| *version > found) {
        let transaction = connection.transaction().map_err(failed)?;
        transaction.execute_batch(step).map_err(failed)?;
        transaction.pragma_update(None, "user_version", version).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    Ok(())
}

/// Whether a file is of today's version.
pub(super) fn is_current(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found == VERSION { Ok(()) } else { Err(OpenError::Newer { found, known: VERSION }) }
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
        migrate(&mut connection, &path).unwrap();
        migrate(&mut connection, &path).unwrap();
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
        let refused = migrate(&mut connection, Path::new("agent.db")).unwrap_err();
        assert!(matches!(refused, OpenError::Newer { found, known: VERSION } if found == VERSION + 1));
    }
}
