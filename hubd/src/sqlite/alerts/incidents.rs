//! Incidents and their log, as operators read them.

use alerts::incident::{Incident, IncidentId};
use alerts::log::LogEntry;
use holdfast_protocol::id::HostName;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::super::columns::Text;
use super::rows::{Json, ScopeColumn, column, scope_text};
use crate::store::{IncidentFilter, IncidentRecord, LogFilter, LogRecord};

/// A scope is a host's id as text; hosts keep it as bytes.
const COLUMNS: &str = "i.body, (SELECT name FROM hosts WHERE id = unhex(replace(i.scope, '-', '')))";

fn read(row: &Row<'_>) -> rusqlite::Result<IncidentRecord> {
    Ok(IncidentRecord {
        incident: row.get::<_, Json<Incident>>(0)?.0,
        host: row.get::<_, Option<Text<HostName>>>(1)?.map(|name| name.0),
    })
}

pub(super) fn list(
    connection: &Connection,
    filter: IncidentFilter,
    after: Option<IncidentId>,
    limit: u32,
) -> rusqlite::Result<Vec<IncidentRecord>> {
    let (scope, number) = after.map_or((String::new(), 0), |id| (scope_text(id.scope), column(id.number)));
    let phase = match filter {
        IncidentFilter::Firing => "= 'firing'",
        IncidentFilter::All => "IN ('pending', 'firing', 'resolved')",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM alert_incidents AS i
         WHERE (i.scope, i.number) > (?1, ?2) AND i.phase {phase} ORDER BY i.scope, i.number LIMIT ?3"
    );
    connection.prepare_cached(&sql)?.query_map(params![scope, number, limit], read)?.collect()
}

pub(super) fn one(connection: &Connection, id: IncidentId) -> rusqlite::Result<Option<IncidentRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM alert_incidents AS i WHERE i.scope = ?1 AND i.number = ?2");
    let key = params![scope_text(id.scope), column(id.number)];
    connection.prepare_cached(&sql)?.query_row(key, read).optional()
}

pub(super) fn log(
    connection: &Connection,
    filter: LogFilter,
    limit: u32,
) -> rusqlite::Result<Vec<LogRecord>> {
    let before = filter.before.map_or(i64::MAX, column);
    let (scope, incident) = (filter.scope.map(scope_text), filter.incident.map(column));
    let sql = "SELECT number, scope, body FROM alert_log
               WHERE number < ?1 AND (?2 IS NULL OR scope = ?2) AND (?3 IS NULL OR incident = ?3)
               ORDER BY number DESC LIMIT ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![before, scope, incident, limit], |row| {
        Ok(LogRecord {
            number: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
            scope: row.get::<_, ScopeColumn>(1)?.0,
            entry: row.get::<_, Json<LogEntry>>(2)?.0,
        })
    })?;
    rows.collect()
}
