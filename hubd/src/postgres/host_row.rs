//! Rows of hosts and of their last reports.

use holdfast_protocol::condition::ConditionSet;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::{Degraded, HostState, HostView};
use holdfast_protocol::report::Sections;
use serde::de::DeserializeOwned;

use super::alerts::Json;
use super::columns::{Id, Number, Text, Time};
use super::sql::{self, Connection, OptionalExtension as _, Row};
use crate::domain::alerting::observed::unwell;
use crate::domain::host::HostRef;
use crate::store::HostRecord;

pub(super) const COLUMNS: &str = "number, id, name, status, liveness, seen_at, wanted, held, agent_version,
    guests_running, guests,
    attention_guests + attention_waiting + attention_agent + (refused IS NOT NULL)::int AS attention,
    degraded_since, degraded_reason, certificate_ends_at, labels, update_windows,
    (SELECT conditions FROM reports WHERE reports.host = hosts.number) AS conditions";

/// The table's checks allow only these values.
fn read_state(row: &Row<'_>, degraded: Option<&Degraded>) -> sql::Result<HostState> {
    let (status, liveness): (String, String) = (row.get("status")?, row.get("liveness")?);
    let never_seen = row.get::<_, Option<Time>>("seen_at")?.is_none();
    Ok(match (status.as_str(), liveness.as_str()) {
        ("revoked", _) => HostState::Revoked,
        ("frozen", _) => HostState::Frozen,
        (_, "new") => HostState::New,
        (_, "online") if degraded.is_some() => HostState::Degraded,
        (_, "online") => HostState::Online,
        (_, "late") => HostState::Late,
        (_, _) if never_seen => HostState::NeverSeen,
        (_, _) => HostState::Offline,
    })
}

/// An agent that cannot see Proxmox knows little else, so that comes first.
fn read_degraded(row: &Row<'_>) -> sql::Result<Option<Degraded>> {
    if let Some(since) = row.get::<_, Option<Time>>("degraded_since")? {
        let reason: Option<String> = row.get("degraded_reason")?;
        let reason = reason.unwrap_or_else(|| "it does not say why".to_owned());
        return Ok(Some(Degraded { since: since.0, condition: None, reason }));
    }
    let conditions: Option<Json<ConditionSet>> = row.get("conditions")?;
    let unwell = conditions.as_ref().and_then(|set| unwell(&set.0));
    Ok(unwell.map(|condition| Degraded {
        since: condition.since,
        condition: Some(condition.code),
        reason: condition.message.as_str().to_owned(),
    }))
}

pub(super) fn read(row: &Row<'_>) -> sql::Result<HostRecord> {
    let degraded = read_degraded(row)?;
    let view = HostView {
        id: HostId::new(row.get::<_, Id>("id")?.0),
        name: row.get::<_, Text<_>>("name")?.0,
        state: read_state(row, degraded.as_ref())?,
        seen_at: row.get::<_, Option<Time>>("seen_at")?.map(|time| time.0),
        degraded,
        maintenance_until: None,
        wanted: row.get::<_, Number>("wanted")?.0,
        held: row.get::<_, Number>("held")?.0,
        agent_version: row.get("agent_version")?,
        guests_running: row.get("guests_running")?,
        guests: row.get("guests")?,
        attention: row.get("attention")?,
        certificate_ends_at: row.get::<_, Time>("certificate_ends_at")?.0,
        labels: row.get::<_, Option<Json<_>>>("labels")?.map(|json| json.0).unwrap_or_default(),
        update_windows: row
            .get::<_, Option<Json<_>>>("update_windows")?
            .map(|json| json.0)
            .unwrap_or_default(),
    };
    Ok(HostRecord { view, number: row.get("number")? })
}

/// One host; by name only one that is not revoked.
pub(super) fn find(connection: &Connection, host: &HostRef) -> sql::Result<Option<HostRecord>> {
    match host {
        HostRef::Id(id) => {
            let sql = format!("SELECT {COLUMNS} FROM hosts WHERE id = $1");
            connection.prepare_cached(&sql)?.query_row([Id(id.uuid())], read).optional()
        }
        HostRef::Name(name) => {
            let sql = format!("SELECT {COLUMNS} FROM hosts WHERE name = $1 AND status <> 'revoked'");
            connection.prepare_cached(&sql)?.query_row([name.as_str()], read).optional()
        }
    }
}

type Texts = [Option<String>; 12];

pub(super) fn report(connection: &Connection, number: i64) -> sql::Result<Option<Texts>> {
    let sql =
        "SELECT agent, host_text, desired, guests, operations, waiting, trust, jobs, storage, conditions,
                hardware, updates
               FROM reports
               WHERE host = $1";
    let read = |row: &Row<'_>| {
        let mut texts = Texts::default();
        for (place, text) in texts.iter_mut().enumerate() {
            *text = row.get(place)?;
        }
        Ok(texts)
    };
    connection.prepare_cached(sql)?.query_row([number], read).optional()
}

pub(super) fn sections(texts: Option<Texts>) -> Result<Sections, serde_json::Error> {
    fn section<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>, serde_json::Error> {
        text.map(|text| serde_json::from_str(&text)).transpose()
    }
    let [
        agent,
        host,
        desired,
        guests,
        operations,
        waiting,
        trust,
        jobs,
        storage,
        conditions,
        hardware,
        updates,
    ] = texts.unwrap_or_default();
    Ok(Sections {
        agent: section(agent)?,
        host: section(host)?,
        desired: section(desired)?,
        guests: section(guests)?,
        operations: section(operations)?,
        waiting: section(waiting)?,
        trust: section(trust)?,
        jobs: section(jobs)?,
        storage: section(storage)?,
        conditions: section(conditions)?,
        hardware: section(hardware)?,
        updates: section(updates)?,
        // What it says of orders is kept with each of them.
        orders: None,
    })
}
