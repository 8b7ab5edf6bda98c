//! `GET /metrics`: the fleet in Prometheus' text format.
//!
//! The page is bounded: the reports of the first hosts by name, and a count of the others. `?host=NAME` asks for one host alone.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use holdfast_protocol::condition::Severity;
use holdfast_protocol::operator::{HostState, HostView};
use metrics::{Exposition, Histogram, Labels, Metric, Value, exposition};
use net::server::as_it_is;
use serde::Deserialize;

use super::Hub;
use super::auth::Operator;
use super::hosts::host_ref;
use super::page::CheckedQuery;
use super::problem::ApiError;
use crate::domain::host::HostRef;
use crate::store::{IncidentFilter, PAGE_MAX, StoreError};

/// Hosts whose report is on a page, at most: each is read and parsed.
const DETAILS_MAX: usize = 200;

/// Alerts that are counted, at most.
const ALERTS_MAX: u32 = 10_000;

/// What the hub counts of itself since its start.
#[derive(Debug, Default)]
pub struct HubCounters {
    checkins: Histogram,
}

impl HubCounters {
    /// A check-in was kept.
    pub(super) fn kept_checkin(&self, took: Duration) {
        self.checkins.observe(took);
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricsQuery {
    host: Option<String>,
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    CheckedQuery(query): CheckedQuery<MetricsQuery>,
) -> Result<Response, ApiError> {
    let mut page = Exposition::default();
    match query.host {
        Some(host) => {
            let host = host_ref(&host)?;
            let detail = hub.store.host(host, hub.clock.now()).await?;
            let view = detail.ok_or_else(|| ApiError::not_found("host"))?.host;
            about(&mut page, &view);
            report(&hub, &mut page, &view).await?;
        }
        None => fleet(&hub, &mut page).await?,
    }
    Ok(as_it_is(([(CONTENT_TYPE, exposition::CONTENT_TYPE)], page.page())))
}

async fn fleet(hub: &Hub, page: &mut Exposition) -> Result<(), StoreError> {
    let none = Labels::default();
    page.add(Metric::HubInfo, &none.with("version", env!("CARGO_PKG_VERSION")), Value::Whole(1));
    page.histogram(Metric::HubCheckins, &none, &hub.counters.checkins.counts());
    page.add(Metric::HubUsageDropped, &none, Value::Whole(hub.usage.dropped()));
    page.add(Metric::HubUsageSize, &none, Value::Whole(hub.store.usage_bytes().await?));
    for queue in hub.store.queues().await? {
        let labels = none.with("receiver", &queue.receiver);
        page.add(Metric::HubOutbox, &labels, Value::Whole(queue.waiting.into()));
    }
    let alerts = hub.store.incidents(IncidentFilter::Firing.into(), None, ALERTS_MAX).await?;
    for severity in Severity::ALL {
        let firing = alerts.iter().filter(|record| record.incident.severity == severity).count();
        page.add(Metric::HubAlerts, &none.with("severity", severity), firing.into());
    }
    let hosts = hosts(hub).await?;
    for (state, word) in STATES {
        let count = hosts.iter().filter(|host| host.state == state).count();
        page.add(Metric::HubHosts, &none.with("state", word), count.into());
    }
    let active: Vec<&HostView> = hosts.iter().filter(|host| host.state != HostState::Revoked).collect();
    active.iter().for_each(|host| about(page, host));
    for host in active.iter().take(DETAILS_MAX) {
        report(hub, page, host).await?;
    }
    page.add(Metric::HubLeftOut, &none, active.len().saturating_sub(DETAILS_MAX).into());
    Ok(())
}

async fn hosts(hub: &Hub) -> Result<Vec<HostView>, StoreError> {
    let (mut hosts, mut after) = (Vec::new(), None);
    loop {
        let records = hub.store.hosts(after.take(), PAGE_MAX, hub.clock.now()).await?;
        after = records.last().map(|last| (last.view.name.clone(), last.number));
        let is_last = records.len() < usize::try_from(PAGE_MAX).unwrap_or(usize::MAX);
        hosts.extend(records.into_iter().map(|record| record.view));
        if is_last {
            return Ok(hosts);
        }
    }
}

const STATES: [(HostState, &str); 8] = [
    (HostState::New, "new"),
    (HostState::NeverSeen, "never_seen"),
    (HostState::Online, "online"),
    (HostState::Degraded, "degraded"),
    (HostState::Late, "late"),
    (HostState::Offline, "offline"),
    (HostState::Frozen, "frozen"),
    (HostState::Revoked, "revoked"),
];

/// What the hub knows of a host by itself.
fn about(page: &mut Exposition, host: &HostView) {
    let labels = Labels::default().with("host", &host.name);
    if let Some(at) = host.seen_at {
        page.add(Metric::HostSeen, &labels, Value::at(at));
    }
    for (state, word) in STATES {
        if host.state == state {
            page.add(Metric::HostState, &labels.with("state", word), Value::Whole(1));
        }
    }
    let maintenance = u64::from(host.maintenance_until.is_some());
    page.add(Metric::HostMaintenance, &labels, Value::Whole(maintenance));
    page.add(Metric::HostCertificateEnd, &labels, Value::at(host.certificate_ends_at));
    page.add(Metric::HostAttention, &labels, Value::Whole(host.attention.into()));
}

/// What its agent reported, while that is not too old: a host that is silent has no metrics of its own.
async fn report(hub: &Hub, page: &mut Exposition, host: &HostView) -> Result<(), StoreError> {
    match host.state {
        HostState::Online | HostState::Degraded | HostState::Late => {}
        HostState::New
        | HostState::NeverSeen
        | HostState::Offline
        | HostState::Frozen
        | HostState::Revoked => {
            return Ok(());
        }
    }
    let now = hub.clock.now();
    let Some(detail) = hub.store.host(HostRef::Id(host.id), now).await? else { return Ok(()) };
    let sample = hub.store.newest_sample(host.id, now).await?;
    let labels = Labels::default().with("host", &host.name);
    metrics::host::add(page, &labels, (&detail.sections, sample.as_ref()), now);
    Ok(())
}
