//! `/v1/alerts`: listing, reading and acknowledging incidents.

use std::sync::Arc;

use alerts::group::{Member, Sent};
use alerts::incident::{Incident, Phase, Scope};
use alerts::{Purpose, View, should_deliver};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::alert::{
    AcknowledgeRequest, IncidentDetail, IncidentReceiver, IncidentSelection, IncidentView, LastSent,
};
use holdfast_protocol::condition::{ConditionCode, Severity};
use holdfast_protocol::id::GuestName;
use holdfast_protocol::json;
use holdfast_protocol::operator::Page;
use jiff::Timestamp;
use net::server::Answer;
use serde::Deserialize;

use super::{BODY_MAX, check_end, log, view};
use crate::api::auth::Operator;
use crate::api::hosts::{EMPTY_BODY_MAX, host_ref};
use crate::api::mutation::Head;
use crate::api::page::{CheckedQuery, bad_cursor, limit, open, page};
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::domain::host::HostRef;
use crate::store::{
    Acknowledgement, AlertName, AlertPicture, IncidentFilter, IncidentQuery as StoreQuery, LogFilter,
    PAGE_MAX,
};

/// Lines of the log that come with an incident.
const LOG_LINES: u32 = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct IncidentQuery {
    limit: Option<u32>,
    cursor: Option<String>,
    #[serde(default)]
    filter: IncidentSelection,
    /// By its id or name; `hub` for the hub itself.
    host: Option<String>,
    guest: Option<GuestName>,
    code: Option<ConditionCode>,
    severity: Option<Severity>,
}

/// The scope of a host that operators name.
async fn scope(hub: &Hub, host: &str) -> Result<Scope, ApiError> {
    if host == "hub" {
        return Ok(Scope::Hub);
    }
    let detail = hub.store.host(host_ref(host)?, hub.clock.now()).await?;
    Ok(Scope::Host(detail.ok_or_else(|| ApiError::not_found("host"))?.host.id))
}

pub(in crate::api) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<IncidentQuery>,
) -> Result<Answer<Page<IncidentView>>, ApiError> {
    let limit = limit(query.limit, PAGE_MAX)?;
    let after = match query.cursor {
        Some(cursor) => Some(open(&cursor)?.parse().map_err(|_| bad_cursor())?),
        None => None,
    };
    let phase = match query.filter {
        IncidentSelection::Firing => IncidentFilter::Firing,
        IncidentSelection::All => IncidentFilter::All,
    };
    // To a narrower scope what is outside of it and what is not there are one: nothing is listed.
    let is_whole = operator.grant.scope().is_everything();
    let scope = match &query.host {
        Some(host) => match scope(&hub, host).await {
            Ok(scope) => Some(scope),
            Err(_) if !is_whole => return Ok(Answer(StatusCode::OK, Page { items: Vec::new(), next: None })),
            Err(error) => return Err(error),
        },
        None => None,
    };
    if let Some(guest) = query.guest.as_ref().filter(|_| is_whole) {
        let named = vec![AlertName::Guest(guest.to_string())];
        if !hub.store.unknown_names(named).await?.is_empty() {
            return Err(ApiError::not_found("guest"));
        }
    }
    let (guest, code, severity) = (query.guest, query.code, query.severity);
    let query = StoreQuery { phase, scope, guest, code, severity };
    let records = hub.store.incidents_within(operator.scope(), query, after, limit + 1).await?;
    let Page { items, next } = page(records, limit, |last| last.incident.id.to_string());
    let items = items.into_iter().map(view::incident_record).collect::<Result<_, _>>()?;
    Ok(Answer(StatusCode::OK, Page { items, next }))
}

/// All that fire, up to a page.
pub(in crate::api) async fn firing(
    hub: State<Arc<Hub>>,
    operator: Operator,
) -> Result<Answer<Page<IncidentView>>, ApiError> {
    let query = IncidentQuery { limit: Some(PAGE_MAX), ..IncidentQuery::default() };
    list(hub, operator, CheckedQuery(query)).await
}

pub(in crate::api) async fn show(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Answer<IncidentDetail>, ApiError> {
    let id = view::incident_id(&id)?;
    let host = match id.scope {
        Scope::Host(host) => Some(HostRef::Id(host)),
        Scope::Hub => None,
    };
    let picture = hub.store.alert_picture(host).await?.ok_or_else(view::no_incident)?;
    let incident = picture.state.incidents.get(&id.number).cloned().ok_or_else(view::no_incident)?;
    let receivers = receivers(&hub, &picture, &incident).await?;
    let filter = LogFilter { scope: Some(id.scope), incident: Some(id.number), before: None };
    let log = log::read(&hub, operator.scope(), filter, LOG_LINES).await?;
    let incident = view::incident(incident, picture.host.name)?;
    Ok(Answer(StatusCode::OK, IncidentDetail { incident, receivers, log }))
}

/// What each receiver of an incident knows, and why it hears no more now.
async fn receivers(
    hub: &Hub,
    picture: &AlertPicture,
    incident: &Incident,
) -> Result<Vec<IncidentReceiver>, ApiError> {
    let now = hub.clock.now();
    let silences = hub.store.silences(now).await?;
    let rules = hub.alerts.in_force();
    let setting = rules.setting(&silences, &picture.host);
    let view = View::new(&picture.state, &setting, now);
    let known = picture.state.groups.values().filter_map(|group| {
        let member = group.members.get(&incident.id.number)?;
        let verdict = should_deliver(incident, purpose(incident, member), &group.key.receiver, &view);
        let muted = view::muted(&verdict);
        Some(IncidentReceiver { receiver: group.key.receiver.clone(), sent: sent(member.sent), muted })
    });
    Ok(known.collect())
}

/// What would be sent next.
const fn purpose(incident: &Incident, member: &Member) -> Purpose {
    match (incident.phase, member.sent) {
        (Phase::Resolved { .. }, _) => Purpose::Resolve,
        (Phase::Pending { .. } | Phase::Firing { .. }, Sent::Firing { .. }) => Purpose::Repeat,
        (Phase::Pending { .. } | Phase::Firing { .. }, Sent::Nothing {} | Sent::Inherited {}) => {
            Purpose::Fire
        }
    }
}

const fn sent(sent: Sent) -> LastSent {
    match sent {
        Sent::Nothing {} => LastSent::Nothing,
        Sent::Inherited {} => LastSent::WithNextRepeat,
        Sent::Firing { .. } => LastSent::Firing,
    }
}

pub(in crate::api) async fn acknowledge(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<IncidentView>, ApiError> {
    let bytes = body::read("the acknowledgement", body, BODY_MAX).await?;
    let AcknowledgeRequest { until } = json::parse("the acknowledgement", &bytes, BODY_MAX)?;
    let check = |until: Timestamp| check_end(until, hub.clock.now());
    until.map(check).transpose()?;
    change(&hub, &id, head, &bytes, Acknowledgement::Given { until }).await
}

pub(in crate::api) async fn unacknowledge(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<IncidentView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    change(&hub, &id, head, &bytes, Acknowledgement::TakenBack).await
}

async fn change(
    hub: &Hub,
    id: &str,
    head: Head,
    bytes: &[u8],
    said: Acknowledgement,
) -> Result<Answer<IncidentView>, ApiError> {
    let id = view::incident_id(id)?;
    let changed = hub.store.acknowledge(head.by(hub, bytes)?, id, said).await?;
    let record = changed.ok_or_else(view::no_incident)?;
    Ok(Answer(StatusCode::OK, view::incident_record(record)?))
}
