//! What the hub can find wrong by its own rows.

use std::collections::BTreeMap;

use alerts::incident::Scope;
use holdfast_protocol::condition::TokenName;
use holdfast_protocol::golden_builds::{Agreement, ComparedBuilds};
use holdfast_protocol::id::{HostId, HostName, JobId, ReceiverName};
use holdfast_protocol::report::GoldenReport;
use jiff::Timestamp;
use serde::Deserialize;

use super::super::columns::{Id, Text, Time};
use super::super::rollouts::held_rollout;
use super::super::sql::{self, Connection, Row};
use super::rows::ScopeColumn;
use crate::domain::alerting::own::{HostFacts, HubFacts, IdentityUse};
use crate::store::{FAILING_TRIES, OwnFacts};

const COLUMNS: &str = "id, status = 'frozen',
    (SELECT min(at) FROM audit_breaks WHERE host = hosts.number AND ended_at IS NULL)";

pub(super) fn read(connection: &Connection, now: Timestamp) -> sql::Result<OwnFacts> {
    let (tokens, failing) = (tokens(connection, now)?, failing(connection)?);
    let rollout = held_rollout(connection)?;
    let differing_builds = differing_builds(connection)?;
    let hub = HubFacts { tokens, failing, rollout, differing_builds, ..HubFacts::default() };
    Ok(OwnFacts { hosts: hosts(connection)?, hub })
}

/// Hosts with a fact that may be a condition, and hosts with an open incident out of such a fact.
fn hosts(connection: &Connection) -> sql::Result<Vec<HostFacts>> {
    let mut unanswered: BTreeMap<HostId, Vec<(JobId, Timestamp)>> = BTreeMap::new();
    let sql = "SELECT h.id, j.id, j.submitted_at FROM jobs AS j JOIN hosts AS h ON h.number = j.host
               WHERE j.queue_state = 'queued' AND h.status = 'active'";
    let statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let host = HostId::new(row.get::<_, Id>(0)?.0);
        Ok((host, JobId::new(row.get::<_, Id>(1)?.0), row.get::<_, Time>(2)?.0))
    })?;
    for row in rows {
        let (host, job, since) = row?;
        unanswered.entry(host).or_default().push((job, since));
    }
    let open = open_scopes(connection)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM hosts
         WHERE status <> 'revoked' AND (status = 'frozen'
             OR number IN (SELECT host FROM jobs WHERE queue_state = 'queued')
             OR number IN (SELECT host FROM audit_breaks WHERE ended_at IS NULL))"
    );
    let statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], |row| host(row, &mut unanswered))?;
    let mut found = rows.collect::<sql::Result<Vec<HostFacts>>>()?;
    let sql = format!("SELECT {COLUMNS} FROM hosts WHERE id = $1");
    for id in open {
        if found.iter().all(|facts| facts.host != id) {
            let statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([Id(id.uuid())], |row| host(row, &mut unanswered))?;
            found.extend(rows.collect::<sql::Result<Vec<HostFacts>>>()?);
        }
    }
    Ok(found)
}

fn host(row: &Row<'_>, unanswered: &mut BTreeMap<HostId, Vec<(JobId, Timestamp)>>) -> sql::Result<HostFacts> {
    let host = HostId::new(row.get::<_, Id>(0)?.0);
    Ok(HostFacts {
        host,
        identity: if row.get(1)? { IdentityUse::Twice } else { IdentityUse::Single },
        audit_broken_since: row.get::<_, Option<Time>>(2)?.map(|since| since.0),
        unanswered: unanswered.remove(&host).unwrap_or_default(),
    })
}

fn open_scopes(connection: &Connection) -> sql::Result<Vec<HostId>> {
    let sql = "SELECT DISTINCT scope FROM alert_incidents WHERE source = 'hub' AND phase <> 'resolved'";
    let statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok(row.get::<_, ScopeColumn>(0)?.0))?;
    let scopes = rows.collect::<sql::Result<Vec<Scope>>>()?;
    let host = |scope| match scope {
        Scope::Host(host) => Some(host),
        Scope::Hub => None,
    };
    Ok(scopes.into_iter().filter_map(host).collect())
}

