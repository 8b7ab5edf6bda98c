//! `POST /v1/agent/checkin`: durable reports and long polls.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest, Coverage, Need, WAIT_SECONDS_MAX};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::host_maintenance::HostMaintenanceOrder;
use holdfast_protocol::report::{REPORT_BYTES_MAX, Sections};
use holdfast_protocol::usage::UsageSample;
use holdfast_protocol::work_order::report::{LOG_LINES_MAX, PHASES_MAX, REPORTED_MAX};
use holdfast_protocol::work_order::{DIAGNOSTIC_BYTES_MAX, DiagnosticText, WorkOrderReport};
use net::server::{Answer, Ids};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::auth::Agent;
use super::long_poll::{LongPoll, WakeReason};
use super::page::CheckedQuery;
use super::problem::ApiError;
use super::{Hub, body, since_epoch, too_often};
use crate::domain::alerting::ReportedConditions;
use crate::domain::alerting::observed::guest_labels;
use crate::domain::desired::Delivery;
use crate::domain::identity::Presented;
use crate::domain::merge::IncomingReport;
use crate::domain::summary::Summary;
use crate::serve::AdmittedConnection;
use crate::store::{Checkin, CheckinReply, SectionTexts};

/// How long an agent waits for a slot when a whole fleet comes back at once.
const TURN_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckinQuery {
    wait: Option<String>,
}

impl CheckinQuery {
    /// `25s`: whole seconds, up to the bound. None given: not held.
    fn wait(&self) -> Result<Duration, ApiError> {
        let Some(text) = &self.wait else { return Ok(Duration::ZERO) };
        let seconds = text.strip_suffix('s').and_then(|digits| digits.parse::<u32>().ok());
        match seconds {
            Some(seconds) if seconds <= WAIT_SECONDS_MAX => Ok(Duration::from_secs(seconds.into())),
            _ => Err(ApiError::new(
                ErrorCode::Range,
                format!("wait is whole seconds from 0s to {WAIT_SECONDS_MAX}s, such as 25s"),
            )),
        }
    }
}

pub(super) async fn check_in(
    State(hub): State<Arc<Hub>>,
    Agent(presented): Agent,
    CheckedQuery(query): CheckedQuery<CheckinQuery>,
    visitor: Option<Extension<AdmittedConnection>>,
    ids: Ids,
    body: Body,
) -> Result<Answer<CheckinAnswer>, ApiError> {
    let wait = query.wait()?;
    let kib = report_kib(body.size_hint().upper());
    let paced = hub.rates.reports.take_many(presented.host, kib, since_epoch(hub.clock.now()));
    paced.map_err(|often| too_often("this host has reported more than eight MiB within a minute", often))?;
    let turn = match tokio::time::timeout(TURN_WAIT, hub.concurrency.agents.acquire()).await {
        Ok(Ok(turn)) => turn,
        Ok(Err(_)) | Err(_) => return Err(ApiError::from(crate::store::StoreError::Busy)),
    };
    let (checkin, usage) = read(&hub, presented, ids, body).await?;
    let (held, farewell) = (checkin.held, checkin.arriving.coverage == Coverage::Farewell);
    let waiter = hub.long_polls.take(presented.host);
    let begun = Instant::now();
    let mut kept = hub.store.check_in(checkin).await??;
    hub.counters.kept_checkin(begun.elapsed());
    hub.usage.put(presented.host, usage);
    drop(turn);
    if let Some(Extension(visitor)) = visitor {
        visitor.served_host(presented.host);
    }
    // A host is held no longer than its poll interval, so that it is heard of in every one.
    let wait = wait.min(Duration::from_secs(kept.poll.get().into()));
    let news = kept.delivery == Delivery::Now || !kept.jobs.is_empty() || !kept.orders.is_empty();
    if !news && kept.need == Need::Changed && !farewell && !wait.is_zero() {
        hold(&hub, &waiter, presented, held, &mut kept, Instant::now() + wait).await?;
    }
    Ok(Answer(
        StatusCode::OK,
        CheckinAnswer {
            acknowledged: kept.acknowledged,
            need: kept.need,
            poll_interval_s: kept.poll,
            desired: kept.desired,
            jobs: kept.jobs,
            orders: kept.orders,
            audit_seen: kept.audit_seen,
            maintenance: kept.maintenance_until.map(|until| HostMaintenanceOrder { until }),
            hub_ca: hub.authority.cas().announced(),
        },
    ))
}

/// The KiB charged to a host before its report is read: the declared size, or the maximum where none is declared.
fn report_kib(said: Option<u64>) -> u32 {
    let most = REPORT_BYTES_MAX as u64;
    u32::try_from(said.unwrap_or(most).min(most).div_ceil(1024)).unwrap_or(u32::MAX)
}

