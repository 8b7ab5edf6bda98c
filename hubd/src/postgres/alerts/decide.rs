//! Decisions of the alert engine, kept in the transaction of their cause.

use alerts::incident::{Incident, Scope};
use alerts::log::LogKind;
use alerts::silence::Silence;
use alerts::{Decision, Signal};
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::{CorrelationId, HostName};
use jiff::Timestamp;

use super::super::access::{ScopeColumns, has_labels};
use super::super::columns::{Id, Text, Time};
use super::super::events::{EventGuest, emit_of};
use super::super::sql::{self, Connection, OptionalExtension as _, params};
use super::super::writer::Tx;
use super::queue::queue;
use super::rows::{Json, append_log, load, save};
use crate::domain::alerting::observed::host_customer;
use crate::domain::alerting::{AlertContext, GuestLabels, HostOfScope};
use crate::domain::event::{EventKind, NewEvent};

/// When a decision is made, and as part of which request.
#[derive(Clone, Copy)]
pub(in super::super) struct Moment {
    pub at: Timestamp,
    pub correlation: CorrelationId,
}

/// Gives signals of one scope to the engine, and keeps what it decides: rows, log, events, and notices.
pub(in super::super) fn decide(
    tx: &Tx<'_>,
    context: &AlertContext,
    scope: Scope,
    signals: &[Signal],
    moment: Moment,
) -> sql::Result<()> {
    let before = load(tx, scope)?;
    let host = host_of_scope(tx, scope)?;
    let silences = current_silences(tx, moment.at)?;
    let rules = context.in_force();
    let setting = rules.setting(&silences, &host);
    let mut state = before.clone();
    for signal in signals {
        let decision = alerts::next(&state, signal, &setting, moment.at);
        append_log(tx, scope, &decision.log)?;
        record_events(tx, scope, &decision, moment)?;
        for notice in decision.notices {
            queue(tx, notice)?;
        }
        state = decision.state;
    }
    save(tx, scope, &state.changed_since(&before))
}

/// An incident that fires or is over is an event.
fn record_events(tx: &Tx<'_>, scope: Scope, decision: &Decision, moment: Moment) -> sql::Result<()> {
    let host = match scope {
        Scope::Host(host) => Some(host),
        Scope::Hub => None,
    };
    for entry in &decision.log {
        let Some(kind) = event_kind(&entry.what) else { continue };
        let incident = entry.incident.and_then(|number| decision.state.incidents.get(&number));
        let Some(incident) = incident else { continue };
        let message = event_text(incident);
        let Moment { at, correlation } = moment;
        let about = host.zip(incident.subject.guest()).map(|(host, uid)| EventGuest::find(tx, host, uid));
        let event = NewEvent { at, kind, host, actor: None, correlation, message };
        emit_of(tx, &event, about.transpose()?.as_ref())?;
    }
    Ok(())
}

fn event_text(incident: &Incident) -> String {
    let why = incident.ending.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!("{} on {}: {}{why}", incident.code, incident.subject, incident.message.as_str())
}

/// Only the beginning and the end of an incident are events. All else is in the log of alerts.
fn event_kind(what: &LogKind) -> Option<EventKind> {
    if *what == (LogKind::Fired {}) {
        Some(EventKind::IncidentFired)
    } else if matches!(what, LogKind::Resolved {} | LogKind::Closed { .. }) {
        Some(EventKind::IncidentResolved)
    } else {
        None
    }
}

/// The host of a scope, with the customer of all guests that it reported.
pub(super) fn host_of_scope(connection: &Connection, scope: Scope) -> sql::Result<HostOfScope> {
    let Scope::Host(host) = scope else { return Ok(HostOfScope::default()) };
    let sql = "SELECT hosts.name, reports.guest_labels, coalesce(jsonb_array_length(stored_json(reports.guests)), 0)
               FROM hosts LEFT JOIN reports ON reports.host = hosts.number WHERE hosts.id = $1";
    let read = |row: &sql::Row<'_>| {
        let labels: Option<Json<GuestLabels>> = row.get(1)?;
        let labels = labels.map(|labels| labels.0).unwrap_or_default();
        Ok(HostOfScope {
            name: Some(row.get::<_, Text<HostName>>(0)?.0),
            customer: host_customer(&labels, row.get(2)?),
        })
    };
    Ok(connection.prepare_cached(sql)?.query_row([Id(host.uuid())], read).optional()?.unwrap_or_default())
}

/// The silences that are not over.
pub(super) fn current_silences(connection: &Connection, now: Timestamp) -> sql::Result<Vec<Silence>> {
    silences_within(connection, &AccessScope::Everything {}, now)
}

/// Of these, those that name a host of a scope, or its customer.
pub(super) fn silences_within(
    connection: &Connection,
    scope: &AccessScope,
    now: Timestamp,
) -> sql::Result<Vec<Silence>> {
    let matchers = "jsonb_path_query(stored_json(body), '$.matchers[*]') AS matcher";
    let sql = format!(
        "SELECT body, id FROM alert_silences WHERE until > $1 AND ended_at IS NULL
             AND ($2::text IS NULL OR EXISTS (SELECT 1 FROM {matchers}, hosts
                 WHERE matcher = to_jsonb('host=' || hosts.name) AND {}))
             AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM {matchers}
                 WHERE matcher = to_jsonb('customer=' || $3::text)))
         ORDER BY id",
        has_labels("$2")
    );
    let ScopeColumns { labels, customer } = ScopeColumns::of(scope)?;
    let statement = connection.prepare_cached(&sql)?;
    let rows = statement.query(params![Time(now), labels, customer])?;
    let mut silences = Vec::new();
    for row in &rows {
        let row = sql::Row(row);
        match row.get::<_, Json<Silence>>(0) {
            Ok(silence) => silences.push(silence.0),
            // Kept by an earlier hub that checked less. Without it more alerts are sent, and none is kept from anyone.
            Err(error) => {
                let id: i64 = row.get(1)?;
                tracing::warn!(silence = id, %error, "a silence cannot be read and mutes nothing: make it anew");
            }
        }
    }
    Ok(silences)
}
