//! A random client made from the served OpenAPI document.

mod dice;
mod schema;

use std::collections::BTreeMap;

use axum::http::header::CONTENT_TYPE;
use dice::Dice;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schema::Schemas;
use serde_json::Value;

use super::*;

/// A few seconds' worth.
const REQUESTS: u64 = 4_000;

/// One call of the document.
struct Spoken<'a> {
    method: String,
    path: &'a str,
    said: &'a Value,
}

fn calls(document: &Value) -> Vec<Spoken<'_>> {
    let mut calls = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, said) in methods.as_object().unwrap() {
            calls.push(Spoken { method: method.to_uppercase(), path, said });
        }
    }
    calls
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a client need not write in another way.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

impl Spoken<'_> {
    /// A request for this call.
    fn request(
        &self,
        schemas: &Schemas<'_>,
        (window, known): (&str, &[String]),
        token: &str,
        dice: &mut Dice,
    ) -> Request<Body> {
        let (mut path, mut query, mut headers) = (self.path.to_owned(), Vec::new(), Vec::new());
        for part in self.said["parameters"].as_array().into_iter().flatten() {
            let (name, place) = (part["name"].as_str().unwrap(), part["in"].as_str().unwrap());
            if place != "path" && dice.one_in(2) {
                continue;
            }
            // An id that was given to us, more often than one that was not.
            let of_window = place == "path" && self.path.starts_with("/v1/quiesce-windows/");
            let said = if of_window && dice.one_in(2) {
                window.to_owned()
            } else if place == "path" && !known.is_empty() && !dice.one_in(4) {
                dice.of(known).clone()
            } else {
                text(&schemas.say(&part["schema"], dice))
            };
            match place {
                "path" => path = path.replace(&format!("{{{name}}}"), &encoded(&said)),
                "query" => query.push(format!("{name}={}", encoded(&said))),
                _ => headers.push((name.to_owned(), said)),
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let mut request = Request::builder().method(self.method.as_str()).uri(path);
        for (name, said) in headers {
            if said.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                request = request.header(name, said);
            }
        }
        if !dice.one_in(20) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = self.said["requestBody"]["content"]["application/json"].get("schema");
        let body = body.filter(|_| !dice.one_in(20)).map(|schema| {
            let mut body = schemas.say(schema, dice);
            remember(&mut body, known, dice);
            body.to_string()
        });
        request.header(CONTENT_TYPE, "application/json").body(Body::from(body.unwrap_or_default())).unwrap()
    }

    /// What the document says of an answer of this status.
    fn promised(&self, status: StatusCode) -> Option<&Value> {
        self.said["responses"].get(status.as_str())
    }
}

/// What names a thing.
const IDS: [&str; 5] = ["id", "operation", "snapshot", "name", "sha256"];

/// Half of the names in a body are of things that there are.
fn remember(body: &mut Value, known: &[String], dice: &mut Dice) {
    for (name, value) in body.as_object_mut().into_iter().flatten() {
        if IDS.contains(&name.as_str()) && !known.is_empty() && dice.one_in(2) {
            *value = Value::String(dice.of(known).clone());
        }
    }
}

/// Ids and names that an answer gave us, used in later requests.
fn learn(known: &mut Vec<String>, value: &Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let id = IDS.contains(&name.as_str());
                match value {
                    Value::String(text) if id && known.len() < 64 && !known.contains(text) => {
                        known.push(text.clone());
                    }
                    inner => learn(known, inner),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| learn(known, item)),
        _ => {}
    }
}

