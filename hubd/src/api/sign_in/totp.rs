//! One's own authenticator, in two steps.
//!
//! The first gives a secret, which is kept sealed; the second proves that the authenticator has it, and gives recovery
//! codes. One in use stays until then.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::sign_in::{RecoveryCodes, TotpConfirmation, TotpOffer, TotpRequest};
use net::server::{Answer, Ids};
use zeroize::Zeroizing;

use super::caller::Caller;
use super::hasher::fill;
use super::login::SIGN_IN_BODY_MAX;
use super::passwords::check_own;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::authority::NONCE_BYTES;
use crate::domain::sign_in::recovery_code::{self, CODE_BYTES, CODES};
use crate::domain::sign_in::totp::{SECRET_BYTES, TotpSecret};
use crate::store::{ConfirmedAuthenticator, SignInChange, SignInError};

pub(in crate::api) async fn begin(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    Visitor(from): Visitor,
    ids: Ids,
    body: Body,
) -> Result<Answer<TotpOffer>, ApiError> {
    let request: TotpRequest = body::parse_secret("the request", body, SIGN_IN_BODY_MAX).await?;
    check_own(&hub, &caller, (from, ids.correlation), request.password).await?;
    let name = &caller.record.owner.name;
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    fill(bytes.as_mut_slice())?;
    let secret = TotpSecret::new(*bytes);
    let mut nonce = [0; NONCE_BYTES];
    fill(&mut nonce)?;
    let sealed = hub.authority.seal_totp(name, &secret, nonce);
    let sealed = sealed.map_err(|error| ApiError::internal(error.to_string()))?;
    hub.store.begin_authenticator(name.clone(), sealed).await?;
    let hub_name = hub.public_url.trim_start_matches("https://");
    Ok(Answer(StatusCode::OK, TotpOffer { uri: secret.uri(hub_name, name), secret: secret.base32() }))
}

pub(in crate::api) async fn confirm(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    ids: Ids,
    body: Body,
) -> Result<Answer<RecoveryCodes>, ApiError> {
    let request: TotpConfirmation = body::parse_secret("the request", body, SIGN_IN_BODY_MAX).await?;
    let (name, now) = (&caller.record.owner.name, hub.clock.now());
    let pending = hub.store.credentials(name.clone()).await?.and_then(|credentials| credentials.pending);
    let sealed = pending.ok_or(SignInError::NothingPending)?;
    let secret = hub.authority.open_totp(name, &sealed).ok_or(SignInError::NothingPending)?;
    let step = secret.step_of(request.code.expose(), now, None).ok_or_else(|| {
        ApiError::new(
            ErrorCode::Range,
            "this is not the code that the authenticator should show now, and it is not in use yet: are the clocks of both right?",
        )
    })?;
    let (mut codes, mut hashes) = (Vec::with_capacity(CODES), Vec::with_capacity(CODES));
    for _ in 0..CODES {
        let mut bytes = Zeroizing::new([0; CODE_BYTES]);
        fill(bytes.as_mut_slice())?;
        let code = recovery_code::shown(&bytes);
        let normal = recovery_code::normal(code.expose())
            .ok_or_else(|| ApiError::internal("a recovery code that cannot be read"))?;
        hashes.push(hub.authority.recovery_code(name, &normal));
        codes.push(code);
    }
    let by = SignInChange {
        operator: name.clone(),
        actor: Some(name.clone()),
        at: now,
        correlation: ids.correlation,
    };
    hub.store.confirm_authenticator(ConfirmedAuthenticator { by, sealed, step, codes: hashes }).await?;
    Ok(Answer(StatusCode::OK, RecoveryCodes { codes }))
}
