//! The conditions that were reported last.
//!
//! Input: the conditions of a report. Output: the same after a restart, so that each keeps the time since when it holds. A
//! condition that this version does not know is passed over: it is found again, or it is not.

use holdfast_protocol::condition::ReportedCondition;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::{Part, Store, StoreError};

fn read(connection: &Connection) -> Result<Vec<ReportedCondition>, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT conditions FROM reported_conditions WHERE id = 1")
        .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read the conditions that were reported"))?;
    let all: Vec<serde_json::Value> =
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

fn keep(transaction: &Transaction<'_>, conditions: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO reported_conditions (id, conditions) VALUES (1, ?1)
               ON CONFLICT (id) DO UPDATE SET conditions = excluded.conditions";
    transaction
        .execute(sql, [conditions])
        .map_err(StoreError::sqlite("keep the conditions that were reported"))?;
    Ok(())
}

impl Store {
    /// The conditions that were reported last, in the order of that report.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reported_conditions(&self) -> Result<Vec<ReportedCondition>, StoreError> {
        self.read(read).await
    }

    /// Keeps the conditions of a report in the place of those before.
    ///
    /// # Errors
    /// [`StoreError`]; those before stay then.
    pub async fn keep_reported_conditions(
        &self,
        conditions: Vec<ReportedCondition>,
    ) -> Result<(), StoreError> {
        // JSON can represent every value of these types.
        let text = serde_json::to_string(&conditions).unwrap_or_else(|_| "[]".to_owned());
        self.write(Part::Nothing, "keep the conditions that were reported", move |transaction| {
            keep(transaction, &text)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use holdfast_protocol::condition::{ConditionCode, Subject};
    use jiff::Timestamp;

    use super::*;
    use crate::OpenError;

    fn condition(code: ConditionCode) -> ReportedCondition {
        let since = Timestamp::from_second(1_800_000_000).unwrap();
        ReportedCondition::new(code, Subject::Host {}, since, "a fact")
    }

    /// The store before this one may hold the lock for a moment longer.
    async fn open(folder: &Path) -> Store {
        loop {
            match Store::open(folder, Timestamp::from_second(1_800_000_000).unwrap()) {
                Ok(store) => return store,
                Err(OpenError::Held(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn they_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let two = vec![condition(ConditionCode::ClockUnkept), condition(ConditionCode::GoldenOld)];
        {
            let store = open(folder.path()).await;
            assert_eq!(store.reported_conditions().await.unwrap(), Vec::new());
            store.keep_reported_conditions(two.clone()).await.unwrap();
            store.keep_reported_conditions(two[..1].to_vec()).await.unwrap();
        }
        assert_eq!(open(folder.path()).await.reported_conditions().await.unwrap(), two[..1]);
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema/28-conditions.sql")).unwrap();
        let known = serde_json::to_value(condition(ConditionCode::DiskFull)).unwrap();
        let mut unknown = known.clone();
        unknown["code"] = "NEVER_HEARD_OF".into();
        let transaction = connection.transaction().unwrap();
        keep(&transaction, &serde_json::to_string(&[unknown, known]).unwrap()).unwrap();
        transaction.commit().unwrap();
        assert_eq!(read(&connection).unwrap(), [condition(ConditionCode::DiskFull)]);
        connection.execute("UPDATE reported_conditions SET conditions = 'no JSON'", []).unwrap();
        assert_eq!(read(&connection).unwrap(), Vec::new());
    }
}
