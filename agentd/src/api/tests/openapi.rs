//! Tests that the OpenAPI document and the served calls agree.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::local::calls::{CALLS, Call, Caller};
use holdfast_protocol::local::openapi;

use super::*;

const ID: &str = "018f3c1e-6b1f-7c1d-9d0a-0000000000ff";

fn ask(method: &str, path: &str, token: Option<&str>, body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

#[tokio::test]
async fn the_document_is_served_as_it_is_committed() {
    let world = World::new().await;
    let served = world.get(WEB_AT, "/v1/openapi.json", None).await;
    let served: serde_json::Value = serde_json::from_slice(&served.body).unwrap();
    assert_eq!(served, openapi::document());
    let committed = include_str!("../../../../docs/local-api.openapi.json");
    assert_eq!(served, serde_json::from_str::<serde_json::Value>(committed).unwrap());
}

#[tokio::test]
async fn the_document_names_each_call_and_no_other() {
    let world = World::new().await;
    let mut served = BTreeSet::new();
    for (path, _) in routes::table() {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            world.pass(1);
            let at = path
                .replace("{id}", ID)
                .replace("{name}", "before")
                .replace("{sha256}", &super::desired::digest());
            let answer = world.send(WEB_AT, ask(method, &at, None, "")).await;
            if answer.status != StatusCode::METHOD_NOT_ALLOWED {
                served.insert((path, method));
            }
        }
    }
    let described: BTreeSet<_> = CALLS.iter().map(|call| (call.path, call.method.verb())).collect();
    assert_eq!(served, described);
}

/// What the document says may come back, by status.
fn described(call: &Call) -> BTreeMap<u16, String> {
    let document = openapi::document();
    let responses =
        &document["paths"][call.path][call.method.verb().to_ascii_lowercase().as_str()]["responses"];
    let all = responses.as_object().unwrap().iter();
    all.map(|(status, said)| (status.parse().unwrap(), said["description"].to_string())).collect()
}

/// Each call with everything that a careless or hostile guest might send. The document describes each answer by its
/// status and its code, and no answer is ever our own fault.
#[tokio::test]
async fn no_answer_is_undocumented() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let bodies = [
        "",
        "{}",
        "null",
        "[]",
        "{",
        "\u{feff}{}",
        r#"{"guest":null}"#,
        r#"{"guest":"018f3c1e-6b1f-7c1d-9d0a-000000000002","snapshot":"before"}"#,
        r#"{"guest":"018f3c1e-6b1f-7c1d-9d0a-000000000001","snapshot":"before"}"#,
        r#"{"name":"before"}"#,
        r#"{"name":"before","name":"after"}"#,
        r#"{"name":"before","keep_s":1}"#,
        r#"{"claim":"made up"}"#,
        r#"{"version":"1","health":"well","boot_id":"b"}"#,
        r#"{"version":"1","health":"splendid","boot_id":"b"}"#,
    ];
    let long = "x".repeat(20_000);
    let mut heard: BTreeMap<u16, usize> = BTreeMap::new();
    for call in CALLS {
        let described = described(call);
        for (token, part, query, body) in bodies.iter().copied().chain([long.as_str()]).flat_map(|body| {
            let parts = [ID, "before", "..x", "%00"];
            let queries = ["", "?wait=1s", "?wait=1h", "?after=0&limit=1", "?after=-1", "?x=y&x=y"];
            let tokens = [None, Some(token.as_str()), Some("made-up")];
            tokens.into_iter().flat_map(move |token| {
                parts.into_iter().flat_map(move |part| queries.map(|query| (token, part, query, body)))
            })
        }) {
            // The path and the query matter only if the call has them; a body only if it is read.
            let asks = call.body.is_some() || body.is_empty();
            if !asks || (part != ID && !call.path.contains('{')) || (!query.is_empty() && !body.is_empty()) {
                continue;
            }
            world.pass(5);
            let path =
                call.path.replace("{id}", part).replace("{name}", part).replace("{sha256}", part) + query;
            let answer = world.send(WEB_AT, ask(call.method.verb(), &path, token, body)).await;
            let status = answer.status.as_u16();
            *heard.entry(status).or_default() += 1;
            let reported = described.get(&status).unwrap_or_else(|| {
                panic!(
                    "{} {path}: {status} is not told: {}",
                    call.method.verb(),
                    String::from_utf8_lossy(&answer.body)
                )
            });
            assert!(status < 500 || status == ErrorCode::Busy.http_status(), "{path}: {status}");
            if call.path == "/v1/openapi.json" && status == 200 {
                continue;
            }
            if let Some(code) = answer.code() {
                let name = format!("`{code}`");
                assert!(
                    reported.contains(&name),
                    "{} {path} ({body:.60}): {name} is not told: {reported}",
                    call.method.verb()
                );
            }
            let open = call.caller == Caller::Anyone;
            assert!(open || token.is_some() || status != 200, "{path} was answered without a token");
        }
    }
    println!("{heard:?}");
    for status in [200, 202, 400, 401, 403, 404, 413] {
        assert!(heard.contains_key(&status), "{status} was never heard: {heard:?}");
    }
}
