//! `POST /v1/invites`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::Invite;
use holdfast_protocol::id::InviteId;
use holdfast_protocol::json;
use holdfast_protocol::operator::{InviteCreated, InviteRequest};
use net::server::Answer;
use uuid::Uuid;

use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::domain::host::is_usable_name;
use crate::store::NewInvite;

const INVITE_BODY_MAX: usize = 4 * 1024;

pub(super) async fn create(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<Answer<InviteCreated>, ApiError> {
    let bytes = body::read("the invite's request", body, INVITE_BODY_MAX).await?;
    let request: InviteRequest = json::parse("the invite's request", &bytes, INVITE_BODY_MAX)?;
    if !is_usable_name(&request.host_name) {
        return Err(ApiError::new(ErrorCode::Range, "this name reads as an id: choose another"));
    }
    let id = InviteId::new(Uuid::new_v4());
    let secret = hub.authority.invite_secret(id).hash();
    let invite = NewInvite { id, host_name: request.host_name, secret };
    let made = hub.store.create_invite(head.by(&hub, &bytes)?, invite).await?;
    // Of a repeated request the first invite comes back; its secret is derived again.
    let secret = hub.authority.invite_secret(made.id);
    let code =
        Invite { hub: hub.public_url.clone(), ca: hub.authority.cas().serving().pin(), secret, order: None }
            .seal()
            .map_err(|error| ApiError::internal(format!("an invite that cannot be written: {error}")))?;
    Ok(Answer(StatusCode::CREATED, InviteCreated { invite: made.id, code, expires_at: made.expires_at }))
}
