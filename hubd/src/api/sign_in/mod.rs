//! Sign-in: sessions, passwords, authenticators, links, a provider.
//!
//! In: requests of browsers. Out: sessions and what belongs to them. A session's token is made here, at sign-in, and never
//! taken from a request. Deliberately absent: tokens of machines.

mod caller;
mod cookie;
mod hasher;
mod links;
mod login;
pub(in crate::api) mod oidc;
mod passwords;
mod refusals;
mod sessions;
mod throttle;
mod totp;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};

pub(super) use caller::{Caller, caller_of_cookie, check_form, operator_of_session};
pub(super) use cookie::session as session_token;
pub(super) use links::{make as make_sign_in_link, redeem};
pub(super) use login::{login, logout};
pub(super) use passwords::set as set_password;
pub use refusals::Refusals;
pub(super) use totp::{begin as begin_totp, confirm as confirm_totp};

use self::hasher::Hasher;
pub use self::oidc::{Provider, ProviderClientError};
use self::throttle::Throttle;
use super::Hub;
use crate::domain::sign_in::SignInRules;

/// What sign-ins share.
#[derive(Default)]
pub struct SignIn {
    rules: SignInRules,
    hasher: Hasher,
    throttle: Throttle,
    refusals: Arc<Refusals>,
    /// Who else vouches for people.
    provider: Option<Provider>,
}

impl SignIn {
    #[must_use]
    pub fn new(rules: SignInRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// With a provider that vouches for people, too.
    #[must_use]
    pub fn with_provider(self, provider: Option<Provider>) -> Self {
        Self { provider, ..self }
    }

    /// What the provider is called.
    pub(super) fn provider_name(&self) -> Option<&str> {
        self.provider.as_ref().map(|provider| provider.settings.name.as_str())
    }

    /// Refused sign-ins that are still to be written down.
    #[must_use]
    pub fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }
}

/// Calls of who has no session yet.
pub(super) fn entrances() -> Router<Arc<Hub>> {
    Router::new().route("/v1/login", post(login::login)).route("/v1/sign-in-link", post(links::redeem))
}

/// Calls of who has one, or a token.
pub(super) fn routes() -> Router<Arc<Hub>> {
    Router::new()
        .route("/v1/logout", post(login::logout))
        .route("/v1/session", get(sessions::own))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{id}", delete(sessions::end))
        .route("/v1/password", post(passwords::set))
        .route("/v1/totp", post(totp::begin))
        .route("/v1/totp/confirm", post(totp::confirm))
        .route("/v1/operators/{name}/sign-in-link", post(links::make))
        .merge(oidc::routes())
}
