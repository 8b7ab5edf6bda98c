//! A sign-in that is under way at the provider.
//!
//! In: random bytes. Out: what the browser takes along, and a sealed cookie that knows it again. No row is kept: a thousand
//! sign-ins that nobody finishes cost nothing, and any hub of the database finishes one.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::super::hasher::fill;
use crate::api::problem::ApiError;
use crate::authority::{Authority, NONCE_BYTES};

const COOKIE: &str = "__Host-holdfast-oidc";

/// The provider's own page sends the browser back, so `Strict` would keep the cookie away.
const FLAGS: &str = "Secure; HttpOnly; SameSite=Lax; Path=/";

const PURPOSE: &str = "sign-in by a provider";

/// Time for a person to sign in at the provider.
const LIFE: SignedDuration = SignedDuration::from_mins(10);

/// A cookie of ours is shorter.
const COOKIE_MAX: usize = 2048;

/// What one sign-in is known by.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attempt {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in the token.
    pub nonce: String,
    /// Proves that who exchanges the code began the sign-in (PKCE).
    pub verifier: String,
    until: Timestamp,
}

impl Attempt {
    pub(super) fn begin(now: Timestamp) -> Result<Self, ApiError> {
        let until = now.checked_add(LIFE);
        let until = until.map_err(|_| ApiError::internal("the clock is beyond what can be written"))?;
        Ok(Self { state: random()?, nonce: random()?, verifier: random()?, until })
    }

    /// The challenge to the verifier (S256).
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()))
    }

    /// Whether the browser brought this state back in time.
    pub(super) fn is_answered_by(&self, state: &str, now: Timestamp) -> bool {
        let is_state: bool = self.state.as_bytes().ct_eq(state.as_bytes()).into();
        is_state && now < self.until
    }

    /// The header that gives it to the browser.
    pub(super) fn cookie(&self, authority: &Authority) -> Result<(HeaderName, HeaderValue), ApiError> {
        let text = serde_json::to_string(self).map(Zeroizing::new);
        let text = text.map_err(|error| ApiError::internal(format!("a sign-in is no JSON: {error}")))?;
        let mut nonce = [0; NONCE_BYTES];
        fill(&mut nonce)?;
        let sealed = authority.seal_text(PURPOSE, &text, nonce);
        let sealed = sealed.map_err(|error| ApiError::internal(error.to_string()))?;
        set(&format!("{COOKIE}={sealed}; {FLAGS}; Max-Age={}", LIFE.as_secs()))
    }

    /// What a request brings; none where it was damaged or is of another hub.
    pub(super) fn of(headers: &HeaderMap, authority: &Authority) -> Option<Self> {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut named = lines.flat_map(|line| line.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE).then_some(value)
        });
        let sealed = named.next().filter(|sealed| sealed.len() <= COOKIE_MAX)?;
        if named.next().is_some() {
            return None;
        }
        serde_json::from_str(&authority.open_text(PURPOSE, sealed)?).ok()
    }
}

/// The header that takes it away: an attempt is answered once.
pub(super) fn ended() -> Result<(HeaderName, HeaderValue), ApiError> {
    set(&format!("{COOKIE}=; {FLAGS}; Max-Age=0"))
}

fn set(text: &str) -> Result<(HeaderName, HeaderValue), ApiError> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| ApiError::internal("a cookie that is no header"))?;
    value.set_sensitive(true);
    Ok((header::SET_COOKIE, value))
}

fn random() -> Result<String, ApiError> {
    let mut bytes = Zeroizing::new([0; 32]);
    fill(bytes.as_mut_slice())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Fresh;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn a_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let attempt = Attempt { verifier, ..Attempt::begin(at(0)).unwrap() };
        assert_eq!(attempt.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_cookie_brings_its_attempt_back_to_its_own_hub() {
        let folder = |path: &std::path::Path| Authority::open_or_make(path, Fresh::Yes, at(0)).unwrap();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (hub, other) = (folder(one.path()), folder(two.path()));
        let attempt = Attempt::begin(at(0)).unwrap();
        let (_, value) = attempt.cookie(&hub).unwrap();
        let text = value.to_str().unwrap();
        assert!(text.ends_with("; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age=600"), "{text}");
        assert!(!text.contains(&attempt.state) && !text.contains(&attempt.verifier));
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, text.split(';').next().unwrap().parse().unwrap());
        assert!(Attempt::of(&headers, &hub).unwrap() == attempt);
        assert!(Attempt::of(&headers, &other).is_none());
        headers.append(header::COOKIE, text.split(';').next().unwrap().parse().unwrap());
        assert!(Attempt::of(&headers, &hub).is_none(), "one that names two is a forgery");
        assert!(attempt.is_answered_by(&attempt.state, at(599)));
        assert!(!attempt.is_answered_by(&attempt.state, at(600)) && !attempt.is_answered_by("", at(0)));
        assert!(!attempt.is_answered_by(&Attempt::begin(at(0)).unwrap().state, at(0)));
    }
}
