//! `GET /v1/hosts/{id or name}/usage`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{UnknownSpan, UsageSeries, UsageSpan};
use net::server::Answer;
use serde::Deserialize;

use super::Hub;
use super::auth::Operator;
use super::hosts::host_ref;
use super::page::CheckedQuery;
use super::problem::ApiError;
use crate::store::UsageQuery;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesQuery {
    pub(super) span: Option<String>,
    pub(super) guest: Option<String>,
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
    CheckedQuery(query): CheckedQuery<SeriesQuery>,
) -> Result<Answer<UsageSeries>, ApiError> {
    let span: Option<UsageSpan> = query
        .span
        .map(|text| text.parse())
        .transpose()
        .map_err(|odd: UnknownSpan| ApiError::new(ErrorCode::Range, odd.to_string()))?;
    let guest: Option<GuestUid> =
        query.guest.map(|text| text.parse()).transpose().map_err(|_| ApiError::not_found("guest"))?;
    let wanted = UsageQuery { host: host_ref(&host)?, guest, span: span.unwrap_or_default() };
    let series = hub.store.usage(wanted, hub.clock.now()).await?;
    Ok(Answer(StatusCode::OK, series.ok_or_else(|| ApiError::not_found("host"))?))
}
