//! Sign-in by a provider of identities.
//!
//! | step | what happens |
//! | --- | --- |
//! | [`begin`] | the browser gets a sealed cookie and is sent to the provider |
//! | [`finish`] | it comes back with a code, which is exchanged for who signed in; the store finds the operator |
//!
//! In: requests of browsers. Out: sessions like those by password. Deliberately absent: a second factor, which is the
//! provider's to ask for.

mod attempt;
mod fetch;
mod links;
mod provider;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::sign_in::SessionKind;
use net::admission::Origin;
use net::server::Answer;
use serde::Deserialize;
use url::Url;

pub use fetch::ProviderClientError;
pub(super) use links::routes;
pub use provider::Provider;

use self::attempt::Attempt;
use self::provider::{CODE_MAX, ProviderError};
use super::caller::{check_site, opened};
use super::cookie;
use super::login::{new_session, refused};
use super::refusals::Reason;
use crate::api::Hub;
use crate::api::problem::ApiError;
use crate::domain::oidc::groups::by_groups;
use crate::store::{NewOidcSignIn, ProviderIdentity, WriteError};

/// Where the provider sends the browser back to.
pub(in crate::api) const CALLBACK: &str = "/sign-in/oidc/callback";

/// What a browser brings back.
#[derive(Debug, Deserialize)]
pub(in crate::api) struct CallbackQuery {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// Who asks, and as part of what.
type Visit = (Origin, CorrelationId);

fn none() -> ApiError {
    ApiError::not_found("provider of identities in the hub's settings")
}

/// Where to go, with the cookie that knows the browser again.
pub(in crate::api) async fn begin(
    hub: &Hub,
    (from, correlation): Visit,
    headers: &HeaderMap,
) -> Result<(Url, (HeaderName, HeaderValue)), ApiError> {
    let provider = hub.sign_in.provider.as_ref().ok_or_else(none)?;
    check_site(headers)?;
    let now = hub.clock.now();
    let admitted = match hub.sign_in.throttle.admit_address(from, now) {
        Ok(admitted) => admitted,
        Err(error) => return Err(refused(hub, (from, correlation), &Reason::TooOften, error).await),
    };
    let attempt = Attempt::begin(now)?;
    let entrance = async {
        let _turn = provider.turn()?;
        provider.entrance(&attempt, &redirect(hub), now).await
    };
    let url = entrance.await.map_err(|error| shown(provider, &error))?;
    hub.sign_in.throttle.succeeded(admitted);
    Ok((url, attempt.cookie(&hub.authority)?))
}

fn redirect(hub: &Hub) -> String {
    format!("{}{CALLBACK}", hub.public_url)
}

/// Opens a session for who comes back from the provider.
pub(in crate::api) async fn finish(
    State(hub): State<Arc<Hub>>,
    (from, correlation): Visit,
    headers: HeaderMap,
    returned: CallbackQuery,
) -> Result<Response, ApiError> {
    let provider = hub.sign_in.provider.as_ref().ok_or_else(none)?;
    let now = hub.clock.now();
    let admitted = match hub.sign_in.throttle.admit_address(from, now) {
        Ok(admitted) => admitted,
        Err(error) => return Err(refused(&hub, (from, correlation), &Reason::TooOften, error).await),
    };
    let refuse = async |error: ApiError, why: String| {
        let reason = Reason::Provider { name: provider.settings.name.clone(), why };
        refused(&hub, (from, correlation), &reason, error).await
    };
    let state = returned.state.as_deref().unwrap_or_default();
    let begun = Attempt::of(&headers, &hub.authority).filter(|begun| begun.is_answered_by(state, now));
    let Some(attempt) = begun else {
        let says = "this sign-in was not begun in this browser, or has ended: begin again";
        return Err(refuse(ApiError::new(ErrorCode::Unauthenticated, says), says.to_owned()).await);
    };
    let exchanged = async {
        let _turn = provider.turn()?;
        if !provider.is_own_answer(returned.iss.as_deref(), now).await? {
            return Err(ProviderError::Answer);
        }
        match returned.code.as_deref().filter(|code| returned.error.is_none() && code.len() <= CODE_MAX) {
            Some(code) => provider.exchange(code, &attempt, &redirect(&hub), now).await.map(Some),
            None => Ok(None),
        }
    };
    let claims = match exchanged.await {
        Ok(Some(claims)) => claims,
        Ok(None) => {
            let says = format!("{} did not sign you in: begin again", provider.settings.name);
            return Err(refuse(ApiError::new(ErrorCode::Unauthenticated, says.clone()), says).await);
        }
        Err(error) => return Err(refuse(shown(provider, &error), error.to_string()).await),
    };
    let (settings, (token, session)) =
        (&provider.settings, new_session(&hub, from, &headers, SessionKind::Full)?);
    let identity = ProviderIdentity {
        issuer: settings.issuer.clone(),
        subject: claims.subject.clone(),
        person: claims.person(settings),
    };
    let (groups, name) = (by_groups(settings, &claims), settings.name.clone());
    let new = NewOidcSignIn { identity, groups, provider: name, session, correlation };
    let record = match hub.store.sign_in_by_provider(new).await {
        Ok(record) => record,
        Err(WriteError::Refused(refusal)) => {
            let why = refusal.to_string();
            return Err(refuse(refusal.into(), why).await);
        }
        Err(error @ (WriteError::KeyReused | WriteError::Store(_))) => return Err(error.into()),
    };
    hub.sign_in.throttle.succeeded(admitted);
    let answer = Answer(StatusCode::OK, opened(&hub, record, token.hash()));
    Ok((cookie::set(&token)?, answer).into_response())
}

/// The header that ends what [`begin`] began, whatever came of it.
pub(in crate::api) fn ended() -> Result<(HeaderName, HeaderValue), ApiError> {
    attempt::ended()
}

/// Whose fault it is, and what to do.
fn shown(provider: &Provider, error: &ProviderError) -> ApiError {
    let (name, code) = (
        &provider.settings.name,
        match error {
            ProviderError::Full => ErrorCode::Busy,
            ProviderError::Fetch(_)
            | ProviderError::Metadata(_)
            | ProviderError::Keys(_)
            | ProviderError::Rests => ErrorCode::Unavailable,
            ProviderError::Code(_)
            | ProviderError::Answer
            | ProviderError::Signature(_)
            | ProviderError::Claims(_) => ErrorCode::Unauthenticated,
        },
    );
    ApiError::new(code, format!("nobody was signed in by {name}: {error}"))
}
