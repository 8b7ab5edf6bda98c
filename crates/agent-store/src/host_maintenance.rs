//! The maintenance of this host, which outlives a restart.
//!
//! Input: what changed of it. Output: the same after a restart. One that this version does not understand is none: then
//! operations are opened. Deliberately absent: when it begins and ends (`plan::host_maintenance`).

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::columns::json;
use super::{Part, Store, StoreError, audit};
use agent_core::model::host_maintenance::HostMaintenance;

const KEY: &str = "maintenance";

fn read(connection: &Connection) -> Result<Option<HostMaintenance>, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")
        .and_then(|mut select| select.query_row([KEY], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read the maintenance of this host"))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

impl Store {
    /// The last maintenance of this host.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn host_maintenance(&self) -> Result<Option<HostMaintenance>, StoreError> {
        self.read(read).await
    }

    /// Keeps it in the place of the one before, with a line in the audit.
    ///
    /// # Errors
    /// [`StoreError`]; the one before stays then.
    pub async fn keep_host_maintenance(
        &self,
        next: HostMaintenance,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let text = json("a maintenance", &next)?;
        // The reconcile loop waits for answers of people; this is one, by way of the hub.
        self.write(Part::Answers, "keep the maintenance of this host", move |transaction| {
            transaction
                .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [KEY, &text])
                .map_err(StoreError::sqlite("keep the maintenance of this host"))?;
            let (action, detail) = match next.ended_at {
                None => {
                    let (guests, targets) = (next.guests.len(), next.targets.len());
                    let what = format!(
                        "announced by the hub: nothing is opened until {:.0}; {guests} guests ran, {targets} storage targets were in order",
                        next.until
                    );
                    ("maintenance_begun", what)
                }
                Some(_) => ("maintenance_ended", format!("it ended at {:.0}", next.end())),
            };
            audit::append(transaction, &audit::Line { at, action, guest: None, operation: None, detail: &detail })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, open};

    #[tokio::test]
    async fn it_outlives_a_restart_and_is_in_the_audit() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        assert_eq!(store.host_maintenance().await.unwrap(), None);
        let changed = store.changes();
        let kept = HostMaintenance {
            since: at(0),
            until: at(60),
            announced_until: at(60),
            ended_at: None,
            guests: Vec::new(),
            targets: Vec::new(),
            earlier: Vec::new(),
        };
        store.keep_host_maintenance(kept.clone(), at(0)).await.unwrap();
        assert!(changed.has_changed().unwrap(), "the reconcile loop hears of it");
        drop(store);
        let store = open(folder.path()).await;
        assert_eq!(store.host_maintenance().await.unwrap().as_ref(), Some(&kept));
        store.keep_host_maintenance(HostMaintenance { ended_at: Some(at(9)), ..kept }, at(9)).await.unwrap();
        let mut actions = Vec::new();
        crate::audit_file::each_line(
            folder.path(),
            |_| Ok::<_, StoreError>(()),
            |line| {
                actions.push(line.action);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(
            actions.iter().filter(|action| action.starts_with("maintenance_")).count(),
            2,
            "{actions:?}"
        );
    }
}
