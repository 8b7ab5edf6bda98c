//! Releases that are offered to hosts.
//!
//! `PUT` and `DELETE /v1/hosts/{id or name}/release-offer` of operators, `GET /v1/agent/release-offer` and
//! `/v1/agent/image-offer` of hosts.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::json;
use holdfast_protocol::release::stored::{HostOffer, ImageOffer, OfferRequest, ReleaseOffer, WithdrawnOffer};
use holdfast_protocol::release::{ReleaseFileKind, VersionNumber};
use net::server::{Answer, Ids};

use super::artifacts::{blocking, paced};
use super::auth::Agent;
use super::hosts::{EMPTY_BODY_MAX, host_ref};
use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::domain::release_offer::{OfferError, judge_here, the_program};

/// A version, with room for white space.
const OFFER_BYTES_MAX: usize = 1024;

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<HostOffer>, ApiError> {
    let bytes = body::read("the offer", body, OFFER_BYTES_MAX).await?;
    let OfferRequest { version } = json::parse("the offer", &bytes, OFFER_BYTES_MAX)?;
    let (host, by) = (host_ref(&host)?, head.by(&hub, &bytes)?);
    // A deletion that runs now would take away what is judged here.
    let _order = hub.release_order.lock().await;
    require_agent(&hub, version).await?;
    let offer = hub.store.offer_release(by, host, version).await?;
    Ok(Answer(StatusCode::OK, offer.ok_or_else(|| ApiError::not_found("host"))?))
}

/// A release of which a host could fetch the agent now.
async fn require_agent(hub: &Hub, version: VersionNumber) -> Result<(), ApiError> {
    require_program(hub, version, ReleaseFileKind::Agent).await
}

/// A release of which a host could fetch a program of this kind now.
pub(super) async fn require_program(
    hub: &Hub,
    version: VersionNumber,
    kind: ReleaseFileKind,
) -> Result<(), ApiError> {
    let kept = hub.store.releases().await?.into_iter().find(|record| record.version == version);
    let kept = kept.ok_or(OfferError::Unknown { version })?;
    let program = the_program(version, &kept.files, kind)?.clone();
    let folder = Arc::clone(&hub.artifacts);
    let here = blocking(move || folder.view(&program.sha256, program.size_bytes)).await?;
    Ok(judge_here(version, &here)?)
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<WithdrawnOffer>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let withdrawn = hub.store.withdraw_release_offer(head.by(&hub, &bytes)?, host_ref(&host)?).await?;
    Ok(Answer(StatusCode::OK, withdrawn.ok_or_else(|| ApiError::not_found("host"))?))
}

pub(super) async fn for_agent(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
) -> Result<Answer<ReleaseOffer>, ApiError> {
    let host = paced(&hub, agent, ids)?;
    Ok(Answer(StatusCode::OK, hub.store.release_offered_to(host).await?))
}

/// The image that a rollout brings to the host.
pub(super) async fn image_for_agent(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
) -> Result<Answer<ImageOffer>, ApiError> {
    let host = paced(&hub, agent, ids)?;
    let image = hub.store.image_offered_to(host).await?;
    Ok(Answer(StatusCode::OK, ImageOffer { image }))
}
