//! Hosts as operators see them.

use alerts::{Scope, Signal};
use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::HostName;
use holdfast_protocol::operator::{HostDetail, HostState, HostView};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use std::sync::Arc;

use super::access::{ScopeColumns, has_labels};
use super::alerts::{Moment, decide, maintenance_until};
use super::events::emit;
use super::host_row::{COLUMNS, find, read, report, sections};
use super::settled::SettledHosts;
use super::{Failed, Sqlite, epochs, release_offers, restore_orders};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::store::{By, HostRecord, Hosts, StoreError, WriteError};

/// The last contact may be in memory alone. Maintenance is a row of the alert engine.
pub(super) fn complete(
    connection: &Connection,
    settled: &SettledHosts,
    mut record: HostRecord,
    now: Timestamp,
) -> rusqlite::Result<HostRecord> {
    if let Some(at) = settled.seen_at(record.view.id) {
        record.view.seen_at = Some(at);
    }
    record.view.maintenance_until = maintenance_until(connection, record.view.id, now)?;
    Ok(record)
}

#[async_trait]
impl Hosts for Sqlite {
    async fn hosts_within(
        &self,
        scope: AccessScope,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<HostRecord>, StoreError> {
        let settled = self.settled.clone();
        self.read("list hosts", move |connection| {
            let ScopeColumns { labels, customer } = ScopeColumns::of(&scope)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM hosts WHERE (name, number) > (?1, ?2) AND ?4 IS NULL AND {}
                 ORDER BY name, number LIMIT ?3",
                has_labels("?5")
            );
            let (name, number) = after.as_ref().map_or(("", 0), |(name, number)| (name.as_str(), *number));
            let mut statement = connection.prepare_cached(&sql)?;
            let records = statement.query_map(params![name, number, limit, customer, labels], read)?;
            records.map(|record| complete(connection, &settled, record?, now)).collect()
        })
        .await
    }

    async fn reported_guests_within(
        &self,
        scope: AccessScope,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<(HostRecord, Vec<GuestReport>)>, StoreError> {
        let action = "list guests";
        let settled = self.settled.clone();
        let narrowing = scope.clone();
        let rows = self
            .read(action, move |connection| {
                let ScopeColumns { labels, customer } = ScopeColumns::of(&narrowing)?;
                let sql = format!(
                    "SELECT {COLUMNS}, (SELECT guests FROM reports WHERE reports.host = hosts.number) AS reported
                    FROM hosts WHERE (name, number) > (?1, ?2) AND status <> 'revoked' AND {}
                        AND (?4 IS NULL OR EXISTS (SELECT 1 FROM reports, json_each(reports.guests) AS guest
                            WHERE reports.host = hosts.number AND json_extract(guest.value, '$.customer') = ?4))
                    ORDER BY name, number LIMIT ?3",
                    has_labels("?5")
                );
                let (name, number) = after.as_ref().map_or(("", 0), |(name, number)| (name.as_str(), *number));
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map(params![name, number, limit, customer, labels], |row| {
                    Ok((read(row)?, row.get::<_, Option<String>>("reported")?))
                })?;
                let rows = rows.map(|row| {
                    let (record, guests) = row?;
                    Ok((complete(connection, &settled, record, now)?, guests))
                });
                rows.collect::<rusqlite::Result<Vec<_>>>()
            })
            .await?;
        let parsed = rows.into_iter().map(|(record, text)| {
            let guests: Option<Vec<GuestReport>> =
                text.map(|text| serde_json::from_str(&text)).transpose()?;
            let mut guests = guests.unwrap_or_default();
            if let AccessScope::Customer { customer } = &scope {
                guests.retain(|guest| guest.customer.as_ref() == Some(customer));
            }
            Ok((record, guests))
        });
        let parsed: Result<Vec<_>, serde_json::Error> = parsed.collect();
        parsed.map_err(|source| StoreError::Damaged { action, source: Arc::new(source) })
    }

    async fn host(&self, host: HostRef, now: Timestamp) -> Result<Option<HostDetail>, StoreError> {
        let action = "read a host";
        let settled = self.settled.clone();
        let found = self
            .read(action, move |connection| {
                let Some(record) = find(connection, &host)? else { return Ok(None) };
                let record = complete(connection, &settled, record, now)?;
                let restores = restore_orders::of_host(connection, record.number, now)?;
                let epochs = epochs::past(connection, record.number)?;
                let offer = release_offers::of_host(connection, record.number)?;
                Ok(Some((record.view, report(connection, record.number)?, restores, epochs, offer)))
            })
            .await?;
        let Some((host, texts, restores, epochs, offer)) = found else { return Ok(None) };
        let sections =
            sections(texts).map_err(|source| StoreError::Damaged { action, source: Arc::new(source) })?;
        Ok(Some(HostDetail { host, sections, restores, epochs, offer }))
    }

    async fn revoke_host(
        &self,
        by: By,
        host: HostRef,
    ) -> Result<Option<HostView>, WriteError<std::convert::Infallible>> {
        let context = self.alerts.clone();
        self.mutate("revoke a host", by, move |tx, by| {
            let Some(record) = find(tx, &host)? else { return Ok::<_, Failed<_>>(None) };
            if record.view.state == HostState::Revoked {
                return Ok(Some(record.view));
            }
            tx.prepare_cached("UPDATE hosts SET status = 'revoked' WHERE number = ?1")?
                .execute([record.number])?;
            let event = NewEvent {
                at: by.at,
                kind: EventKind::HostRevoked,
                host: Some(record.view.id),
                actor: Some(by.operator.clone()),
                correlation: by.correlation,
                message: format!("{} was revoked", record.view.name),
            };
            emit(tx, &event)?;
            let moment = Moment { at: by.at, correlation: by.correlation };
            decide(
                tx,
                &context,
                Scope::Host(record.view.id),
                &[Signal::HostRevoked { by: by.operator.clone() }],
                moment,
            )?;
            Ok(find(tx, &HostRef::Id(record.view.id))?.map(|record| record.view))
        })
        .await
    }
}
