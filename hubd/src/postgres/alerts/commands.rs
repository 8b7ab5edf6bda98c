//! What operators read and change, and what is due.

use alerts::Signal;
use alerts::incident::{IncidentId, Scope as AlertScope, Source};
use alerts::signal::{Completeness, Maintenance, ObservedCondition};
use alerts::silence::{Silence, SilenceId};
use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::condition::ReportedCondition;
use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::operator::HostState;
use jiff::Timestamp;

use super::super::columns::{Id, Time};
use super::super::events::emit;
use super::super::host_row::find;
use super::super::sql::{self, Connection, OptionalExtension as _, params};
use super::super::writer::Tx;
use super::super::{Failed, Postgres};
use super::decide::{Moment, decide, host_of_scope, silences_within};
use super::rows::{Json, ScopeColumn, json, load};
use super::signals::stored;
use super::{facts, incidents, names};
use crate::domain::alerting::{GuestLabels, HostOfScope};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::store::{
    AcknowledgeError, Acknowledgement, AlertName, AlertPicture, Alerts, AnnouncedEnd, By, HostMaintenance,
    IncidentQuery, IncidentRecord, LogFilter, LogRecord, MAINTENANCE_MAX, NewSilence, OwnFacts, SILENCES_MAX,
    SilenceRequestError, StoreError, Term, WriteError, duty,
};

/// Every scope that waits becomes due.
const WAKE: &str = "UPDATE alert_scopes SET due = $1 WHERE due IS NOT NULL AND due > $1";

fn moment(by: &By) -> Moment {
    Moment { at: by.at, correlation: by.correlation }
}

fn event(tx: &Tx<'_>, by: &By, kind: EventKind, host: Option<HostId>, message: String) -> sql::Result<()> {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    emit(tx, &NewEvent { at: by.at, kind, host, actor, correlation, message })
}

const fn host_of(scope: AlertScope) -> Option<HostId> {
    match scope {
        AlertScope::Host(host) => Some(host),
        AlertScope::Hub => None,
    }
}

/// Whether a host is no part of the fleet any more.
fn is_revoked(tx: &Tx<'_>, scope: AlertScope) -> sql::Result<bool> {
    let Some(host) = host_of(scope) else { return Ok(false) };
    let sql = "SELECT status = 'revoked' FROM hosts WHERE id = $1";
    let found = tx.prepare_cached(sql)?.query_row([Id(host.uuid())], |row| row.get(0));
    Ok(found.optional()?.unwrap_or(false))
}

#[async_trait]
impl Alerts for Postgres {
    async fn advance_alerts(
        &self,
        term: &Term<duty::Alerts>,
        now: Timestamp,
        correlation: CorrelationId,
        scopes_max: u32,
    ) -> Result<u32, StoreError> {
        let context = self.alerts.clone();
        let advanced = self.write_fenced(term.fence(), "advance alerts", move |tx| {
            let sql = "SELECT scope FROM alert_scopes WHERE due <= $1 ORDER BY due LIMIT $2";
            let due = tx
                .prepare_cached(sql)?
                .query_map(params![Time(now), scopes_max], |row| Ok(row.get::<_, ScopeColumn>(0)?.0))?
                .collect::<sql::Result<Vec<AlertScope>>>()?;
            for scope in &due {
                decide(tx, &context, *scope, &[Signal::Tick], Moment { at: now, correlation })?;
            }
            Ok::<_, Failed<std::convert::Infallible>>(u32::try_from(due.len()).unwrap_or(u32::MAX))
        });
        advanced.await.map_err(StoreError::from)
    }

