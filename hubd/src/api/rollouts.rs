//! Rollouts of releases: planned, listed, started, paused, resumed, aborted.
//!
//! `/v1/rollouts` and `/v1/rollouts/{number}`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::json;
use holdfast_protocol::operator::Page;
use holdfast_protocol::release::ReleaseFileKind;
use holdfast_protocol::release::rollout::{OnFailure, RolloutRequest, RolloutSubject, RolloutView};
use net::server::Answer;

use super::auth::Operator;
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::problem::ApiError;
use super::release_offers::require_program;
use super::{Hub, body};
use crate::domain::rollout::action::Action;

/// Names of two thousand hosts.
const ROLLOUT_BYTES_MAX: usize = 256 * 1024;

/// A text that is no number names no rollout.
fn number(text: &str) -> Result<u32, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("rollout"))
}

fn found(view: Option<RolloutView>) -> Result<Answer<RolloutView>, ApiError> {
    Ok(Answer(StatusCode::OK, view.ok_or_else(|| ApiError::not_found("rollout"))?))
}

pub(super) async fn plan(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<Answer<RolloutView>, ApiError> {
    let bytes = body::read("the rollout", body, ROLLOUT_BYTES_MAX).await?;
    let request: RolloutRequest = json::parse("the rollout", &bytes, ROLLOUT_BYTES_MAX)?;
    let by = head.by(&hub, &bytes)?;
    // A deletion that runs now would take away what is judged here.
    let _order = hub.release_order.lock().await;
    let kind = match request.subject {
        RolloutSubject::Agent => ReleaseFileKind::Agent,
        RolloutSubject::GuestAgent => ReleaseFileKind::GuestAgent,
        RolloutSubject::Golden => ReleaseFileKind::Golden,
    };
    require_program(&hub, request.version, kind).await?;
    if kind == ReleaseFileKind::Golden {
        require_program(&hub, request.version, ReleaseFileKind::GoldenManifest).await?;
    }
    // An image has no way back; the store says so.
    if let OnFailure::RollBack(to) = request.on_failure
        && kind != ReleaseFileKind::Golden
    {
        require_program(&hub, to, kind).await?;
    }
    Ok(Answer(StatusCode::OK, hub.store.plan_rollout(by, request).await?))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
) -> Result<Answer<Page<RolloutView>>, ApiError> {
    let items = hub.store.rollouts_within(operator.scope(), hub.clock.now()).await?;
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    Path(named): Path<String>,
) -> Result<Answer<RolloutView>, ApiError> {
    found(hub.store.rollout_within(operator.scope(), number(&named)?, hub.clock.now()).await?)
}

async fn act(
    hub: &Hub,
    named: &str,
    head: Head,
    body: Body,
    action: Action,
) -> Result<Answer<RolloutView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let (number, by) = (number(named)?, head.by(hub, &bytes)?);
    found(hub.store.act_on_rollout(by, number, action).await?)
}

pub(super) async fn start(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<RolloutView>, ApiError> {
    act(&hub, &named, head, body, Action::Start).await
}

pub(super) async fn pause(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<RolloutView>, ApiError> {
    act(&hub, &named, head, body, Action::Pause).await
}

pub(super) async fn take_back(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<RolloutView>, ApiError> {
    act(&hub, &named, head, body, Action::TakeBack).await
}

pub(super) async fn resume(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<RolloutView>, ApiError> {
    act(&hub, &named, head, body, Action::Resume).await
}

pub(super) async fn abort(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<RolloutView>, ApiError> {
    act(&hub, &named, head, body, Action::Abort).await
}
