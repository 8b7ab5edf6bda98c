//! The cookie of a session.
//!
//! In: the headers of a request, or a new token. Out: the token's hash, or the header that sets the cookie. The prefix
//! `__Host-` makes a browser take it from this very host over HTTPS alone; `HttpOnly` keeps it from scripts, and
//! `SameSite=Strict` from requests that other sites cause.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use holdfast_protocol::secret::{Secret, TokenHash};
use holdfast_protocol::sign_in::SESSION_COOKIE;

use crate::api::problem::ApiError;

const FLAGS: &str = "Secure; HttpOnly; SameSite=Strict; Path=/";

/// Every token of a session starts with this, so that one can be found where it should not be.
const TOKEN_PREFIX: &str = "hfs_";

/// The text of a new token.
pub(super) fn token_text(random: &str) -> Secret {
    Secret::new(format!("{TOKEN_PREFIX}{random}"))
}

/// The session that a request names. One that names two is a forgery of a neighbour, and names none.
pub(in crate::api) fn session(headers: &HeaderMap) -> Option<TokenHash> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut named = lines.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == SESSION_COOKIE).then_some(value)
    });
    let token = named.next().filter(|token| token.starts_with(TOKEN_PREFIX) && token.len() < 128)?;
    named.next().is_none().then(|| TokenHash::of(token.as_bytes()))
}

/// The header that gives a browser its session.
pub(super) fn set(token: &Secret) -> Result<[(HeaderName, HeaderValue); 1], ApiError> {
    header_of(&format!("{SESSION_COOKIE}={}; {FLAGS}", token.expose()))
}

/// The header that takes it away.
pub(super) fn unset() -> Result<[(HeaderName, HeaderValue); 1], ApiError> {
    header_of(&format!("{SESSION_COOKIE}=; {FLAGS}; Max-Age=0"))
}

fn header_of(text: &str) -> Result<[(HeaderName, HeaderValue); 1], ApiError> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| ApiError::internal("a cookie that is no header"))?;
    // Debug prints of headers leave it out.
    value.set_sensitive(true);
    Ok([(header::SET_COOKIE, value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(lines: &[&str]) -> Option<TokenHash> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        session(&headers)
    }

    #[test]
    fn a_request_names_one_session_or_none() {
        let wanted = Some(TokenHash::of(b"hfs_x"));
        assert_eq!(named(&["__Host-holdfast-session=hfs_x"]), wanted);
        assert_eq!(named(&["theme=dark; __Host-holdfast-session=hfs_x; a=b"]), wanted);
        assert_eq!(named(&["theme=dark", "__Host-holdfast-session=hfs_x"]), wanted);
        for none in [
            &["holdfast-session=hfs_x"][..],
            &["__Host-holdfast-session=hfo_x"],
            &["__Host-holdfast-session="],
            &["__Host-holdfast-session=hfs_x; __Host-holdfast-session=hfs_y"],
            &["__Host-holdfast-session=hfs_x", "__Host-holdfast-session=hfs_x"],
            &["__host-holdfast-session=hfs_x"],
            &[],
        ] {
            assert_eq!(named(none), None, "{none:?}");
        }
    }

    #[test]
    fn the_cookie_has_all_its_flags_and_shows_nothing() {
        let [(name, value)] = set(&token_text("x")).unwrap();
        assert_eq!(name, "set-cookie");
        let wanted = "__Host-holdfast-session=hfs_x; Secure; HttpOnly; SameSite=Strict; Path=/";
        assert_eq!(value.to_str().unwrap(), wanted);
        assert!(!format!("{value:?}").contains("hfs_x"));
        let [(_, value)] = unset().unwrap();
        assert!(value.to_str().unwrap().ends_with("; Max-Age=0"));
    }
}
