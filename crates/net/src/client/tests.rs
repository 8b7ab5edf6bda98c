//! Tests of URLs, paths, envelopes and tokens.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::pin::{Pin, PinKind, PinSet};

use super::*;
use crate::tls::Trust;

fn client(url: &str) -> Result<Client, SetupError> {
    let tls = crate::tls::client(&Trust::Pins(PinSet::from(Pin::of(PinKind::Leaf, b"x"))))?;
    let settings = Settings {
        user_agent: "test",
        answer_bytes_max: 1024,
        within: Duration::from_secs(1),
        source_address: None,
    };
    Client::new(url, tls, settings)
}

fn answer(status: u16, data: &str, error: &str) -> Answer {
    let body = format!(
        r#"{{"schema_version":"holdfast.envelope/v1","request_id":"018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55",
        "correlation_id":"018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55","data":{data},"error":{error},
        "metadata":{{"timestamp":"2026-11-21T12:00:00Z"}}}}"#
    );
    Answer::new(status, body.into_bytes())
}

const REFUSAL: &str = r#"{"code":"BUSY","message":"later"}"#;

#[test]
fn only_https_urls_of_a_host_are_called() {
    for good in ["https://10.66.0.1:8443", "https://hub.example/below", "https://[::1]:8440/"] {
        assert!(client(good).is_ok(), "{good}");
    }
    for bad in [
        "http://10.66.0.1",
        "10.66.0.1:8443",
        "https://u:p@h",
        "https://h/?q",
        "https://h/#f",
        "",
        "file:///x",
    ] {
        assert!(matches!(client(bad), Err(SetupError::Url)), "{bad:?}");
    }
}

#[test]
fn paths_and_segments_stay_below_the_url() {
    let client = client("https://hub.example/below/").unwrap();
    let url = |call: Call<'_>| call.request.build().unwrap().url().to_string();
    assert_eq!(url(client.call(Method::GET, "/v1/x?wait=5s")), "https://hub.example/below/v1/x?wait=5s");
    let escaped = client.call_segments(Method::GET, &["v1", "../a/b"], &[("c", "d e")]);
    assert_eq!(url(escaped), "https://hub.example/below/v1/..%2Fa%2Fb?c=d+e");
}

#[test]
fn an_envelope_says_one_thing() {
    assert_eq!(answer(200, "7", "null").open::<u8>(1024).unwrap(), 7);
    let refused = answer(503, "null", REFUSAL).open::<u8>(1024);
    assert!(
        matches!(refused, Err(CallError::Refused { status: 503, problem, .. }) if problem.code == ErrorCode::Busy)
    );
    for (status, data, error) in [(200, "null", "null"), (200, "7", REFUSAL), (500, "7", "null")] {
        let read = answer(status, data, error).open::<u8>(1024);
        assert!(matches!(read, Err(CallError::Contradiction { .. })), "{status} {data} {error}: {read:?}");
    }
    assert!(matches!(answer(302, "7", "null").open::<u8>(1024), Err(CallError::Redirect { status: 302 })));
    assert!(matches!(answer(200, "7", "null").open::<u8>(16), Err(CallError::TooLong { max: 16 })));
    assert!(matches!(answer(200, "\"x\"", "null").open::<u8>(1024), Err(CallError::Answer { .. })));
}

#[test]
fn tokens_that_would_split_the_header_are_refused() {
    assert!(bearer(&Secret::new("abc\r\nx-guest: other".to_owned())).is_none());
    assert!(format!("{:?}", bearer(&Secret::new("abc".to_owned())).unwrap()).contains("Sensitive"));
}
