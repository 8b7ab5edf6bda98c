//! Recovery plans of past starts, and their outcome.

use jiff::Timestamp;
use rusqlite::Connection;

use super::columns::{from_json, json, micros};
use super::{Part, Store, StoreError, compact, journal_read};
use agent_core::plan::recovery::{RecoveryPlan, RecoveryReport};

/// Plans that are kept: the last starts that left something open, and the last start of all.
const KEPT: u32 = 8;

fn bodies(connection: &Connection, last: u32) -> Result<Vec<String>, StoreError> {
    connection
        .prepare_cached("SELECT body FROM recovery ORDER BY serial DESC LIMIT ?1")
        .and_then(|mut select| select.query_map([last], |row| row.get(0))?.collect())
        .map_err(StoreError::sqlite("read the recovery plans"))
}

fn report(connection: &Connection, plan: RecoveryPlan) -> Result<RecoveryReport, StoreError> {
    let now = plan
        .lines
        .iter()
        .map(|line| compact::view(connection, journal_read::serial(connection, line.id)?))
        .collect::<Result<_, StoreError>>()?;
    Ok(RecoveryReport { plan, now })
}

impl Store {
    /// Keeps a plan, before it is run.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn keep_recovery(&self, plan: RecoveryPlan, now: Timestamp) -> Result<(), StoreError> {
        let body = json("a recovery plan", &plan)?;
        let lines = u32::try_from(plan.lines.len()).unwrap_or(u32::MAX);
        self.write(Part::Nothing, "keep a recovery plan", move |transaction| {
            let failed = || StoreError::sqlite("keep a recovery plan");
            transaction
                .execute("INSERT INTO recovery (at, lines, body) VALUES (?1, ?2, ?3)", (micros(now), lines, body))
                .map_err(failed())?;
            transaction
                .execute(
                    "DELETE FROM recovery WHERE serial <> (SELECT max(serial) FROM recovery)
                     AND serial NOT IN (SELECT serial FROM recovery WHERE lines > 0 ORDER BY serial DESC LIMIT ?1)",
                    [KEPT],
                )
                .map_err(failed())?;
            Ok(())
        })
        .await
    }

    /// The last plans, newest first, with the outcome of each line.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn recoveries(&self, last: u32) -> Result<Vec<RecoveryReport>, StoreError> {
        self.read(move |connection| {
            bodies(connection, last)?
                .iter()
                .map(|body| report(connection, from_json("a recovery plan", body)?))
                .collect()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::operation::OperationStatus;

    use crate::tests::{at, new_operation, open, provision};
    use agent_core::operation::log::Event;
    use agent_core::plan::recovery::{StartObservation, recovery};

    #[tokio::test]
    async fn a_plan_outlives_the_agent_and_reports_what_came_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let opened = store.open_operation(new_operation(1, provision(1))).await.unwrap();
        let tasks = std::collections::BTreeMap::new();
        let seen = StartObservation { observed: None, tasks: &tasks };
        let plan = recovery(std::slice::from_ref(&opened), seen, at(1));
        store.keep_recovery(plan.clone(), at(1)).await.unwrap();
        // Many quiet starts push nothing out; the last of them is reported.
        for n in 2..40 {
            store.keep_recovery(recovery(&[], seen, at(n)), at(n)).await.unwrap();
        }
        store.append(&opened, Event::Begun, at(50)).await.unwrap();
        drop(store);
        let store = open(folder.path()).await;
        let reported = store.recoveries(9).await.unwrap();
        let [quiet, loud] = reported.as_slice() else { panic!("{reported:?}") };
        assert_eq!((quiet.plan.at, quiet.now.len()), (at(39), 0));
        assert_eq!((&loud.plan, loud.now[0].status), (&plan, OperationStatus::Running));
        for n in 60..80 {
            store.keep_recovery(recovery(std::slice::from_ref(&opened), seen, at(n)), at(n)).await.unwrap();
        }
        assert_eq!(store.recoveries(99).await.unwrap().len(), 8, "bounded");
    }
}
