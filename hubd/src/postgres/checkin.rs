//! Check-ins: identity, contact time and report in one transaction.
//!
//! This is the way of a check-in with an effect beyond its host's own rows, such as an event, and of one that the other two
//! ways left over. A check-in that says nothing new is mostly kept with those of other hosts ([`super::contacts`]), and so
//! is one whose news concern its own rows alone ([`super::reports`]). The sections come as text, made outside the writer.

use async_trait::async_trait;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::size::PollSeconds;
use jiff::Timestamp;

use super::authenticated_host::AuthenticatedHost;
use super::columns::{Id, Number, Text, Time};
use super::events::emit;
use super::jobs;
use super::reports::ReportOutcome;
use super::sql::{self, Connection, Error, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Postgres, alerts, audit_heads, work_orders};
use crate::domain::alerting::AlertContext;
use crate::domain::desired::{Delivery, judge_delivery};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::identity::{self, HostStatus, IdentityError, IdentityRecord, Presented};
use crate::domain::merge::{self, Merge};
use crate::store::{Checkin, CheckinChanges, CheckinReply, Checkins, StoreError, Update, checkin_changes};

pub(super) struct HostRow {
    pub record: IdentityRecord,
    pub host: AuthenticatedHost,
}

pub(super) fn look(row: &Row<'_>) -> sql::Result<HostRow> {
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
macro_rules! look_columns {
    () => {
        "number, status, issued_generation, used_generation, liveness, run_started_at, sequence, poll_interval_s, wanted,
        refused, name, audit_seen, restored_from, seen_at, readmitted_from"
    };
}
pub(super) use look_columns;

const LOOK: &str = concat!("SELECT ", look_columns!(), " FROM hosts WHERE id = $1");

/// Judges the presented certificate. Two holders of one identity are frozen here, and that stays.
pub(super) fn admit(
    tx: &Tx<'_>,
    presented: Presented,
    at: Timestamp,
    correlation: CorrelationId,
) -> sql::Result<Result<AuthenticatedHost, IdentityError>> {
    let looked = tx.prepare_cached(LOOK)?.query_row([Id(presented.host.uuid())], look).optional()?;
    let Some(looked) = looked else { return Ok(Err(IdentityError::Unknown)) };
    match identity::judge(presented.generation, looked.record) {
        Ok(()) if presented.generation <= looked.record.issued => Ok(Ok(looked.host)),
        Ok(()) => {
            let sql = "UPDATE hosts SET issued_generation = $2 WHERE number = $1";
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
                let sql = "UPDATE hosts SET status = 'frozen' WHERE number = $1";
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
impl Checkins for Postgres {
    async fn check_in(&self, checkin: Checkin) -> Result<Result<CheckinReply, IdentityError>, StoreError> {
        if let Some(reply) = self.keep_quiet(&checkin).await {
            return Ok(Ok(reply));
        }
        let checkin = match self.keep_report(checkin).await? {
            ReportOutcome::Answered(reply) => return Ok(Ok(*reply)),
            ReportOutcome::ForWriter(checkin) => *checkin,
        };
        let context = self.alerts.clone();
        let kept = self.write("keep a check-in", move |tx| {
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
) -> sql::Result<Option<String>> {
    if delivery == Delivery::Nothing {
        return Ok(None);
    }
    let sql = "SELECT document FROM desired WHERE host = $1 AND generation = $2";
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
) -> sql::Result<CheckinReply> {
    let changes = checkin_changes(host.facts(), checkin);
    let CheckinChanges { merge, sequence, audit_seen, refused, .. } = changes;
    let sql =
        "UPDATE hosts SET seen_at = $2, used_generation = $3, run_started_at = $4, sequence = $5, held = $6,
                   liveness = 'online', farewell_at = $7, audit_seen = $8 WHERE number = $1";
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
            tx.prepare_cached("INSERT INTO reports (host) VALUES ($1) ON CONFLICT DO NOTHING")?
                .execute([host.number])?;
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
    Ok(CheckinReply {
        acknowledged: sequence.unwrap_or(0),
        need: changes.need,
        poll: host.poll,
        delivery,
        desired: document(tx, host, delivery)?,
        jobs: jobs::queued(tx, host.number)?,
        orders: work_orders::waiting(tx, host.number)?,
        audit_seen,
        maintenance_until: alerts::maintenance_until(tx, checkin.presented.host, checkin.at)?,
    })
}

fn lay_over(tx: &Tx<'_>, number: i64, checkin: &Checkin) -> sql::Result<()> {
    let sql = "UPDATE reports SET agent = coalesce($2, agent), host_text = coalesce($3, host_text),
                   desired = coalesce($4, desired), guests = coalesce($5, guests),
                   operations = coalesce($6, operations), waiting = coalesce($7, waiting),
                   trust = coalesce($8, trust), jobs = coalesce($9, jobs), storage = coalesce($10, storage),
                   conditions = coalesce($11, conditions),
                   guest_labels = coalesce($12, guest_labels),
                   hardware = coalesce($13, hardware), updates = coalesce($14, updates) WHERE host = $1";
    let texts = &checkin.sections;
    let labels = checkin.conditions.guests.as_ref().map(serde_json::to_string).transpose();
    let labels = labels.map_err(Error::unwritable)?;
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
    let sql = "UPDATE hosts SET agent_version = coalesce($2, agent_version), guests = coalesce($3, guests),
                   guests_running = coalesce($4, guests_running),
                   attention_guests = coalesce($5, attention_guests),
                   attention_waiting = coalesce($6, attention_waiting),
                   refused = CASE WHEN $7::boolean THEN $8 ELSE refused END,
                   attention_agent = coalesce($9, attention_agent),
                   degraded_since = CASE WHEN $9 IS NULL THEN degraded_since ELSE $10 END,
                   degraded_reason = CASE WHEN $9 IS NULL THEN degraded_reason ELSE $11 END WHERE number = $1";
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
