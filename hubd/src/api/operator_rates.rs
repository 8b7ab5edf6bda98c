//! How often operators may call, by token or session and by address.
//!
//! In: the address and the token of a call, before anything is looked up. Out: leave, or the seconds to wait. A token that was
//! refused, or never seen here, takes from a small bucket of its address: who tries tokens is slowed down, and an operator
//! behind the same address, whose token was good before, is not. Deliberately absent: whether a token is good.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::secret::TokenHash;
use net::admission::Origin;
use net::rate::{Rates, TooOften};
use net::server::Refused;

use super::sign_in::session_token;
use super::{Hub, since_epoch};
use crate::serve::AdmittedConnection;

/// How many calls of operators are answered in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorCallLimits {
    /// Of one token.
    pub calls_per_token: u32,
    /// From one address.
    pub calls_per_address: u32,
    /// From one address, with tokens that were not good here before.
    pub attempts_per_address: u32,
}

impl OperatorCallLimits {
    /// A command that reads each of a thousand hosts three times; several operators behind one address.
    pub const USUAL: Self =
        Self { calls_per_token: 3_000, calls_per_address: 9_000, attempts_per_address: 30 };
}

/// Tokens that are remembered as good: more than a hub has operators.
const GOOD_MAX: usize = 4_096;

type TokenKey = [u8; 32];

/// Calls of operators in the last minute.
pub(super) struct OperatorRates {
    tokens: Rates<TokenKey>,
    addresses: Rates<Origin>,
    attempts: Rates<Origin>,
    good: Mutex<HashSet<TokenKey>>,
}

/// Why a call is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TooMany {
    OfToken(TooOften),
    OfAddress(TooOften),
    Attempts(TooOften),
}

impl TooMany {
    fn refusal(self) -> Refused {
        let (says, often) = match self {
            Self::OfToken(often) => ("this token was used as often as one may be in a minute", often),
            Self::OfAddress(often) => ("this address called as often as one may in a minute", often),
            Self::Attempts(often) => ("too many tokens that are not good came from this address", often),
        };
        let says = format!("{says}, and nothing was looked up: ask again in {} seconds", often.retry_after_s);
        let problem = ErrorBody::new(ErrorCode::RateLimited, says);
        Refused { retry_after_s: Some(often.retry_after_s), ..Refused::new(problem) }
    }
}

impl OperatorRates {
    pub(super) fn new(limits: OperatorCallLimits) -> Self {
        Self {
            tokens: Rates::per_minute(limits.calls_per_token),
            addresses: Rates::per_minute(limits.calls_per_address),
            attempts: Rates::per_minute(limits.attempts_per_address),
            good: Mutex::default(),
        }
    }

    fn admit(&self, origin: Origin, token: Option<TokenKey>, now: Duration) -> Result<(), TooMany> {
        self.addresses.take(origin, now).map_err(TooMany::OfAddress)?;
        match token.filter(|token| self.is_good(token)) {
            Some(token) => self.tokens.take(token, now).map_err(TooMany::OfToken),
            None => self.attempts.take(origin, now).map_err(TooMany::Attempts),
        }
    }

    fn is_good(&self, token: &TokenKey) -> bool {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).contains(token)
    }

    /// Notes what became of a call. A page sends who is not signed in to the sign-in; where else an answer leads, as after
    /// each form, says nothing of the token.
    fn answered(&self, token: Option<TokenKey>, status: StatusCode, location: Option<&HeaderValue>) {
        let Some(token) = token else { return };
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let to_sign_in = location.is_some_and(|location| location == "/sign-in");
        if status == StatusCode::UNAUTHORIZED || to_sign_in {
            good.remove(&token);
        } else if status.is_success() && !good.contains(&token) {
            // Those that call again are soon known again.
            if good.len() >= GOOD_MAX {
                good.clear();
            }
            good.insert(token);
        }
    }
}

/// The token of a call, or of its session where it has none.
fn token(headers: &HeaderMap) -> Option<TokenKey> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return session_token(headers).map(|token| *token.as_bytes());
    };
    let (_, token) = value.to_str().ok()?.split_once(' ')?;
    Some(*TokenHash::of(token.trim().as_bytes()).as_bytes())
}

