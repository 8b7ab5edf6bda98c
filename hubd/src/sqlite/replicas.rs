//! What hubs on one database share, where there is one hub.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::Time;
use super::settled::Scope;
use super::writer::Shape;
use super::{Failed, Sqlite};
use crate::domain::presence::{Presence, heard};
use crate::store::duty::DeadMansSwitch;
use crate::store::{ChangedHosts, Replicas, StoreError, Term};

fn kept_presence(connection: &Connection) -> rusqlite::Result<Option<Presence>> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Presence { since: row.get::<_, Time>(0)?.0, at: row.get::<_, Time>(1)?.0 })
    };
    connection.prepare_cached("SELECT since, at FROM hub_presence")?.query_row([], read).optional()
}

#[async_trait]
impl Replicas for Sqlite {
    async fn keep_ca(&self, ca: String, after: Option<String>) -> Result<String, StoreError> {
        let kept = self.write_within("compare the hub's CA", Shape::Several, Scope::NoHost, move |tx| {
            let sql = "INSERT INTO hub_identity (one, ca) VALUES (1, ?1)
                       ON CONFLICT (one) DO UPDATE SET ca = excluded.ca WHERE hub_identity.ca = ?2";
            tx.execute(sql, params![ca, after])?;
            let kept = tx.query_row("SELECT ca FROM hub_identity", [], |row| row.get::<_, String>(0))?;
            Ok::<_, Failed<std::convert::Infallible>>(kept)
        });
        kept.await.map_err(StoreError::from)
    }

    async fn listen(&self, term: &Term<DeadMansSwitch>, now: Timestamp) -> Result<Timestamp, StoreError> {
        let (shape, scope) = (Shape::Several, Scope::NoHost);
        let listened = self.write_fenced(term.fence(), "keep that a hub listens", shape, scope, move |tx| {
            let Presence { since, at } = heard(kept_presence(tx)?, now);
            let sql = "INSERT INTO hub_presence (one, since, at) VALUES (1, ?1, ?2)
                       ON CONFLICT (one) DO UPDATE SET since = excluded.since, at = excluded.at";
            tx.prepare_cached(sql)?.execute(params![Time(since), Time(at)])?;
            Ok::<_, Failed<std::convert::Infallible>>(since)
        });
        listened.await.map_err(StoreError::from)
    }

    fn changed_hosts(&self) -> Option<ChangedHosts> {
        None
    }
}
