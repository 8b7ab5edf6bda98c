//! `/v1/operators/{name}/oidc`: who an operator is at the provider.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::json;
use holdfast_protocol::oidc::{ProviderLink, ProviderPerson};
use net::server::Answer;

use crate::api::hosts::EMPTY_BODY_MAX;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::store::{NewProviderLink, ProviderLinkError};

const BODY_MAX: usize = 2 * 1024;

/// Longest subject and claim value.
const PERSON_MAX: usize = 255;

pub(in crate::api::sign_in) fn routes() -> Router<Arc<Hub>> {
    Router::new().route("/v1/operators/{name}/oidc", get(show).put(link).delete(unlink))
}

fn operator(name: &str) -> Result<OperatorName, ApiError> {
    name.parse().map_err(|_| ApiError::not_found("operator"))
}

async fn show(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
) -> Result<Answer<ProviderLink>, ApiError> {
    let name = operator(&name)?;
    let found = hub.store.provider_link(name.clone()).await?;
    Ok(Answer(StatusCode::OK, found.ok_or(ProviderLinkError::NoLink { name })?))
}

async fn link(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<ProviderLink>, ApiError> {
    let bytes = body::read("the link", body, BODY_MAX).await?;
    let person: ProviderPerson = json::parse("the link", &bytes, BODY_MAX)?;
    check(&person)?;
    let operator = operator(&name)?;
    let issuer = hub.sign_in.provider.as_ref().map(|provider| provider.settings.issuer.clone());
    let issuer = issuer.ok_or_else(|| {
        let says = "this hub has no provider of identities, and nothing was changed: set [oidc] in its hub.toml and restart it";
        ApiError::new(ErrorCode::PreconditionFailed, says)
    })?;
    let new = NewProviderLink { operator, issuer, person };
    Ok(Answer(StatusCode::OK, hub.store.link_provider(head.by(&hub, &bytes)?, new).await?))
}

async fn unlink(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<ProviderLink>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let name = operator(&name)?;
    Ok(Answer(StatusCode::OK, hub.store.unlink_provider(head.by(&hub, &bytes)?, name).await?))
}

fn check(person: &ProviderPerson) -> Result<(), ApiError> {
    let text = match person {
        ProviderPerson::Subject { subject } => subject,
        ProviderPerson::Claim { value } => value,
    };
    if text.is_empty() || text.len() > PERSON_MAX || text.chars().any(char::is_control) {
        let says = format!("who the operator is at the provider is a text of 1 to {PERSON_MAX} characters");
        return Err(ApiError::new(ErrorCode::Range, says));
    }
    Ok(())
}
