//! The [`GuestScope`] of a request, from token and address.
//!
//! A missing token, an unknown token, an earlier one, and a token from another address than its guest's all get the
//! same answer, so a caller never learns which it was. A guest's address is the document's, or the one that Proxmox
//! gives it at this moment. When a token shows that two hold it, both are frozen (`model::token_reuse`). Tokens are
//! known by their SHA-256. A token has 256 random bits, so the time that the search for a hash takes reveals nothing
//! about it. The comparison itself is constant in time.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::calls::{self, CALLS, Call, ParamLocation};
use holdfast_protocol::secret::TokenHash;

use super::error::ApiError;
use super::{Local, Peer};
use crate::model::records::{GuestRecord, Place as GuestPlace};
use crate::model::token_reuse::{PresentedToken, Verdict, judge};
use crate::port::store::StoreError;
use crate::port::store::token_holder::Holder;

/// A token is 43 characters; much longer text is no token.
const TOKEN_CHARS_MAX: usize = 128;

/// Proof that a guest calls, and which.
#[derive(Debug)]
pub struct GuestScope {
    record: GuestRecord,
}

impl GuestScope {
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
        let holder = local.holders.of(token).await?.ok_or(ApiError::Unauthenticated)?;
        judged(local, &holder, peer.from.to_canonical()).await?;
        let record = holder.record;
        local.by_guest.take(record.uid, local.clock.monotonic()).map_err(ApiError::TooOften)?;
        if parts.uri.query().is_some() && !takes_query(parts) {
            return Err(ApiError::NoQuery);
        }
        Ok(Self { record })
    }
}

/// Lets the guest through, and no other caller that shows a token of it.
async fn judged(local: &Local, holder: &Holder, from: IpAddr) -> Result<(), ApiError> {
    let (uid, customer) = (holder.record.uid, &holder.record.customer);
    let (verdict, now) = verdict(local, holder, from).await?;
    match verdict {
        Verdict::Serve => Ok(()),
        Verdict::ServeAndNote => {
            match local.store.token_used(uid, holder.record.token_generation, from).await {
                // Token and address are the guest's own. A store that refuses writes must not block the guest's reads.
                Ok(()) | Err(StoreError::Refusing(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        Verdict::Frozen => Err(ApiError::Frozen),
        Verdict::Refuse => {
            tracing::warn!(guest = %uid, %customer, %from, "a guest's token was shown from elsewhere, or an earlier one");
            Err(ApiError::Unauthenticated)
        }
        Verdict::Twice => {
            let seen = seen(holder, from, now);
            tracing::error!(guest = %uid, %customer, seen, "two hold a guest's token: both are frozen until a person looks");
            local.store.freeze_holders(uid, seen, local.clock.now()).await?;
            Err(ApiError::Unauthenticated)
        }
    }
}

/// The document's address is compared first. A guest that calls from elsewhere may have been moved by hand, or the
/// document's move is pending. So Proxmox is asked for its current address before two are said to hold its token.
/// Returns that address too.
async fn verdict(
    local: &Local,
    holder: &Holder,
    from: IpAddr,
) -> Result<(Verdict, Option<IpAddr>), ApiError> {
    let own = local.address_of(holder.record.uid).await?;
    let by_document = judge(holder.shown, from, own, holder.holding);
    let GuestPlace::Made { vmid, .. } = &holder.record.place else { return Ok((by_document, None)) };
    match (by_document, holder.shown) {
        (Verdict::Serve | Verdict::ServeAndNote | Verdict::Frozen, _) | (_, PresentedToken::Former) => {
            Ok((by_document, None))
        }
        (Verdict::Refuse | Verdict::Twice, PresentedToken::Current) => match local.addresses.now(*vmid).await
        {
            Some(now) => Ok((judge(holder.shown, from, Some(now), holder.holding), Some(now))),
            // A guest is never frozen on incomplete evidence.
            None => Ok((Verdict::Refuse, None)),
        },
    }
}

/// What the audit says of two holders.
fn seen(holder: &Holder, from: IpAddr, now: Option<IpAddr>) -> String {
    let place = now.map_or_else(String::new, |now| format!("Proxmox has the guest at {now}; "));
    let generation = holder.record.token_generation;
    let used = holder.holding.used_from.map_or_else(|| "nowhere".to_owned(), |from| from.to_string());
    let shown = match holder.shown {
        PresentedToken::Current => "the same one",
        PresentedToken::Former => "an earlier one",
    };
    format!("{place}token {generation} is used from {used}, and {shown} was shown from {from}")
}

/// Whether the description of the call has a query. For all other calls a query is a mistake, and is refused as one.
fn takes_query(parts: &Parts) -> bool {
    let path = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let takes = |call: &&Call| call.parts.iter().any(|part| part.location == ParamLocation::Query);
    let read = CALLS.iter().filter(|call| call.method == calls::Method::Get).filter(takes);
    parts.method == Method::GET && read.map(|call| call.path).any(|taker| path == Some(taker))
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<TokenHash> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let text = all.next()?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let whole = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= TOKEN_CHARS_MAX;
    // Two tokens are none: which of them would count?
    (whole && all.next().is_none()).then(|| TokenHash::of(token.as_bytes()))
}

/// Every call of an address counts, whether it has a token or not.
pub(super) fn throttle(local: &Local, request: &Request) -> Result<(), ApiError> {
    let peer = request.extensions().get::<Peer>().ok_or(ApiError::Unauthenticated)?;
    local.by_address.take(peer.from, local.clock.monotonic()).map_err(ApiError::TooOften)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(lines: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, HeaderValue::from_str(line).unwrap());
        }
        bearer(&headers).is_some()
    }

    #[test]
    fn one_token_of_the_right_length_and_scheme_is_read() {
        let longest = format!("Bearer {}", "a".repeat(TOKEN_CHARS_MAX));
        for good in ["Bearer abc", "bearer abc", longest.as_str()] {
            assert!(of(&[good]), "{good}");
        }
        let too_long = format!("Bearer {}", "a".repeat(TOKEN_CHARS_MAX + 1));
        for bad in ["Bearer ", "Basic abc", "Bearerabc", "Basic ", too_long.as_str()] {
            assert!(!of(&[bad]), "{bad}");
        }
        assert!(!of(&["Bearer abc", "Bearer abc"]), "two are none");
        assert!(!of(&[]));
    }
}
