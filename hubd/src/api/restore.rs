//! Replacement of a lost host: restore invites, redemption and withdrawal.
//! `POST /v1/agent/replacement`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::Invite;
use holdfast_protocol::id::InviteId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::job::{Act, Payload, SignedJob, Verb};
use holdfast_protocol::json;
use holdfast_protocol::operator::InviteCreated;
use holdfast_protocol::restore::{
    Replacement, RestoreOrder, RestoreRedeem, RestoreRequest, Restored, WithdrawRequest,
};
use net::server::{Answer, Ids};
use uuid::Uuid;

use super::auth::Agent;
use super::enrol::{ENROL_BODY_MAX, enrolled};
use super::hosts::host_ref;
use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::authority::AgentKey;
use crate::store::{NewRestore, NewWithdrawal, RestoreRedemption};

/// The body holds the order as a string: its quotes take two bytes each.
const RESTORE_BODY_MAX: usize = 2 * SIGNED_BYTES_MAX;

/// A signed job of a verb. The hosts check its signatures; the hub knows no keys.
fn signed(text: &str, verb: Verb) -> Result<(Payload, Sha256Text), ApiError> {
    let bad =
        |why: String| ApiError::new(ErrorCode::Range, format!("this is no signed {}: {why}", verb.as_str()));
    let signed = SignedJob::parse(text.as_bytes()).map_err(|error| bad(json::chain(&error)))?;
    let payload = Payload::parse(&signed.payload).map_err(|error| bad(json::chain(&error)))?;
    if payload.act.verb() != verb {
        return Err(bad(format!("it orders {}", payload.act.verb().as_str())));
    }
    Ok((payload, Sha256Text::of(&signed.payload)))
}

/// With an order that names no key, any holder of the invite could replace the host.
fn order(text: &str) -> Result<(Payload, Sha256Text), ApiError> {
    let (payload, digest) = signed(text, Verb::RestoreHost)?;
    match &payload.act {
        Act::RestoreHost(args) if args.new_key.is_some() => Ok((payload, digest)),
        _ => Err(ApiError::new(
            ErrorCode::JobUnbound,
            "the order does not say the new box's key: sign it again with a newer `holdfast`".to_owned(),
        )),
    }
}

/// Stores the withdrawal of an order.
pub(super) async fn withdraw(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<RestoreOrder>, ApiError> {
    let bytes = body::read("the withdrawal", body, RESTORE_BODY_MAX).await?;
    let request: WithdrawRequest = json::parse("the withdrawal", &bytes, RESTORE_BODY_MAX)?;
    let (payload, _) = signed(&request.withdrawal, Verb::WithdrawRestore)?;
    let Act::WithdrawRestore(args) = payload.act else {
        return Err(ApiError::internal("a withdrawal that is none".to_owned()));
    };
    let new = NewWithdrawal {
        host: host_ref(&host)?,
        ordered: payload.host_id,
        order: args.order,
        withdrawal: request.withdrawal,
    };
    let kept = hub.store.withdraw_restore(head.by(&hub, &bytes)?, new).await?;
    Ok(Answer(StatusCode::OK, kept.ok_or_else(|| ApiError::not_found("host"))?))
}

pub(super) async fn invite(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<InviteCreated>, ApiError> {
    let bytes = body::read("the restore's request", body, RESTORE_BODY_MAX).await?;
    let request: RestoreRequest = json::parse("the restore's request", &bytes, RESTORE_BODY_MAX)?;
    let (payload, digest) = order(&request.order)?;
    let id = InviteId::new(Uuid::new_v4());
    let secret = hub.authority.invite_secret(id).hash();
    let host = host_ref(&host)?;
    let restore = NewRestore { id, secret, host, ordered: payload.host_id, order: request.order };
    let made = hub.store.create_restore(head.by(&hub, &bytes)?, restore).await?;
    let made = made.ok_or_else(|| ApiError::not_found("host"))?;
    let secret = hub.authority.invite_secret(made.id);
    let invite = Invite {
        hub: hub.public_url.clone(),
        ca: hub.authority.cas().serving().pin(),
        secret,
        order: Some(digest),
    };
    let code = invite
        .seal()
        .map_err(|error| ApiError::internal(format!("an invite that cannot be written: {error}")))?;
    Ok(Answer(StatusCode::CREATED, InviteCreated { invite: made.id, code, expires_at: made.expires_at }))
}

pub(super) async fn redeem(
    State(hub): State<Arc<Hub>>,
    ids: Ids,
    body: Body,
) -> Result<Answer<Restored>, ApiError> {
    let request: RestoreRedeem = body::parse("the restore", body, ENROL_BODY_MAX).await?;
    let redemption = RestoreRedemption {
        secret: request.secret.hash(),
        key: AgentKey::from_csr(&request.csr_pem)?,
        at: hub.clock.now(),
        correlation: ids.correlation,
        reached: hub.reached.clone(),
    };
    let redeemed = hub.store.redeem_restore(redemption, hub.issue()).await?;
    // The old machine may still be connected, in a check-in that is held open.
    hub.long_polls.wake(redeemed.certificate.host);
    let enrolled = enrolled(&hub, redeemed.certificate);
    Ok(Answer(StatusCode::OK, Restored { enrolled, order: redeemed.order, handover: redeemed.handover }))
}

/// Shown only to the replaced machine, whose other calls are refused.
pub(super) async fn replacement(
    State(hub): State<Arc<Hub>>,
    Agent(presented): Agent,
) -> Result<Answer<Replacement>, ApiError> {
    let found = hub.store.replacement(presented).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(|| ApiError::not_found("replacement"))?))
}
