//! Rows of the alert engine: reading a scope, and writing what changed.

use alerts::group::Group;
use alerts::incident::{Incident, Phase, Scope, Source};
use alerts::log::LogEntry;
use alerts::state::{Changes, ScopeRow, ScopeState};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::columns::Time;
use super::super::sql::{self, Connection, Error, FromColumn, OptionalExtension as _, Row, ValueRef, params};
use super::super::writer::Tx;

/// A value that a column holds as JSON.
pub(in super::super) struct Json<T>(pub T);

impl<T: DeserializeOwned> FromColumn for Json<T> {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(Error::unreadable)
    }
}

/// As a column holds it.
pub(in super::super) fn json<T: Serialize>(value: &T) -> sql::Result<String> {
    serde_json::to_string(value).map_err(Error::unwritable)
}

/// The text by which a scope is kept.
pub(super) fn scope_text(scope: Scope) -> String {
    scope.to_string()
}

/// A scope out of its text.
pub(super) struct ScopeColumn(pub Scope);

impl FromColumn for ScopeColumn {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        let text = value.as_str()?;
        if text == "hub" {
            return Ok(Self(Scope::Hub));
        }
        text.parse().map(|host| Self(Scope::Host(host))).map_err(Error::unreadable)
    }
}

const fn phase(incident: &Incident) -> &'static str {
    match incident.phase {
        Phase::Pending { .. } => "pending",
        Phase::Firing { .. } => "firing",
        Phase::Resolved { .. } => "resolved",
    }
}

const fn source(incident: &Incident) -> &'static str {
    match incident.source {
        Source::Agent => "agent",
        Source::Hub => "hub",
        Source::Liveness => "liveness",
    }
}

/// All rows of a scope. One of which nothing is known is empty.
pub(super) fn load(connection: &Connection, scope: Scope) -> sql::Result<ScopeState> {
    fn bodies<T: DeserializeOwned>(connection: &Connection, sql: &str, scope: &str) -> sql::Result<Vec<T>> {
        let statement = connection.prepare_cached(sql)?;
        let read = |row: &Row<'_>| row.get::<_, Json<T>>(0).map(|body| body.0);
        statement.query_map([scope], read)?.collect()
    }
    let text = scope_text(scope);
    let sql = "SELECT body FROM alert_scopes WHERE scope = $1";
    let row: Option<Json<ScopeRow>> =
        connection.prepare_cached(sql)?.query_row([&text], |row| row.get(0)).optional()?;
    let Some(Json(row)) = row else { return Ok(ScopeState::new(scope)) };
    let incidents: Vec<Incident> =
        bodies(connection, "SELECT body FROM alert_incidents WHERE scope = $1", &text)?;
    let groups: Vec<Group> = bodies(connection, "SELECT body FROM alert_groups WHERE scope = $1", &text)?;
    Ok(ScopeState::from_rows(row, incidents, groups))
}

/// Writes what changed.
pub(super) fn save(tx: &Tx<'_>, scope: Scope, changes: &Changes) -> sql::Result<()> {
    let text = scope_text(scope);
    if let Some(row) = &changes.row {
        let sql = "INSERT INTO alert_scopes (scope, body, due) VALUES ($1, $2, $3)
                   ON CONFLICT (scope) DO UPDATE SET body = excluded.body, due = excluded.due";
        tx.prepare_cached(sql)?.execute(params![text, json(row)?, row.due.map(Time)])?;
    }
    for incident in &changes.incidents {
        let sql =
            "INSERT INTO alert_incidents (scope, number, source, phase, body) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (scope, number) DO UPDATE SET phase = excluded.phase, body = excluded.body";
        let number = column(incident.id.number);
        let row = params![text, number, source(incident), phase(incident), json(incident)?];
        tx.prepare_cached(sql)?.execute(row)?;
    }
    for number in &changes.incidents_removed {
        let sql = "DELETE FROM alert_incidents WHERE scope = $1 AND number = $2";
        tx.prepare_cached(sql)?.execute(params![text, column(*number)])?;
    }
    for group in &changes.groups {
        let sql = "INSERT INTO alert_groups (scope, key, body) VALUES ($1, $2, $3)
                   ON CONFLICT (scope, key) DO UPDATE SET body = excluded.body";
        tx.prepare_cached(sql)?.execute(params![text, group.key.to_string(), json(group)?])?;
    }
    for key in &changes.groups_removed {
        let sql = "DELETE FROM alert_groups WHERE scope = $1 AND key = $2";
        tx.prepare_cached(sql)?.execute(params![text, key.to_string()])?;
    }
    Ok(())
}

/// Writes entries of the log.
pub(super) fn append_log(tx: &Tx<'_>, scope: Scope, log: &[LogEntry]) -> sql::Result<()> {
    let text = scope_text(scope);
    for entry in log {
        let sql = "INSERT INTO alert_log (scope, at, incident, body) VALUES ($1, $2, $3, $4)";
        let incident = entry.incident.map(column);
        tx.prepare_cached(sql)?.execute(params![text, Time(entry.at), incident, json(entry)?])?;
    }
    Ok(())
}

/// PostgreSQL's integers have a sign.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
