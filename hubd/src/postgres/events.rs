//! The event log, written in the transaction of its change.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::{CorrelationId, CustomerId, GuestUid, HostId};
use holdfast_protocol::operator::EventView;

use super::Postgres;
use super::access::{ScopeColumns, has_labels};
use super::columns::{Id, Text, Time};
use super::sql::{self, Connection, OptionalExtension as _, Row, params};
use super::writer::Tx;
use crate::domain::event::NewEvent;
use crate::store::{EventFilter, EventText, Events, StoreError};

/// The guest that an event is about, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventGuest {
    uid: GuestUid,
    customer: Option<CustomerId>,
}

impl EventGuest {
    /// A guest whose customer is known.
    pub(super) const fn of(uid: GuestUid, customer: Option<CustomerId>) -> Self {
        Self { uid, customer }
    }

    /// With the customer that the host's newest document names, or else the last report that named the guest.
    pub(super) fn find(connection: &Connection, host: HostId, uid: GuestUid) -> sql::Result<Self> {
        let sql = "SELECT coalesce(
                (SELECT guest ->> 'customer'
                 FROM desired, jsonb_path_query(stored_json(desired.document), '$.guests[*]') AS guest
                 WHERE desired.host = hosts.number AND guest ->> 'uid' = $2
                 ORDER BY desired.generation DESC LIMIT 1),
                (SELECT stored_json(reports.guest_labels) -> $2::text ->> 'customer'
                 FROM reports WHERE reports.host = hosts.number))
            FROM hosts WHERE id = $1";
        let key = params![Id(host.uuid()), uid.to_string()];
        let read = |row: &Row<'_>| row.get::<_, Option<String>>(0);
        let customer = connection.prepare_cached(sql)?.query_row(key, read).optional()?.flatten();
        // A document of an earlier hub may name it in a way that is none any more.
        Ok(Self { uid, customer: customer.and_then(|customer| customer.parse().ok()) })
    }
}

pub(super) fn emit(tx: &Tx<'_>, event: &NewEvent) -> sql::Result<()> {
    emit_of(tx, event, None)
}

/// The same, with the guest that it is about.
pub(super) fn emit_of(tx: &Tx<'_>, event: &NewEvent, guest: Option<&EventGuest>) -> sql::Result<()> {
    let sql = "INSERT INTO events (at, kind, host, actor, correlation, message, customer) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    tx.prepare_cached(sql)?.execute(params![
        Time(event.at),
        event.kind.as_str(),
        event.host.map(|host| Id(host.uuid())),
        event.actor.as_ref().map(|actor| actor.as_str()),
        Id(event.correlation.uuid()),
        event.message,
        guest.and_then(|guest| guest.customer.as_ref()).map(CustomerId::as_str),
    ])?;
    tx.mark_emitted();
    tracing::info!(
        action = event.kind.as_str(),
        host = event.host.map(tracing::field::display),
        guest = guest.map(|guest| tracing::field::display(guest.uid)),
        customer = guest.and_then(|guest| guest.customer.as_ref()).map(tracing::field::display),
        actor = event.actor.as_ref().map(tracing::field::display),
        correlation_id = %event.correlation,
        message = event.message,
    );
    Ok(())
}

pub(super) fn read(row: &Row<'_>) -> sql::Result<EventView> {
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
impl Events for Postgres {
    async fn events_within(
        &self,
        scope: AccessScope,
        filter: EventFilter,
        limit: u32,
    ) -> Result<Vec<EventView>, StoreError> {
        self.read("list events", move |connection| {
            let ScopeColumns { labels, customer } = ScopeColumns::of(&scope)?;
            let before = filter.before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
            let host = filter.host.map(|host| Id(host.uuid()));
            let text = filter.text.as_ref().map(EventText::as_str);
            let sql = format!(
                "SELECT number, at, kind, host, actor, message, correlation FROM events
                 WHERE number < $1 AND ($2::bytea IS NULL OR host = $2) AND ($4::text IS NULL OR customer = $4)
                     AND ($6::text IS NULL
                         OR position($6 IN lower((replace(kind, '_', ' ') || ' ' || message) COLLATE \"C\")) > 0)
                     AND ($5::text IS NULL OR EXISTS (SELECT 1 FROM hosts WHERE hosts.id = events.host AND {}))
                 ORDER BY number DESC LIMIT $3",
                has_labels("$5")
            );
            let parameters = params![before, host, limit, customer, labels, text];
            connection.prepare_cached(&sql)?.query_map(parameters, read)?.collect()
        })
        .await
    }
}
