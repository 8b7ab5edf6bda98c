//! Who asks: a token and the address it comes from give a [`GuestScope`], and nothing in the request can name another.
//!
//! No token, an unknown token, and a token from another address than its guest's are one and the same answer, so nobody
//! learns which it was. Tokens are known by their SHA-256; a token has 256 random bits, so how long the search for a hash
//! takes tells nothing about it, and the comparison itself is constant in time.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::secret::TokenHash;

use super::error::ApiError;
use super::{Local, Peer};
use crate::model::record::{Access, GuestRecord};

/// A token is 43 characters; what is far longer is none.
const TOKEN_CHARS_MAX: usize = 128;

/// Proof that a guest asks, and which.
#[derive(Debug)]
pub struct GuestScope {
    record: GuestRecord,
}

impl GuestScope {
    /// The guest.
    #[must_use]
    pub const fn uid(&self) -> GuestUid {
        self.record.uid
    }

    /// What we wrote down about it.
    #[must_use]
    pub const fn record(&self) -> &GuestRecord {
        &self.record
    }
}

impl FromRequestParts<Arc<Local>> for GuestScope {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, local: &Arc<Local>) -> Result<Self, ApiError> {
        let peer = *parts.extensions.get::<Peer>().ok_or(ApiError::Unauthenticated)?;
        let token = bearer(&parts.headers).ok_or(ApiError::Unauthenticated)?;
        let record = local.holders.of(token).await?.ok_or(ApiError::Unauthenticated)?;
        if local.address_of(record.uid).await? != Some(peer.from.to_canonical()) {
            tracing::warn!(guest = %record.uid, from = %peer.from, "a guest's token was shown from another address");
            return Err(ApiError::Unauthenticated);
        }
        if record.access == Access::Frozen {
            return Err(ApiError::Frozen);
        }
        local.by_guest.take(record.uid, local.clock.monotonic()).map_err(ApiError::TooOften)?;
        Ok(Self { record })
    }
}

fn bearer(headers: &HeaderMap) -> Option<TokenHash> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let text = all.next()?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let whole = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= TOKEN_CHARS_MAX;
    // Two tokens are none: which of them would count?
    (whole && all.next().is_none()).then(|| TokenHash::of(token.as_bytes()))
}

/// Every call of an address counts, whether it has a token or not.
pub async fn throttle(
    State(local): State<Arc<Local>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let peer = request.extensions().get::<Peer>().ok_or(ApiError::Unauthenticated)?;
    local.by_address.take(peer.from, local.clock.monotonic()).map_err(ApiError::TooOften)?;
    Ok(next.run(request).await)
}