async fn read(
    hub: &Hub,
    presented: Presented,
    ids: Ids,
    body: Body,
) -> Result<(Checkin, Vec<UsageSample>), ApiError> {
    let request: CheckinRequest = body::parse("the check-in", body, REPORT_BYTES_MAX).await?;
    let largest = i64::MAX as u64;
    let refused = request.sections.desired.as_ref().and_then(|desired| desired.refused.as_ref());
    let refused = refused.and_then(|refused| refused.generation).unwrap_or(Generation::NONE);
    let audit = request.sections.trust.as_ref().map_or(0, |trust| trust.audit.number);
    if [request.sequence, request.held.number(), refused.number(), audit].iter().any(|n| *n > largest) {
        return Err(ApiError::new(ErrorCode::Range, format!("numbers up to {largest} are accepted")));
    }
    let checkin = Checkin {
        presented,
        arriving: IncomingReport {
            coverage: request.coverage,
            run: request.sections.agent.as_ref().map(|agent| whole_ms(agent.started_at)),
            sequence: request.sequence,
        },
        held: request.held,
        summary: Summary::of(&request.sections),
        sections: texts(&request.sections)?,
        conditions: ReportedConditions {
            guests: request.sections.guests.as_deref().map(guest_labels),
            set: request.sections.conditions,
        },
        jobs: request.sections.jobs.unwrap_or_default(),
        orders: bounded_orders(request.sections.orders.unwrap_or_default())?,
        diagnostic: bounded_text(request.diagnostic)?,
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    Ok((checkin, request.usage))
}

fn bounded_orders(orders: Vec<WorkOrderReport>) -> Result<Vec<WorkOrderReport>, ApiError> {
    let is_long =
        |order: &WorkOrderReport| order.phases.len() > PHASES_MAX || order.log.len() > LOG_LINES_MAX;
    if orders.len() > REPORTED_MAX as usize || orders.iter().any(is_long) {
        let text = format!(
            "a report carries {REPORTED_MAX} work orders at most, each with {PHASES_MAX} phases and {LOG_LINES_MAX} lines"
        );
        return Err(ApiError::new(ErrorCode::Range, text));
    }
    Ok(orders)
}

fn bounded_text(reading: Option<DiagnosticText>) -> Result<Option<DiagnosticText>, ApiError> {
    match &reading {
        Some(reading) if reading.text.len() > DIAGNOSTIC_BYTES_MAX => {
            let text = format!("the text of a reading is {DIAGNOSTIC_BYTES_MAX} bytes at most");
            Err(ApiError::new(ErrorCode::Range, text))
        }
        Some(_) | None => Ok(reading),
    }
}

/// The store keeps milliseconds; a run is known again only when it is compared in them.
fn whole_ms(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

fn texts(sections: &Sections) -> Result<SectionTexts, ApiError> {
    fn text<T: Serialize>(section: Option<&T>) -> Result<Option<String>, ApiError> {
        let text = section.map(serde_json::to_string).transpose();
        text.map_err(|error| ApiError::internal(format!("a section that cannot be written: {error}")))
    }
    Ok(SectionTexts {
        agent: text(sections.agent.as_ref())?,
        host: text(sections.host.as_ref())?,
        desired: text(sections.desired.as_ref())?,
        guests: text(sections.guests.as_ref())?,
        operations: text(sections.operations.as_ref())?,
        waiting: text(sections.waiting.as_ref())?,
        trust: text(sections.trust.as_ref())?,
        jobs: text(sections.jobs.as_ref())?,
        storage: text(sections.storage.as_ref())?,
        conditions: text(sections.conditions.as_ref())?,
        hardware: text(sections.hardware.as_ref())?,
        updates: text(sections.updates.as_ref())?,
    })
}

/// Waits for news, the end of the time, a newer check-in of the same host, or the end of the hub.
async fn hold(
    hub: &Hub,
    waiter: &LongPoll,
    presented: Presented,
    held: Generation,
    kept: &mut CheckinReply,
    until: Instant,
) -> Result<(), ApiError> {
    let mut stop = hub.stop.clone();
    loop {
        let woken = tokio::select! {
            woken = waiter.woken() => woken,
            () = tokio::time::sleep_until(until) => return Ok(()),
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        if woken == WakeReason::Displaced {
            return Ok(());
        }
        let news = hub.store.look_again(presented, held).await??;
        (kept.desired, kept.jobs, kept.orders) = (news.desired, news.jobs, news.orders);
        let maintenance = news.maintenance_until.filter(|until| *until > hub.clock.now());
        let is_other = std::mem::replace(&mut kept.maintenance_until, maintenance) != maintenance;
        let waits = !kept.jobs.is_empty() || !kept.orders.is_empty();
        if news.delivery == Delivery::Now || waits || is_other {
            return Ok(());
        }
    }
}
