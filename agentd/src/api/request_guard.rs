//! The guard on requests: path, headers, body and `Host`.
//!
//! In: a request as the HTTP library parsed it. Out: the same request, or a refusal before the call is looked up in the
//! table. So no handler ever sees a call in a second spelling. A web page that reaches us under a name of its own (DNS
//! rebinding) is refused. Deliberately absent: who the caller is.

use axum::extract::{MatchedPath, Request};
use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, Method};

use super::Peer;
use super::error::ApiError;

/// The longest path of the table, with an id or a snapshot's name in it, is under a hundred bytes.
const PATH_BYTES_MAX: usize = 256;

/// Judges what is known of a request without its body.
pub(super) fn judge(request: &Request) -> Result<(), ApiError> {
    let peer = request.extensions().get::<Peer>().ok_or(ApiError::Unauthenticated)?;
    let uri = request.uri();
    // An absolute form is meant for a proxy, and its host would take precedence over the header's.
    if uri.authority().is_some() || !is_called(request.headers(), &peer.to) {
        return Err(ApiError::Misdirected);
    }
    if !is_plain(uri.path()) {
        return Err(ApiError::NoSuchCall);
    }
    // The router would answer it by calling what GET calls.
    if request.method() == Method::HEAD {
        return Err(if is_known(request) { ApiError::OtherMethod } else { ApiError::NoSuchCall });
    }
    // Two readers may disagree on the end of a body when there is a second way to state it. Our bodies are short and
    // their length is known.
    if request.headers().contains_key(TRANSFER_ENCODING) {
        return Err(ApiError::Part {
            what: "the header transfer-encoding",
            rule: "a body comes with its content-length",
        });
    }
    Ok(())
}

fn is_known(request: &Request) -> bool {
    request.extensions().get::<MatchedPath>().is_some()
}

/// Whether the one `Host` header is the address that was called, as it is written in every bootstrap.json.
fn is_called(headers: &HeaderMap, to: &std::net::SocketAddr) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let one = hosts.next().filter(|_| hosts.next().is_none());
    one.is_some_and(|host| host.as_bytes() == to.to_string().as_bytes())
}

fn is_plain(path: &str) -> bool {
    let words = path.strip_prefix('/').filter(|_| path.len() <= PATH_BYTES_MAX);
    words.is_some_and(|words| words.split('/').all(is_word))
}

fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    word.bytes().all(plain) && word.bytes().any(|byte| byte != b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for good in ["/v1/self", "/healthz", "/v1/snapshots/before-1.2_x", "/v1/operations/..x"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in [
            "",
            "*",
            "/",
            "//",
            "v1/self",
            "/v1//self",
            "//v1/self",
            "/v1/self/",
            "/v1/./self",
            "/v1/x/../self",
            "/v1%2fself",
            "/v1/self%00",
            "/v1/self;x",
            "/v1\\self",
            "/v1/sélf",
            "/v1/self ",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
        assert!(!is_plain(&format!("/v1/{}", "a".repeat(PATH_BYTES_MAX))));
    }

    #[test]
    fn a_host_is_the_address_that_was_called_and_no_name() {
        let to = "10.66.0.1:8443".parse().unwrap();
        let with = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().unwrap());
            }
            is_called(&headers, &to)
        };
        assert!(with(&["10.66.0.1:8443"]));
        for bad in [
            &[][..],
            &[""],
            &["10.66.0.1"],
            &["10.66.0.1:08443"],
            &["10.66.0.1:443"],
            &["10.66.0.2:8443"],
            &["evil.example:8443"],
            &["localhost"],
            &["10.66.0.1:8443", "10.66.0.1:8443"],
            &["user@10.66.0.1:8443"],
        ] {
            assert!(!with(bad), "{bad:?}");
        }
    }

    fn request(method: Method, uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri(uri).header("host", "10.66.0.1:8443");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(axum::body::Body::empty()).unwrap();
        let peer = Peer { from: [10, 66, 0, 91].into(), to: "10.66.0.1:8443".parse().unwrap() };
        request.extensions_mut().insert(peer);
        request
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let get = |uri: &str| request(Method::GET, uri, &[]);
        assert!(judge(&get("/v1/self")).is_ok());
        assert!(judge(&get(&format!("/{}", "a".repeat(PATH_BYTES_MAX - 1)))).is_ok());
        let mut unknown = get("/v1/self");
        unknown.extensions_mut().remove::<Peer>();
        assert!(matches!(judge(&unknown), Err(ApiError::Unauthenticated)));
        let absolute = get("https://10.66.0.1:8443/v1/self");
        assert!(matches!(judge(&absolute), Err(ApiError::Misdirected)));
        let mut named = get("/v1/self");
        named.headers_mut().insert(HOST, "evil.example".parse().unwrap());
        assert!(matches!(judge(&named), Err(ApiError::Misdirected)));
        assert!(matches!(judge(&get("/v1//self")), Err(ApiError::NoSuchCall)));
        assert!(matches!(judge(&request(Method::HEAD, "/v1/self", &[])), Err(ApiError::NoSuchCall)));
        let chunked = request(Method::POST, "/v1/hello", &[("transfer-encoding", "chunked")]);
        assert!(matches!(judge(&chunked), Err(ApiError::Part { .. })));
    }
}
