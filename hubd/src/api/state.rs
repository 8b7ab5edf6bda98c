//! `/v1/state` and `/v1/state-snapshots`: the state of hosts as documents of lines.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::CustomerId;
use holdfast_protocol::operator::Page;
use holdfast_protocol::state::{StateScope, StateSnapshotView};
use net::server::{Answer, as_it_is};
use serde::Deserialize;

use super::Hub;
use super::auth::Operator;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::state_body::StateBody;
use crate::snapshots::{KeptState, LiveState, SnapshotError, StateLines};
use crate::store::PAGE_MAX;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateQuery {
    customer: Option<CustomerId>,
    filter: Option<GuestFilter>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptQuery {
    customer: Option<CustomerId>,
}

impl From<SnapshotError> for ApiError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Store(error) => error.into(),
            other @ (SnapshotError::Document(_)
            | SnapshotError::Unpack(_)
            | SnapshotError::Pack(_)
            | SnapshotError::TooLarge { .. }
            | SnapshotError::Ended) => Self::internal(holdfast_protocol::json::chain(&other)),
        }
    }
}

pub(super) async fn now(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    CheckedQuery(query): CheckedQuery<StateQuery>,
) -> Result<Response, ApiError> {
    let scope = StateScope { customer: query.customer, filter: query.filter };
    let live = LiveState::new(Arc::clone(&hub.store), scope, hub.clock.now());
    stream(&hub, StateLines::Live(Box::new(live))).await
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(number): Path<String>,
    CheckedQuery(query): CheckedQuery<KeptQuery>,
) -> Result<Response, ApiError> {
    let unknown = || ApiError::not_found("snapshot of state");
    let number: i64 = number.parse().map_err(|_| unknown())?;
    let packed = hub.store.state_snapshot(number).await?.ok_or_else(unknown)?;
    stream(&hub, StateLines::Kept(Box::new(KeptState::new(packed, query.customer)?))).await
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<StateSnapshotView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let before = query.cursor()?.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let kept = hub.store.state_snapshots(before, limit + 1).await?;
    Ok(Answer(StatusCode::OK, page(kept, limit, |view| view.number.to_string())))
}

/// An answer whose first lines were made already: what fails at once is an error of its own.
async fn stream(hub: &Hub, mut lines: StateLines) -> Result<Response, ApiError> {
    let Ok(slot) = Arc::clone(&hub.concurrency.states).try_acquire_owned() else {
        let says = "as many snapshots of state are read as at once are possible: ask again in a minute";
        return Err(ApiError::new(ErrorCode::Busy, says));
    };
    let first = lines.next_lines().await?;
    let mut response = Response::new(Body::new(StateBody::new(first, lines, slot)));
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(as_it_is(response))
}
