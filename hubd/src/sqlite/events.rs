//! The event log, written in the transaction of its change.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::operator::EventView;
use rusqlite::{Row, params};

use super::Sqlite;
use super::columns::{Id, Text, Time};
use super::writer::Tx;
use crate::domain::event::NewEvent;
use crate::store::{EventFilter, Events, StoreError};

pub(super) fn emit(tx: &Tx<'_>, event: &NewEvent) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO events (at, kind, host, actor, correlation, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.prepare_cached(sql)?.execute(params![
        Time(event.at),
        event.kind.as_str(),
        event.host.map(|host| Id(host.uuid())),
        event.actor.as_ref().map(|actor| actor.as_str()),
        Id(event.correlation.uuid()),
        event.message,
    ])?;
    tx.mark_emitted();
    tracing::info!(
        action = event.kind.as_str(),
        host = event.host.map(tracing::field::display),
        actor = event.actor.as_ref().map(tracing::field::display),
        correlation_id = %event.correlation,
        message = event.message,
    );
    Ok(())
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<EventView> {
    Ok(EventView {
        number: u64::try_from(row.get::<_, i64>("number")?).unwrap_or_default(),
        at: row.get::<_, Time>("at")?.0,
        kind: row.get("kind")?,
        host: row.get::<_, Option<Id>>("host")?.map(|id| HostId::new(id.0)),
        actor: row.get::<_, Option<Text<_>>>("actor")?.map(|word| word.0),
        message: row.get("message")?,
        correlation_id: Some(CorrelationId::new(row.get::<_, Id>("correlation")?.0)),
    })
}

#[async_trait]
impl Events for Sqlite {
    async fn events(&self, filter: EventFilter, limit: u32) -> Result<Vec<EventView>, StoreError> {
        self.read("list events", move |connection| {
            let before = filter.before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
            let host = filter.host.map(|host| Id(host.uuid()));
            let sql = "SELECT number, at, kind, host, actor, message, correlation FROM events
                       WHERE number < ?1 AND (?2 IS NULL OR host = ?2) ORDER BY number DESC LIMIT ?3";
            connection.prepare_cached(sql)?.query_map(params![before, host, limit], read)?.collect()
        })
        .await
    }
}