fn chosen(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Each path by each method that the document does not have for it.
#[tokio::test(start_paused = true)]
async fn a_method_that_the_document_does_not_have_is_reported_which_there_are() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let document: Value =
        serde_json::from_slice(&world.get(WEB_AT, "/v1/openapi.json", None).await.body).unwrap();
    for (path, calls) in document["paths"].as_object().unwrap() {
        let mut taken: Vec<String> =
            calls.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        taken.sort_unstable();
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            if taken.iter().any(|one| one == method) {
                continue;
            }
            world.pass(5);
            let request = Request::builder().method(method).uri(path.replace(['{', '}'], ""));
            let request =
                request.header("authorization", format!("Bearer {token}")).body(Body::empty()).unwrap();
            let answer = world.send(WEB_AT, request).await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            let mut said: Vec<&str> = answer.allow.as_deref().unwrap().split(", ").collect();
            said.sort_unstable();
            assert_eq!(said, taken, "{method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_knows_the_document_alone_is_never_surprised() {
    let world = World::new().await;
    // A granted window has more valid calls; a window that is over has fewer.
    let (token, window) = world.granted().await;
    super::desired::all_is_there(&world).await;
    let document: Value =
        serde_json::from_slice(&world.get(WEB_AT, "/v1/openapi.json", None).await.body).unwrap();
    let (schemas, calls) = (Schemas(&document), calls(&document));
    let seed = chosen("HOLDFAST_FUZZ_SEED", 20_261_127);
    let mut dice = Dice(seed);
    let (window, mut known) = (window.to_string(), Vec::new());
    let mut codes = std::collections::BTreeSet::new();
    let mut heard: BTreeMap<(&str, u16), u64> = BTreeMap::new();
    for number in 0..chosen("HOLDFAST_FUZZ_REQUESTS", REQUESTS) {
        let call = dice.of(&calls);
        world.pass(2);
        let request = call.request(&schemas, (&window, &known), &token, &mut dice);
        let asked = format!("seed {seed}, request {number}: {} {}", request.method(), request.uri());
        let answer = world.send(WEB_AT, request).await;
        *heard.entry((call.path, answer.status.as_u16())).or_default() += 1;
        // A lane that is full of the guest's own work is also reported by 503, with the time to wait.
        let full = answer.status.as_u16() == ErrorCode::Busy.http_status() && answer.retry_after.is_some();
        let body = String::from_utf8_lossy(&answer.body);
        assert!(full || !answer.status.is_server_error(), "{asked}: {body}");
        let promised = call.promised(answer.status);
        let promised = promised.unwrap_or_else(|| panic!("{asked}: {} is not told of", answer.status));
        if promised["content"].get("application/octet-stream").is_some() {
            continue;
        }
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        if let Some(form) = promised["content"]["application/json"].get("schema") {
            assert_eq!(schemas.breach(form, &value, ""), None, "{asked}");
        }
        if let Some(code) = value["error"]["code"].as_str() {
            let reported = promised["description"].as_str().unwrap();
            assert!(reported.contains(&format!("`{code}`")), "{asked}: {code} is not told of: {reported}");
            codes.insert(code.to_owned());
        }
        learn(&mut known, &value);
    }
    println!("{} requests by seed {seed}: {heard:?}", heard.values().sum::<u64>());
    // Coverage: every call except these was answered with success.
    let answered = |path: &str| heard.keys().any(|(heard, status)| *heard == path && *status < 300);
    let never: Vec<&str> = calls.iter().map(|call| call.path).filter(|path| !answered(path)).collect();
    // No document contains a claim, and no real guest has a restore test to report. Requested snapshots are not taken
    // here. *Quiesced* is said of a window once, in its first minutes.
    let cannot =
        ["/v1/claim", "/v1/quiesce-windows/{id}/quiesced", "/v1/restore-tests/report", "/v1/rollback"];
    assert!(never.iter().all(|path| cannot.contains(path)), "{never:?}");
    for code in [ErrorCode::WindowOver, ErrorCode::NotFound, ErrorCode::Range] {
        assert!(codes.contains(code.as_str()), "{code:?} was never met: {codes:?}");
    }
    for status in [200, 202, 400, 401, 404] {
        assert!(heard.keys().any(|(_, heard)| *heard == status), "{status} was never heard");
    }
}