/// Lets a call through, or refuses it before it takes anything of the hub.
pub(super) async fn limit(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    // The listener put it there.
    let Some(origin) = request.extensions().get::<AdmittedConnection>().map(AdmittedConnection::origin)
    else {
        return next.run(request).await;
    };
    let token = token(request.headers());
    let rates = &hub.rates.operators;
    if let Err(many) = rates.admit(origin, token, since_epoch(hub.clock.now())) {
        return many.refusal().into_response();
    }
    let response = next.run(request).await;
    rates.answered(token, response.status(), response.headers().get(header::LOCATION));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_000);

    const fn limits(token: u32, address: u32, attempts: u32) -> OperatorCallLimits {
        OperatorCallLimits {
            calls_per_token: token,
            calls_per_address: address,
            attempts_per_address: attempts,
        }
    }

    fn rates(token: u32, address: u32, attempts: u32) -> OperatorRates {
        OperatorRates::new(limits(token, address, attempts))
    }

    fn origin(last: u8) -> Origin {
        Origin::from(std::net::IpAddr::from([192, 0, 2, last]))
    }

    fn known(rates: &OperatorRates, token: TokenKey) {
        rates.admit(origin(1), Some(token), NOW).unwrap();
        rates.answered(Some(token), StatusCode::OK, None);
    }

    #[test]
    fn who_tries_tokens_is_slowed_down_and_a_good_token_behind_the_same_address_is_not() {
        let rates = rates(100, 1_000, 5);
        known(&rates, [1; 32]);
        let attempts = (2..20).filter(|n| {
            let admitted = rates.admit(origin(1), Some([*n; 32]), NOW).is_ok();
            rates.answered(Some([*n; 32]), StatusCode::UNAUTHORIZED, None);
            admitted
        });
        assert_eq!(attempts.count(), 4);
        let refused = rates.admit(origin(1), None, NOW).unwrap_err();
        assert!(matches!(refused, TooMany::Attempts(_)), "{refused:?}");
        assert!(refused.refusal().retry_after_s.is_some_and(|wait| wait > 5));
        rates.admit(origin(1), Some([1; 32]), NOW).unwrap();
        rates.admit(origin(2), Some([9; 32]), NOW).unwrap();
        // A token that was revoked is not known as good any more.
        rates.answered(Some([1; 32]), StatusCode::UNAUTHORIZED, None);
        assert!(rates.admit(origin(1), Some([1; 32]), NOW).is_err());
    }

    #[test]
    fn a_token_and_an_address_have_their_own_bounds() {
        let rates = rates(10, 25, 5);
        for token in [1, 2] {
            known(&rates, [token; 32]);
        }
        let calls = |token: u8, most: usize| {
            (0..most).filter(|_| rates.admit(origin(1), Some([token; 32]), NOW).is_ok()).count()
        };
        assert_eq!(calls(1, 12), 10);
        assert_eq!(calls(2, 20), 10, "another token of the same address");
        assert!(matches!(rates.admit(origin(1), Some([2; 32]), NOW), Err(TooMany::OfAddress(_))));
        assert!(rates.admit(origin(1), Some([2; 32]), NOW + Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn a_form_that_leads_on_leaves_its_session_known_and_the_way_to_the_sign_in_does_not() {
        let rates = rates(100, 1_000, 3);
        known(&rates, [1; 32]);
        let leads =
            |to| rates.answered(Some([1; 32]), StatusCode::SEE_OTHER, Some(&HeaderValue::from_static(to)));
        for _ in 0..10 {
            rates.admit(origin(1), Some([1; 32]), NOW).unwrap();
            leads("/hosts/box7");
        }
        leads("/sign-in");
        let admitted = (0..10).filter(|_| rates.admit(origin(1), Some([1; 32]), NOW).is_ok()).count();
        assert_eq!(admitted, 2, "what the address has left for tokens that are not known");
    }

    #[test]
    fn the_number_of_good_tokens_is_bounded() {
        let rates = rates(10, 10, 10);
        for number in 0..=u32::try_from(GOOD_MAX).unwrap() {
            let mut token = [0; 32];
            token[..4].copy_from_slice(&number.to_be_bytes());
            rates.answered(Some(token), StatusCode::OK, None);
        }
        assert_eq!(rates.good.lock().unwrap().len(), 1);
    }
}
