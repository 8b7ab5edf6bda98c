//! Check-ins: identity, contact time and report in one transaction.
//!
//! This is the hot path. It is a lookup by id, one update of the host's small row, and, when something changed, one of
//! its report. The sections come as text, made outside the writer. A check-in that says nothing new is mostly answered
//! from memory ([`super::settled`]).

use async_trait::async_trait;
use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::size::PollSeconds;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::authenticated_host::AuthenticatedHost;
use super::columns::{Id, Number, Text, Time};
use super::events::emit;
use super::jobs;
use super::settled::{Contact, Saved, Scope, Settled};
use super::writer::{Shape, Tx};
use super::{Sqlite, alerts, audit_heads, work_orders};
use crate::domain::alerting::AlertContext;
use crate::domain::desired::{Delivery, judge_delivery};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::identity::{self, HostStatus, IdentityError, IdentityRecord, Presented};
use crate::domain::merge::{self, Merge};
use crate::store::{Checkin, CheckinChanges, CheckinReply, Checkins, StoreError, Update, checkin_changes};

struct HostRow {
    record: IdentityRecord,
    host: AuthenticatedHost,
}

fn look(row: &Row<'_>) -> rusqlite::Result<HostRow> {
    // By place: names are looked up anew for every row, and this is every request.
    let status = match row.get_ref(1)?.as_str()? {
        "active" => HostStatus::Active,
        "revoked" => HostStatus::Revoked,
        _ => HostStatus::Frozen,
    };
    let sequence: Option<i64> = row.get(6)?;
    let run = row.get::<_, Option<Time>>(5)?.map(|time| time.0);
    let poll: u32 = row.get(7)?;
    let issued = row.get(2)?;
    Ok(HostRow {
        record: IdentityRecord {
            status,
            issued,
            used: row.get(3)?,
            restored_from: row.get(12)?,
            readmitted_from: row.get(14)?,
        },
        host: AuthenticatedHost {
            number: row.get(0)?,
            name: row.get::<_, Text<_>>(10)?.0,
            issued,
            liveness: row.get(4)?,
            kept: sequence.map(|sequence| merge::StoredReport {
                run,
                sequence: u64::try_from(sequence).unwrap_or_default(),
            }),
            poll: PollSeconds::try_from(poll).unwrap_or(PollSeconds::MAX),
            wanted: row.get::<_, Number>(8)?.0,
            refused: row.get::<_, Option<Number>>(9)?.map(|number| number.0),
            audit_seen: u64::try_from(row.get::<_, i64>(11)?).unwrap_or_default(),
            seen_at: row.get::<_, Option<Time>>(13)?.map(|time| time.0),
        },
    })
}

/// In the order of [`look`].
macro_rules! columns {
    () => {
        "number, status, issued_generation, used_generation, liveness, run_started_at, sequence,
        poll_interval_s, wanted, refused, name, audit_seen, restored_from, seen_at, readmitted_from"
    };
}

const LOOK: &str = concat!("SELECT ", columns!(), " FROM hosts WHERE id = ?1");

/// Those that may be settled: what a document or a certificate says is judged for each.
const LOOK_AT_ALL: &str = concat!(
    "SELECT ",
    columns!(),
    ", id, held FROM hosts WHERE status = 'active' AND liveness = 'online' AND farewell_at IS NULL AND NOT EXISTS
        (SELECT 1 FROM jobs WHERE host = hosts.number AND queue_state = 'queued') AND NOT EXISTS
        (SELECT 1 FROM work_orders WHERE host = hosts.number AND waits = 1)
        AND id NOT IN (SELECT unhex(replace(scope, '-', '')) FROM alert_scopes
            WHERE json_array_length(body, '$.maintenance') > 0 AND unhex(replace(scope, '-', '')) IS NOT NULL)"
);

/// The hosts that an earlier run of the hub left settled: most of them come back with nothing to say.
pub(super) fn settled(connection: &Connection) -> rusqlite::Result<Vec<(HostId, Settled)>> {
    let mut statement = connection.prepare(LOOK_AT_ALL)?;
    let rows = statement.query_map([], |row| {
        let (looked, id, held) = (look(row)?, row.get::<_, Id>(15)?, row.get::<_, Number>(16)?.0);
        Ok(left_settled(&looked, held).map(|settled| (HostId::new(id.0), settled)))
    })?;
    // A damaged row is reported to its host, when that checks in.
    Ok(rows.filter_map(|row| row.ok().flatten()).collect())
}

fn left_settled(HostRow { record, host }: &HostRow, held: Generation) -> Option<Settled> {
    let (stored, at) = (host.kept?, host.seen_at?);
    let is_served = identity::judge(record.used, *record).is_ok();
    let is_due = judge_delivery(host.wanted, held, host.refused) != Delivery::Nothing;
    (is_served && !is_due).then_some(Settled {
        number: host.number,
        generation: record.used,
        held,
        poll: host.poll,
        audit_seen: host.audit_seen,
        contact: Contact { sequence: stored.sequence, at },
        saved: Saved::Yes,
    })
}

