//! Restarts of tunnels that were asked for.
//!
//! Input: the requests with one more. Output: the same after a restart of the agent, and a line of the audit, both before
//! root's service is asked. Requests that this version does not understand are none: root's service has bounds of its own.
//! Deliberately absent: when one is due (`model::tunnel::restarts`).

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::columns::json;
use super::{Part, Store, StoreError, audit};
use agent_core::model::tunnel::restarts::RestartRequests;

const KEY: &str = "tunnel_restarts";

fn read(connection: &Connection) -> Result<RestartRequests, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")
        .and_then(|mut select| select.query_row([KEY], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read the restarts of tunnels"))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

impl Store {
    /// The restarts that were asked for.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tunnel_restarts(&self) -> Result<RestartRequests, StoreError> {
        self.read(read).await
    }

    /// Keeps them with the one that is about to be asked for, and writes `detail` to the audit.
    ///
    /// # Errors
    /// [`StoreError`]; nothing may be asked then.
    pub async fn keep_tunnel_restart(
        &self,
        next: RestartRequests,
        detail: String,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let text = json("restarts of tunnels", &next)?;
        self.write(Part::Nothing, "keep a restart of a tunnel", move |transaction| {
            transaction
                .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [KEY, &text])
                .map_err(StoreError::sqlite("keep a restart of a tunnel"))?;
            let action = "tunnel_restart_asked";
            audit::append(
                transaction,
                &audit::Line { at, action, guest: None, operation: None, detail: &detail },
            )
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_outlives_a_restart_and_is_in_the_audit() {
        let (folder, at) = (tempfile::tempdir().unwrap(), Timestamp::UNIX_EPOCH);
        let store = Store::open(folder.path(), at).unwrap();
        assert_eq!(store.tunnel_restarts().await.unwrap(), RestartRequests::default());
        let next = RestartRequests::default().with(&"cf".parse().unwrap(), at);
        store.keep_tunnel_restart(next.clone(), "tunnel cf: down".to_owned(), at).await.unwrap();
        assert_eq!(store.tunnel_restarts().await.unwrap(), next);
        let line = store.audit(1).await.unwrap().remove(0);
        assert_eq!((line.action.as_str(), line.detail.as_str()), ("tunnel_restart_asked", "tunnel cf: down"));
        store.verify_audit().await.unwrap();
    }
}
