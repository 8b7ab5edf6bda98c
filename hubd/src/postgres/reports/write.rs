//! Statements that write a batch of check-ins.

use std::collections::HashSet;

use ::postgres::types::ToSql;

use super::super::sql::{self, Connection, Error, Value};
use super::decide::Decided;
use crate::domain::merge::Merge;
use crate::domain::summary::{AgentSummary, GuestCounts, Summary};
use crate::store::SectionTexts;

/// The row is written only in the state that was judged.
macro_rules! update_hosts {
    ($sets:literal, $arrays:literal, $names:literal) => {
        concat!(
            "WITH written AS (UPDATE hosts SET seen_at = new.seen_at, used_generation = new.used_generation,
                run_started_at = new.run_started_at, sequence = new.sequence, held = new.held, farewell_at = NULL,
                audit_seen = new.audit_seen",
            $sets,
            " FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::bigint[]",
            $arrays,
            ") AS new (number, version, place, seen_at, used_generation, run_started_at, sequence, held, audit_seen",
            $names,
            ") WHERE hosts.number = new.number AND hosts.xmin::text = new.version RETURNING new.place
            ) SELECT array_agg(place) FROM written"
        )
    };
}

const CONTACT: &str = update_hosts!("", "", "");

/// With what the list of hosts shows.
const CONTACT_AND_SUMMARY: &str = update_hosts!(
    ", guests = coalesce(new.guests, hosts.guests), guests_running = coalesce(new.guests_running, hosts.guests_running),
        attention_guests = coalesce(new.attention_guests, hosts.attention_guests),
        attention_waiting = coalesce(new.attention_waiting, hosts.attention_waiting), refused = new.refused,
        agent_version = coalesce(new.agent_version, hosts.agent_version),
        attention_agent = coalesce(new.attention_agent, hosts.attention_agent),
        degraded_since = CASE WHEN new.attention_agent IS NULL THEN hosts.degraded_since ELSE new.degraded_since END,
        degraded_reason = CASE WHEN new.attention_agent IS NULL THEN hosts.degraded_reason ELSE new.degraded_reason END",
    ", $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::bigint[], $17::bigint[],
        $18::text[]",
    ", guests, guests_running, attention_guests, attention_waiting, refused, agent_version, attention_agent, degraded_since,
        degraded_reason"
);

const HEADS: &str = "INSERT INTO audit_heads (host, number, chain, at)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])";

/// Labels of guests are as they are stored, or the check-in is not written here.
const REPORTS: &str = "UPDATE reports SET agent = coalesce(new.agent, reports.agent),
        host_text = coalesce(new.host_text, reports.host_text), desired = coalesce(new.desired, reports.desired),
        guests = coalesce(new.guests, reports.guests), operations = coalesce(new.operations, reports.operations),
        waiting = coalesce(new.waiting, reports.waiting), trust = coalesce(new.trust, reports.trust),
        jobs = coalesce(new.jobs, reports.jobs), storage = coalesce(new.storage, reports.storage),
        hardware = coalesce(new.hardware, reports.hardware), updates = coalesce(new.updates, reports.updates)
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::text[], $12::text[])
        AS new (host, agent, host_text, desired, guests, operations, waiting, trust, jobs, storage, hardware, updates)
    WHERE reports.host = new.host";

fn text(text: Option<&String>) -> Value<'_> {
    text.map_or(Value::Null, |text| Value::Text(text))
}

/// What of a summary holds.
fn summary<'a>(decided: &'a Decided<'_>) -> Option<&'a Summary> {
    (decided.changes.merge != Merge::Ignore).then_some(&decided.checkin.summary)
}

fn has_summary(decided: &Decided<'_>) -> bool {
    summary(decided).is_some_and(|summary| {
        summary.agent.is_some()
            || summary.guests.is_some()
            || summary.waiting.is_some()
            || summary.refused.is_some()
    })
}