/// Of a host's section, the images alone.
#[derive(Default, Deserialize)]
pub(in crate::postgres) struct HostImages {
    #[serde(default)]
    pub goldens: Vec<GoldenReport>,
}

/// Images of the same inputs that differ between hosts.
fn differing_builds(connection: &Connection) -> sql::Result<Vec<ComparedBuilds>> {
    let compared = compared_builds(connection)?;
    Ok(compared.into_iter().filter(|builds| builds.agreement() == Agreement::Differ).collect())
}

/// The images of all hosts, by what they were built of. Hosts without a build are left out by the server: most have none.
pub(in crate::postgres) fn compared_builds(connection: &Connection) -> sql::Result<Vec<ComparedBuilds>> {
    let sql = "SELECT hosts.name, reports.host_text FROM reports JOIN hosts ON hosts.number = reports.host
               WHERE hosts.status <> 'revoked' AND strpos(reports.host_text, '\"inputs_sha256\"') > 0";
    let statement = connection.prepare_cached(sql)?;
    let rows =
        statement.query_map([], |row| Ok((row.get::<_, Text<HostName>>(0)?.0, row.get::<_, String>(1)?)))?;
    let mut images = Vec::new();
    for row in rows {
        let (host, text) = row?;
        // A section that this program cannot read is shown as damaged where the host is shown.
        let Ok(section) = serde_json::from_str::<HostImages>(&text) else { continue };
        images.extend(section.goldens.into_iter().map(|image| (host.clone(), image)));
    }
    Ok(ComparedBuilds::of(images.iter().map(|(host, image)| (host, image))))
}

fn tokens(connection: &Connection, now: Timestamp) -> sql::Result<Vec<(TokenName, Timestamp)>> {
    // Of each operator the token that lasts longest: an older one that ends is no loss.
    let sql = "SELECT t.operator, max(t.expires_at) FROM tokens AS t
               JOIN operators AS o ON o.name = t.operator
               WHERE o.revoked_at IS NULL GROUP BY t.operator HAVING max(t.expires_at) > $1";
    let statement = connection.prepare_cached(sql)?;
    let rows =
        statement.query_map([Time(now)], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Time>(1)?.0)))?;
    let named = |(name, ends): (String, Timestamp)| Some((TokenName::try_from(name).ok()?, ends));
    Ok(rows.collect::<sql::Result<Vec<_>>>()?.into_iter().filter_map(named).collect())
}

/// Receivers with a notice that was tried often enough, or that refused the last one.
fn failing(connection: &Connection) -> sql::Result<Vec<(ReceiverName, Timestamp, String)>> {
    let sql = "SELECT receiver, min(made_at), coalesce(max(failure), '') FROM alert_outbox
               WHERE tries >= $1 GROUP BY receiver
               UNION ALL
               SELECT receiver, at, coalesce(remark, outcome) FROM alert_deliveries AS last
               WHERE outcome IN ('refused', 'given_up') AND number =
                   (SELECT max(number) FROM alert_deliveries
                    WHERE receiver = last.receiver AND outcome IN ('delivered', 'refused', 'given_up'))";
    let statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([FAILING_TRIES], |row| {
        Ok((row.get::<_, Text<ReceiverName>>(0)?.0, row.get::<_, Time>(1)?.0, row.get::<_, String>(2)?))
    })?;
    let mut found: BTreeMap<ReceiverName, (Timestamp, String)> = BTreeMap::new();
    for row in rows {
        let (receiver, since, why) = row?;
        found.entry(receiver).or_insert((since, why));
    }
    Ok(found.into_iter().map(|(receiver, (since, why))| (receiver, since, why)).collect())
}