/// Judges the presented certificate. Two holders of one identity are frozen here, and that stays.
pub(super) fn admit(
    tx: &Tx<'_>,
    presented: Presented,
    at: Timestamp,
    correlation: CorrelationId,
) -> rusqlite::Result<Result<AuthenticatedHost, IdentityError>> {
    let looked = tx.prepare_cached(LOOK)?.query_row([Id(presented.host.uuid())], look).optional()?;
    let Some(looked) = looked else { return Ok(Err(IdentityError::Unknown)) };
    match identity::judge(presented.generation, looked.record) {
        Ok(()) if presented.generation <= looked.record.issued => Ok(Ok(looked.host)),
        Ok(()) => {
            let sql = "UPDATE hosts SET issued_generation = ?2 WHERE number = ?1";
            tx.prepare_cached(sql)?.execute(params![looked.host.number, presented.generation])?;
            let message = format!(
                "{} shows certificate {}, and {} is the newest on record: this hub was restored from an older backup",
                looked.host.name, presented.generation, looked.record.issued
            );
            let (kind, host) = (EventKind::HostAhead, Some(presented.host));
            emit(tx, &NewEvent { at, kind, host, actor: None, correlation, message })?;
            Ok(Ok(AuthenticatedHost { issued: presented.generation, ..looked.host }))
        }
        Err(error) => {
            if matches!(error, IdentityError::Twice { .. }) {
                let sql = "UPDATE hosts SET status = 'frozen' WHERE number = ?1";
                tx.prepare_cached(sql)?.execute([looked.host.number])?;
                let message = format!("{} is frozen: {error}", looked.host.name);
                let kind = EventKind::HostFrozen;
                let host = Some(presented.host);
                emit(tx, &NewEvent { at, kind, host, actor: None, correlation, message })?;
            }
            Ok(Err(error))
        }
    }
}

#[async_trait]
impl Checkins for Sqlite {
    async fn check_in(&self, checkin: Checkin) -> Result<Result<CheckinReply, IdentityError>, StoreError> {
        if let Some(reply) = self.settled.answer(&checkin) {
            return Ok(Ok(reply));
        }
        let context = self.alerts.clone();
        let scope = Scope::Hosts(vec![checkin.presented.host]);
        let kept = self.write_within("keep a check-in", Shape::Single, scope, move |tx| {
            Ok(match admit(tx, checkin.presented, checkin.at, checkin.correlation)? {
                Ok(admitted) => Ok(keep(tx, &context, &checkin, &admitted)?),
                Err(error) => Err(error),
            })
        });
        kept.await.map_err(StoreError::from)
    }

    async fn look_again(
        &self,
        presented: Presented,
        held: Generation,
    ) -> Result<Result<Update, IdentityError>, StoreError> {
        self.read("look for a newer document", move |connection| {
            let looked =
                connection.prepare_cached(LOOK)?.query_row([Id(presented.host.uuid())], look).optional()?;
            let Some(looked) = looked else { return Ok(Err(IdentityError::Unknown)) };
            if let Err(error) = identity::judge(presented.generation, looked.record) {
                return Ok(Err(error));
            }
            let delivery = judge_delivery(looked.host.wanted, held, looked.host.refused);
            let desired = document(connection, &looked.host, delivery)?;
            let jobs = jobs::queued(connection, looked.host.number)?;
            let maintenance_until = alerts::announced_until(connection, presented.host)?;
            let orders = work_orders::waiting(connection, looked.host.number)?;
            Ok(Ok(Update { delivery, desired, jobs, orders, maintenance_until }))
        })
        .await
    }
}

fn document(
    connection: &Connection,
    host: &AuthenticatedHost,
    delivery: Delivery,
) -> rusqlite::Result<Option<String>> {
    if delivery == Delivery::Nothing {
        return Ok(None);
    }
    let sql = "SELECT document FROM desired WHERE host = ?1 AND generation = ?2";
    connection
        .prepare_cached(sql)?
        .query_row(params![host.number, Number(host.wanted)], |row| row.get(0))
        .optional()
}

