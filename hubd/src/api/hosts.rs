//! `GET /v1/hosts`, `GET /v1/hosts/{id or name}`, `POST /v1/hosts/{id or name}/revoke`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::filter::HostFilter;
use holdfast_protocol::id::HostName;
use holdfast_protocol::operator::{AuditEvidence, HostDetail, HostView, Page};
use net::server::Answer;
use serde::Deserialize;

use super::auth::Operator;
use super::mutation::Head;
use super::page::{CheckedQuery, bad_cursor, close, limit, open, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::domain::host::HostRef;
use crate::store::{HostRecord, PAGE_MAX};

/// A change without anything to say.
pub(super) const EMPTY_BODY_MAX: usize = 1024;

/// A text that is neither id nor name names no host.
pub(super) fn host_ref(text: &str) -> Result<HostRef, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("host"))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<HostQuery>,
) -> Result<Answer<Page<HostView>>, ApiError> {
    let limit = limit(query.limit, PAGE_MAX)?;
    let after = query.cursor.map(|cursor| place(&open(&cursor)?)).transpose()?;
    let now = hub.clock.now();
    let page = match query.filter {
        None => {
            let records = hub.store.hosts_within(operator.scope(), after, limit + 1, now).await?;
            page(records, limit, cursor_of)
        }
        // All that is read for one answer is looked at, so a page of few hosts may not be the last one.
        Some(filter) => {
            let mut records = hub.store.hosts_within(operator.scope(), after, PAGE_MAX, now).await?;
            let last = records.last().filter(|_| records.len() >= PAGE_MAX as usize).map(cursor_of);
            records.retain(|record| filter.selects(&record.view));
            let found = page(records, limit, cursor_of);
            Page { next: found.next.or_else(|| last.map(|place| close(&place))), ..found }
        }
    };
    let items = page.items.into_iter().map(|record| record.view).collect();
    Ok(Answer(StatusCode::OK, Page { items, next: page.next }))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostQuery {
    pub(super) limit: Option<u32>,
    pub(super) cursor: Option<String>,
    pub(super) filter: Option<HostFilter>,
}

fn cursor_of(record: &HostRecord) -> String {
    format!("{}/{}", record.view.name, record.number)
}

pub(super) fn place(cursor: &str) -> Result<(HostName, i64), ApiError> {
    let (name, number) = cursor.split_once('/').ok_or_else(bad_cursor)?;
    Ok((name.parse().map_err(|_| bad_cursor())?, number.parse().map_err(|_| bad_cursor())?))
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
) -> Result<Answer<HostDetail>, ApiError> {
    let detail = hub.store.host(host_ref(&host)?, hub.clock.now()).await?;
    Ok(Answer(StatusCode::OK, detail.ok_or_else(|| ApiError::not_found("host"))?))
}

pub(super) async fn audit_heads(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
) -> Result<Answer<AuditEvidence>, ApiError> {
    let evidence = hub.store.audit_evidence(host_ref(&host)?).await?;
    Ok(Answer(StatusCode::OK, evidence.ok_or_else(|| ApiError::not_found("host"))?))
}

pub(super) async fn revoke(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<HostView>, ApiError> {
    let bytes = body::read("the revocation", body, EMPTY_BODY_MAX).await?;
    let revoked = hub.store.revoke_host(head.by(&hub, &bytes)?, host_ref(&host)?).await?;
    let view = revoked.ok_or_else(|| ApiError::not_found("host"))?;
    // A held check-in is answered at once.
    hub.long_polls.wake(view.id);
    Ok(Answer(StatusCode::OK, view))
}