/// Writes the rows of hosts. Out are the places of those that were as they were judged.
pub(super) fn hosts(connection: &Connection, decided: &[Decided<'_>]) -> sql::Result<HashSet<usize>> {
    let column = |of: fn(&Decided<'_>) -> i64| decided.iter().map(of).collect::<Vec<i64>>();
    let versions: Vec<Value<'_>> = decided.iter().map(|one| Value::Text(&one.version)).collect();
    let places = decided.iter().map(|one| i64::try_from(one.place).map_err(Error::unwritable));
    let places = places.collect::<sql::Result<Vec<i64>>>()?;
    let runs: Vec<Option<i64>> =
        decided.iter().map(|one| one.changes.run.map(|run| run.as_millisecond())).collect();
    let contact: [&(dyn ToSql + Sync); 9] = [
        &column(|one| one.number),
        &versions,
        &places,
        &column(|one| one.checkin.at.as_millisecond()),
        &column(|one| one.checkin.presented.generation.into()),
        &runs,
        &column(|one| one.numbers.sequence),
        &column(|one| one.numbers.held),
        &column(|one| one.numbers.audit_seen),
    ];
    let rows = if decided.iter().any(has_summary) {
        let summaries = Summaries::of(decided);
        let columns = [contact.as_slice(), summaries.columns().as_slice()].concat();
        connection.query_arrays(CONTACT_AND_SUMMARY, &columns)?
    } else {
        connection.query_arrays(CONTACT, &contact)?
    };
    let row = rows.first().ok_or(Error::NoRow)?;
    let written: Vec<i64> = row.try_get::<_, Option<Vec<i64>>>(0)?.unwrap_or_default();
    written.into_iter().map(|place| usize::try_from(place).map_err(Error::unreadable)).collect()
}

/// Columns of summaries. What a check-in says nothing of is null, and stays.
struct Summaries<'a> {
    counts: [Vec<Option<i64>>; 5],
    versions: Vec<Value<'a>>,
    problems: Vec<Option<i64>>,
    degraded_since: Vec<Option<i64>>,
    degraded_reasons: Vec<Value<'a>>,
}

impl<'a> Summaries<'a> {
    fn of(decided: &'a [Decided<'_>]) -> Self {
        let guests = |of: fn(GuestCounts) -> u32| -> Vec<Option<i64>> {
            decided.iter().map(|one| Some(of(summary(one)?.guests?).into())).collect()
        };
        let agents: Vec<Option<&AgentSummary>> =
            decided.iter().map(|one| summary(one)?.agent.as_ref()).collect();
        let degraded = || agents.iter().map(|agent| agent.and_then(|agent| agent.degraded.as_ref()));
        let refused = |one: &Decided<'_>| {
            one.changes.refused.map(|refused| i64::try_from(refused.number()).unwrap_or(i64::MAX))
        };
        Self {
            counts: [
                guests(|counts| counts.guests),
                guests(|counts| counts.running),
                guests(|counts| counts.attention),
                decided.iter().map(|one| Some(summary(one)?.waiting?.into())).collect(),
                decided.iter().map(refused).collect(),
            ],
            versions: agents.iter().map(|agent| text(agent.map(|agent| &agent.version))).collect(),
            problems: agents.iter().map(|agent| agent.map(|agent| agent.problems.into())).collect(),
            degraded_since: degraded()
                .map(|degraded| degraded.map(|degraded| degraded.since.as_millisecond()))
                .collect(),
            degraded_reasons: degraded()
                .map(|degraded| text(degraded.map(|degraded| &degraded.reason)))
                .collect(),
        }
    }

    fn columns(&self) -> [&(dyn ToSql + Sync); 9] {
        let [guests, running, attention, waiting, refused] = &self.counts;
        let (versions, problems) = (&self.versions, &self.problems);
        [
            guests,
            running,
            attention,
            waiting,
            refused,
            versions,
            problems,
            &self.degraded_since,
            &self.degraded_reasons,
        ]
    }
}

/// Stores ends of audits that are new.
pub(super) fn audit_heads(connection: &Connection, decided: &[Decided<'_>]) -> sql::Result<()> {
    let new: Vec<_> = decided.iter().filter_map(|one| Some((one, one.new_head?))).collect();
    if new.is_empty() {
        return Ok(());
    }
    let hosts: Vec<i64> = new.iter().map(|(one, _)| one.number).collect();
    let numbers: Vec<i64> =
        new.iter().map(|(_, head)| i64::try_from(head.number).unwrap_or(i64::MAX)).collect();
    let chains: Vec<Value<'_>> = new.iter().map(|(_, head)| Value::Text(&head.chain)).collect();
    let times: Vec<i64> = new.iter().map(|(one, _)| one.checkin.at.as_millisecond()).collect();
    connection.execute_arrays(HEADS, &[&hosts, &numbers, &chains, &times])?;
    Ok(())
}

/// Lays sections over the stored ones.
pub(super) fn reports(connection: &Connection, decided: &[Decided<'_>]) -> sql::Result<()> {
    let news: Vec<_> = decided.iter().filter(|one| one.changes.merge != Merge::Ignore).collect();
    if news.is_empty() {
        return Ok(());
    }
    let hosts: Vec<i64> = news.iter().map(|one| one.number).collect();
    let sections = |of: fn(&SectionTexts) -> Option<&String>| -> Vec<Value<'_>> {
        news.iter().map(|one| text(of(&one.checkin.sections))).collect()
    };
    let columns: [&(dyn ToSql + Sync); 12] = [
        &hosts,
        &sections(|texts| texts.agent.as_ref()),
        &sections(|texts| texts.host.as_ref()),
        &sections(|texts| texts.desired.as_ref()),
        &sections(|texts| texts.guests.as_ref()),
        &sections(|texts| texts.operations.as_ref()),
        &sections(|texts| texts.waiting.as_ref()),
        &sections(|texts| texts.trust.as_ref()),
        &sections(|texts| texts.jobs.as_ref()),
        &sections(|texts| texts.storage.as_ref()),
        &sections(|texts| texts.hardware.as_ref()),
        &sections(|texts| texts.updates.as_ref()),
    ];
    let written = connection.execute_arrays(REPORTS, &columns)?;
    // A host that reported has a row.
    if usize::try_from(written).is_ok_and(|written| written == news.len()) {
        Ok(())
    } else {
        Err(Error::NoRow)
    }
}