    async fn wake_alerts(&self, now: Timestamp) -> Result<(), StoreError> {
        let woken = self.write("wake alerts", move |tx| {
            tx.prepare_cached(WAKE)?.execute([Time(now)])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        woken.await.map_err(StoreError::from)
    }

    async fn own_facts(&self, now: Timestamp) -> Result<OwnFacts, StoreError> {
        let rules = self.alerts.rules();
        let mut found =
            self.read("look what is wrong", move |connection| facts::read(connection, now)).await?;
        // One that was taken out of the settings fails no more.
        found.hub.failing.retain(|(receiver, ..)| rules.has_receiver(receiver));
        Ok(found)
    }

    async fn observe(
        &self,
        term: &Term<duty::Alerts>,
        found: Vec<(AlertScope, Vec<ReportedCondition>)>,
        now: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError> {
        let context = self.alerts.clone();
        let observed = self.write_fenced(term.fence(), "keep what is wrong", move |tx| {
            for (scope, conditions) in found {
                // What was found wrong may be of before the host was revoked.
                if is_revoked(tx, scope)? {
                    continue;
                }
                let conditions = conditions.into_iter().map(|condition| ObservedCondition {
                    condition,
                    labels: alerts::label::Labels::default(),
                });
                let signal = Signal::Conditions {
                    source: Source::Hub,
                    conditions: conditions.collect(),
                    completeness: Completeness::Complete,
                };
                decide(tx, &context, scope, &[signal], Moment { at: now, correlation })?;
            }
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        observed.await.map_err(StoreError::from)
    }

    async fn incidents_within(
        &self,
        within: AccessScope,
        query: IncidentQuery,
        after: Option<IncidentId>,
        limit: u32,
    ) -> Result<Vec<IncidentRecord>, StoreError> {
        let list = move |connection: &Connection| incidents::list(connection, &within, &query, after, limit);
        self.read("list incidents", list).await
    }

    async fn unknown_names(&self, names: Vec<AlertName>) -> Result<Vec<AlertName>, StoreError> {
        self.read("look for names", move |connection| names::unknown(connection, names)).await
    }

    async fn incident(&self, id: IncidentId) -> Result<Option<IncidentRecord>, StoreError> {
        self.read("read an incident", move |connection| incidents::one(connection, id)).await
    }

    async fn alert_log_within(
        &self,
        within: AccessScope,
        filter: LogFilter,
        limit: u32,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let log = move |connection: &Connection| incidents::log(connection, &within, filter, limit);
        self.read("read the log of alerts", log).await
    }

    async fn acknowledge(
        &self,
        by: By,
        id: IncidentId,
        said: Acknowledgement,
    ) -> Result<Option<IncidentRecord>, WriteError<AcknowledgeError>> {
        let context = self.alerts.clone();
        self.mutate("acknowledge an incident", by, move |tx, by| {
            let Some(record) = incidents::one(tx, id)? else { return Ok(None) };
            if !record.incident.is_active() {
                return Err(Failed::Refused(AcknowledgeError::Over));
            }
            let (incident, operator) = (id.number, by.operator.clone());
            let (signal, verb) = match said {
                Acknowledgement::Given { until } => {
                    (Signal::Acknowledge { incident, by: operator, until }, "acknowledged")
                }
                Acknowledgement::TakenBack => {
                    (Signal::Unacknowledge { incident, by: operator }, "not acknowledged any more")
                }
            };
            decide(tx, &context, id.scope, &[signal], moment(by))?;
            let message = format!("incident {id} ({}) is {verb}", record.incident.code);
            event(tx, by, EventKind::IncidentAcknowledged, host_of(id.scope), message)?;
            Ok(incidents::one(tx, id)?)
        })
        .await
    }

    async fn silences_within(&self, scope: AccessScope, now: Timestamp) -> Result<Vec<Silence>, StoreError> {
        self.read("list silences", move |connection| silences_within(connection, &scope, now)).await
    }

    async fn add_silence(&self, by: By, new: NewSilence) -> Result<Silence, WriteError<SilenceRequestError>> {
        self.mutate("add a silence", by, move |tx, by| {
            let mut silence = Silence {
                id: SilenceId(0),
                matchers: new.matchers,
                from: by.at,
                until: new.until,
                by: by.operator.clone(),
                comment: new.comment,
            };
            silence.check().map_err(|error| Failed::Refused(error.into()))?;
            let sql = "SELECT count(*) FROM alert_silences WHERE until > $1 AND ended_at IS NULL";
            let current: u32 = tx.prepare_cached(sql)?.query_row([Time(by.at)], |row| row.get(0))?;
            if current >= SILENCES_MAX {
                return Err(Failed::Refused(SilenceRequestError::TooMany));
            }
            let sql = "INSERT INTO alert_silences (until, body) VALUES ($1, '') RETURNING id";
            let number: i64 = tx.query_row(sql, [Time(silence.until)], |row| row.get(0))?;
            silence.id = SilenceId(u64::try_from(number).unwrap_or_default());
            let sql = "UPDATE alert_silences SET body = $2 WHERE id = $1";
            tx.prepare_cached(sql)?.execute(params![number, json(&silence)?])?;
            let matchers: Vec<String> = silence.matchers.iter().map(ToString::to_string).collect();
            let message =
                format!("silence {} until {:.0}: {}", silence.id, silence.until, matchers.join(", "));
            event(tx, by, EventKind::SilenceAdded, None, message)?;
            Ok(silence)
        })
        .await
    }

    async fn end_silence(
        &self,
        by: By,
        id: SilenceId,
    ) -> Result<Option<Silence>, WriteError<std::convert::Infallible>> {
        self.mutate("end a silence", by, move |tx, by| {
            let number = i64::try_from(id.0).unwrap_or(i64::MAX);
            let sql = "SELECT body FROM alert_silences WHERE id = $1";
            let read = |row: &sql::Row<'_>| row.get::<_, Json<Silence>>(0).map(|body| body.0);
            let Some(silence) = tx.prepare_cached(sql)?.query_row([number], read).optional()? else {
                return Ok(None);
            };
            let sql = "UPDATE alert_silences SET ended_at = $2, ended_by = $3
                       WHERE id = $1 AND ended_at IS NULL AND until > $2";
            let ended =
                tx.prepare_cached(sql)?.execute(params![number, Time(by.at), by.operator.as_str()])?;
            if ended == 1 {
                // What it muted becomes due with the next tick of its scope, at the latest when the silence would have
                // ended; every scope that waits is made due now.
                tx.prepare_cached(WAKE)?.execute([Time(by.at)])?;
                event(tx, by, EventKind::SilenceEnded, None, format!("silence {id} was ended"))?;
            }
            Ok(Some(silence))
        })
        .await
    }

    async fn set_maintenance(
        &self,
        by: By,
        host: HostRef,
        announced: Option<AnnouncedEnd>,
    ) -> Result<Option<HostMaintenance>, WriteError<std::convert::Infallible>> {
        let context = self.alerts.clone();
        self.mutate("announce maintenance", by, move |tx, by| {
            let record = find(tx, &host)?.filter(|record| record.view.state != HostState::Revoked);
            let Some(record) = record else { return Ok(None) };
            let scope = AlertScope::Host(record.view.id);
            let mut windows = load(tx, scope)?.row.maintenance;
            windows.retain(|window| window.until > by.at);
            match &announced {
                Some(AnnouncedEnd { until, .. }) => {
                    windows.truncate(MAINTENANCE_MAX.saturating_sub(1));
                    windows.push(Maintenance { from: by.at, until: *until, by: by.operator.clone() });
                }
                None => windows.clear(),
            }
            decide(tx, &context, scope, &[Signal::Maintenance(windows.clone())], moment(by))?;
            let message = match &announced {
                Some(AnnouncedEnd { until, reason }) => {
                    let why =
                        reason.as_ref().map(|reason| format!(": {}", reason.as_str())).unwrap_or_default();
                    format!("{} is in maintenance until {until:.0}{why}", record.view.name)
                }
                None => format!("{} is not in maintenance any more", record.view.name),
            };
            event(tx, by, EventKind::MaintenanceChanged, Some(record.view.id), message)?;
            Ok(Some(HostMaintenance { id: record.view.id, host: record.view.name, windows }))
        })
        .await
    }

    async fn alert_picture(&self, host: Option<HostRef>) -> Result<Option<AlertPicture>, StoreError> {
        self.read("read what the alert engine knows", move |connection| {
            let Some(host) = host else {
                let state = load(connection, AlertScope::Hub)?;
                let (host, guests) = (HostOfScope::default(), GuestLabels::default());
                return Ok(Some(AlertPicture { state, host, guests }));
            };
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let scope = AlertScope::Host(record.view.id);
            let (state, host) = (load(connection, scope)?, host_of_scope(connection, scope)?);
            let guests = stored(connection, record.number)?.labels;
            Ok(Some(AlertPicture { state, host, guests }))
        })
        .await
    }
}
