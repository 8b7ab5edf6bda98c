//! Incidents and their log, as operators read them.

use alerts::group::{Group, Sent};
use alerts::incident::{Incident, IncidentId, Scope};
use alerts::log::LogEntry;
use alerts::notice::{IncidentNews, NoticeIncident};
use alerts::signal::Maintenance;
use alerts::state::ScopeRow;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::condition::{ConditionCode, Severity};
use holdfast_protocol::id::{GuestName, HostId, HostName, ReceiverName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::super::access::{ScopeColumns, has_labels};
use super::super::columns::Text;
use super::rows::{Json, ScopeColumn, column, scope_text};
use crate::store::{IncidentFilter, IncidentQuery, IncidentRecord, LogFilter, LogRecord};

/// A scope is a host's id as text; hosts keep it as bytes.
const COLUMNS: &str = "body, (SELECT name FROM hosts WHERE id = unhex(replace(scope, '-', '')))";

fn read(row: &Row<'_>) -> rusqlite::Result<IncidentRecord> {
    Ok(IncidentRecord {
        incident: row.get::<_, Json<Incident>>(0)?.0,
        host: row.get::<_, Option<Text<HostName>>>(1)?.map(|name| name.0),
    })
}

pub(super) fn list(
    connection: &Connection,
    within: &AccessScope,
    query: &IncidentQuery,
    after: Option<IncidentId>,
    limit: u32,
) -> rusqlite::Result<Vec<IncidentRecord>> {
    let (scope, number) = after.map_or((String::new(), 0), |id| (scope_text(id.scope), column(id.number)));
    let phase = match query.phase {
        IncidentFilter::Firing => "= 'firing'",
        IncidentFilter::All => "IN ('pending', 'firing', 'resolved')",
    };
    let least = query.severity.unwrap_or(Severity::Info);
    let severities = Severity::ALL.into_iter().filter(|severity| *severity >= least);
    let severities: Vec<String> = severities.map(|severity| format!("'{severity}'")).collect();
    let sql = format!(
        "SELECT {COLUMNS} FROM alert_incidents
         WHERE (scope, number) > (?1, ?2) AND phase {phase}
             AND (?4 IS NULL OR scope = ?4)
             AND (?5 IS NULL OR json_extract(body, '$.labels.guest') = ?5)
             AND (?6 IS NULL OR json_extract(body, '$.code') = ?6)
             AND json_extract(body, '$.severity') IN ({})
             AND (?7 IS NULL OR json_extract(body, '$.labels.customer') = ?7)
             AND (?8 IS NULL OR EXISTS (SELECT 1 FROM hosts WHERE id = unhex(replace(scope, '-', '')) AND {}))
         ORDER BY scope, number LIMIT ?3",
        severities.join(", "),
        has_labels("?8")
    );
    let ScopeColumns { labels, customer } = ScopeColumns::of(within)?;
    let (of_scope, of_code) = (query.scope.map(scope_text), query.code.map(ConditionCode::as_str));
    let of_guest = query.guest.as_ref().map(GuestName::as_str);
    let parameters = params![scope, number, limit, of_scope, of_guest, of_code, customer, labels];
    connection.prepare_cached(&sql)?.query_map(parameters, read)?.collect()
}

pub(super) fn one(connection: &Connection, id: IncidentId) -> rusqlite::Result<Option<IncidentRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM alert_incidents WHERE scope = ?1 AND number = ?2");
    let key = params![scope_text(id.scope), column(id.number)];
    connection.prepare_cached(&sql)?.query_row(key, read).optional()
}

/// What a receiver was notified of that still fires.
pub(super) fn firing_at(
    connection: &Connection,
    receiver: &ReceiverName,
    limit: u32,
) -> rusqlite::Result<Vec<NoticeIncident>> {
    let sql = "SELECT scope, body FROM alert_groups WHERE json_extract(body, '$.key.receiver') = ?1
               ORDER BY scope";
    let mut statement = connection.prepare_cached(sql)?;
    let groups = statement.query_map([receiver.as_str()], |row| {
        Ok((row.get::<_, ScopeColumn>(0)?.0, row.get::<_, Json<Group>>(1)?.0))
    })?;
    let mut firing = Vec::new();
    for group in groups {
        let (scope, group) = group?;
        for (number, member) in group.members {
            let Sent::Firing { .. } = member.sent else { continue };
            let record = one(connection, IncidentId { scope, number })?;
            let Some(record) = record.filter(|record| record.incident.firing_since().is_some()) else {
                continue;
            };
            let news = IncidentNews::Ongoing {};
            firing.push(NoticeIncident::of(&record.incident, news, record.host.as_ref()));
            if firing.len() >= limit as usize {
                return Ok(firing);
            }
        }
    }
    Ok(firing)
}

pub(super) fn log(
    connection: &Connection,
    within: &AccessScope,
    filter: LogFilter,
    limit: u32,
) -> rusqlite::Result<Vec<LogRecord>> {
    let before = filter.before.map_or(i64::MAX, column);
    let (scope, incident) = (filter.scope.map(scope_text), filter.incident.map(column));
    let sql = format!(
        "SELECT {COLUMNS}, number, scope FROM alert_log
         WHERE number < ?1 AND (?2 IS NULL OR scope = ?2) AND (?3 IS NULL OR incident = ?3)
             AND (?5 IS NULL OR EXISTS (SELECT 1 FROM alert_incidents AS kept WHERE kept.scope = alert_log.scope
                 AND kept.number = alert_log.incident AND json_extract(kept.body, '$.labels.customer') = ?5))
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM hosts WHERE id = unhex(replace(scope, '-', '')) AND {}))
         ORDER BY number DESC LIMIT ?4",
        has_labels("?6")
    );
    let ScopeColumns { labels, customer } = ScopeColumns::of(within)?;
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![before, scope, incident, limit, customer, labels], |row| {
        Ok(LogRecord {
            entry: row.get::<_, Json<LogEntry>>(0)?.0,
            host: row.get::<_, Option<Text<HostName>>>(1)?.map(|name| name.0),
            number: u64::try_from(row.get::<_, i64>(2)?).unwrap_or_default(),
            scope: row.get::<_, ScopeColumn>(3)?.0,
        })
    })?;
    rows.collect()
}

/// Until when a host is in maintenance, where it is.
pub(in super::super) fn maintenance_until(
    connection: &Connection,
    host: HostId,
    now: Timestamp,
) -> rusqlite::Result<Option<Timestamp>> {
    let windows = windows(connection, host)?.into_iter();
    let current = windows.filter(|window| window.from <= now && now < window.until);
    Ok(current.map(|window| window.until).max())
}

/// The end of the last maintenance that was announced; it may be over.
pub(in super::super) fn announced_until(
    connection: &Connection,
    host: HostId,
) -> rusqlite::Result<Option<Timestamp>> {
    Ok(windows(connection, host)?.into_iter().map(|window| window.until).max())
}

fn windows(connection: &Connection, host: HostId) -> rusqlite::Result<Vec<Maintenance>> {
    let sql = "SELECT body FROM alert_scopes WHERE scope = ?1";
    let read = |row: &Row<'_>| row.get::<_, Json<ScopeRow>>(0).map(|body| body.0);
    let scope = scope_text(Scope::Host(host));
    let row = connection.prepare_cached(sql)?.query_row([scope], read).optional()?;
    Ok(row.map(|row| row.maintenance).unwrap_or_default())
}