fn keep(
    tx: &Tx<'_>,
    context: &AlertContext,
    checkin: &Checkin,
    host: &AuthenticatedHost,
) -> rusqlite::Result<CheckinReply> {
    let changes = checkin_changes(host.facts(), checkin);
    let CheckinChanges { merge, sequence, audit_seen, refused, .. } = changes;
    let sql =
        "UPDATE hosts SET seen_at = ?2, used_generation = ?3, run_started_at = ?4, sequence = ?5, held = ?6,
                   liveness = 'online', farewell_at = ?7, audit_seen = ?8 WHERE number = ?1";
    tx.prepare_cached(sql)?.execute(params![
        host.number,
        Time(checkin.at),
        checkin.presented.generation,
        changes.run.map(Time),
        sequence.and_then(|sequence| i64::try_from(sequence).ok()),
        Number(checkin.held),
        changes.farewell_at.map(Time),
        i64::try_from(audit_seen).unwrap_or(i64::MAX),
    ])?;
    let relabelled = alerts::relabelled(tx, host.number, checkin)?;
    let deleted = alerts::newly_deleted(tx, host.number, checkin)?;
    match merge {
        Merge::Replace => {
            tx.prepare_cached("INSERT OR IGNORE INTO reports (host) VALUES (?1)")?.execute([host.number])?;
            lay_over(tx, host.number, checkin)?;
        }
        Merge::Merge if !checkin.sections.is_empty() => lay_over(tx, host.number, checkin)?,
        Merge::Merge | Merge::Ignore => {}
    }
    for (kind, message) in changes.events {
        let (at, correlation) = (checkin.at, checkin.correlation);
        let host = Some(checkin.presented.host);
        emit(tx, &NewEvent { at, kind, host, actor: None, correlation, message })?;
    }
    if merge != Merge::Ignore {
        jobs::heard(tx, checkin, host)?;
        work_orders::heard(tx, checkin, host)?;
        audit_heads::keep(tx, checkin, host)?;
        alerts::deleted_guests(tx, context, checkin, &deleted)?;
    }
    alerts::spoken(tx, context, checkin, host, (merge, relabelled))?;
    let delivery = judge_delivery(host.wanted, checkin.held, refused);
    let reply = CheckinReply {
        acknowledged: sequence.unwrap_or(0),
        need: changes.need,
        poll: host.poll,
        delivery,
        desired: document(tx, host, delivery)?,
        jobs: jobs::queued(tx, host.number)?,
        orders: work_orders::waiting(tx, host.number)?,
        audit_seen,
        maintenance_until: alerts::maintenance_until(tx, checkin.presented.host, checkin.at)?,
    };
    if let Some(sequence) = sequence.filter(|_| is_settled(checkin, &reply)) {
        let settled = Settled {
            number: host.number,
            generation: checkin.presented.generation,
            held: checkin.held,
            poll: host.poll,
            audit_seen,
            contact: Contact { sequence, at: checkin.at },
            saved: Saved::Yes,
        };
        tx.settle(checkin.presented.host, settled);
    }
    Ok(reply)
}

/// Whether nothing is left to say to this host. One that took leave is heard anew when it comes back.
fn is_settled(checkin: &Checkin, reply: &CheckinReply) -> bool {
    let nothing_waits = reply.delivery == Delivery::Nothing
        && reply.jobs.is_empty()
        && reply.orders.is_empty()
        && reply.maintenance_until.is_none();
    nothing_waits && reply.need == Need::Changed && checkin.arriving.coverage != Coverage::Farewell
}

fn lay_over(tx: &Tx<'_>, number: i64, checkin: &Checkin) -> rusqlite::Result<()> {
    let sql = "UPDATE reports SET agent = coalesce(?2, agent), host_text = coalesce(?3, host_text),
                   desired = coalesce(?4, desired), guests = coalesce(?5, guests),
                   operations = coalesce(?6, operations), waiting = coalesce(?7, waiting),
                   trust = coalesce(?8, trust), jobs = coalesce(?9, jobs), storage = coalesce(?10, storage),
                   conditions = coalesce(?11, conditions),
                   guest_labels = coalesce(?12, guest_labels),
                   hardware = coalesce(?13, hardware), updates = coalesce(?14, updates) WHERE host = ?1";
    let texts = &checkin.sections;
    let labels = checkin.conditions.guests.as_ref().map(serde_json::to_string).transpose();
    let labels = labels.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    tx.prepare_cached(sql)?.execute(params![
        number,
        texts.agent,
        texts.host,
        texts.desired,
        texts.guests,
        texts.operations,
        texts.waiting,
        texts.trust,
        texts.jobs,
        texts.storage,
        texts.conditions,
        labels,
        texts.hardware,
        texts.updates
    ])?;
    let summary = &checkin.summary;
    let sql = "UPDATE hosts SET agent_version = coalesce(?2, agent_version), guests = coalesce(?3, guests),
                   guests_running = coalesce(?4, guests_running),
                   attention_guests = coalesce(?5, attention_guests),
                   attention_waiting = coalesce(?6, attention_waiting),
                   refused = CASE WHEN ?7 THEN ?8 ELSE refused END,
                   attention_agent = coalesce(?9, attention_agent),
                   degraded_since = CASE WHEN ?9 IS NULL THEN degraded_since ELSE ?10 END,
                   degraded_reason = CASE WHEN ?9 IS NULL THEN degraded_reason ELSE ?11 END WHERE number = ?1";
    let agent = summary.agent.as_ref();
    let degraded = agent.and_then(|agent| agent.degraded.as_ref());
    tx.prepare_cached(sql)?.execute(params![
        number,
        agent.map(|agent| &agent.version),
        summary.guests.map(|counts| counts.guests),
        summary.guests.map(|counts| counts.running),
        summary.guests.map(|counts| counts.attention),
        summary.waiting,
        summary.refused.is_some(),
        summary.refused.flatten().map(Number),
        agent.map(|agent| agent.problems),
        degraded.map(|degraded| Time(degraded.since)),
        degraded.map(|degraded| &degraded.reason),
    ])?;
    Ok(())
}
