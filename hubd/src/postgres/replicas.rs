//! What several hubs on one database know of each other.

use async_trait::async_trait;
use jiff::Timestamp;

use super::columns::Time;
use super::sql::{self, Connection, OptionalExtension as _, params};
use super::{Failed, Postgres};
use crate::domain::presence::{Presence, heard};
use crate::store::duty::DeadMansSwitch;
use crate::store::{ChangedHosts, Replicas, StoreError, Term};

fn kept_presence(connection: &Connection) -> sql::Result<Option<Presence>> {
    let sql = "SELECT since, at FROM hub_presence";
    let read =
        |row: &sql::Row<'_>| Ok(Presence { since: row.get::<_, Time>(0)?.0, at: row.get::<_, Time>(1)?.0 });
    connection.prepare_cached(sql)?.query_row([], read).optional()
}

#[async_trait]
impl Replicas for Postgres {
    async fn keep_ca(&self, ca: String, after: Option<String>) -> Result<String, StoreError> {
        let kept = self.write("compare the hub's CA", move |tx| {
            let sql = "INSERT INTO hub_identity (one, ca) VALUES (1, $1)
                       ON CONFLICT (one) DO UPDATE SET ca = excluded.ca WHERE hub_identity.ca = $2";
            tx.execute(sql, params![ca, after])?;
            let kept = tx.query_row("SELECT ca FROM hub_identity", [], |row| row.get::<_, String>(0))?;
            Ok::<_, Failed<std::convert::Infallible>>(kept)
        });
        kept.await.map_err(StoreError::from)
    }

    async fn listen(&self, term: &Term<DeadMansSwitch>, now: Timestamp) -> Result<Timestamp, StoreError> {
        let listened = self.write_fenced(term.fence(), "keep that a hub listens", move |tx| {
            let Presence { since, at } = heard(kept_presence(tx)?, now);
            let sql = "INSERT INTO hub_presence (one, since, at) VALUES (1, $1, $2)
                       ON CONFLICT (one) DO UPDATE SET since = excluded.since, at = excluded.at";
            tx.prepare_cached(sql)?.execute(params![Time(since), Time(at)])?;
            Ok::<_, Failed<std::convert::Infallible>>(since)
        });
        listened.await.map_err(StoreError::from)
    }

    fn changed_hosts(&self) -> Option<ChangedHosts> {
        self.changed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}
