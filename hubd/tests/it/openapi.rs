//! Tests that the OpenAPI document and the served calls agree.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use holdfast_protocol::api::Method as Verb;
use holdfast_protocol::hub::calls::{Call, Caller};
use holdfast_protocol::hub::{calls, openapi};
use holdfast_protocol::job::act::Sha256Text;
use rcgen::KeyPair;
use reqwest::Method;
use serde_json::{Value, json};

use crate::releases::release;
use crate::world::{Client, MANY_CALLS, Options, World, csr, document};

const ID: &str = "018f3c1e-6b1f-7c1d-9d0a-0000000000ff";

const fn method(verb: Verb) -> Method {
    match verb {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Put => Method::PUT,
        Verb::Patch => Method::PATCH,
        Verb::Delete => Method::DELETE,
    }
}

fn path(template: &str, host: &str, other: &str) -> String {
    let path = template.replace("{host}", host).replace("{id}", other).replace("{job}", other);
    let path =
        path.replace("{customer}", "acme").replace("{version}", "2026.11.1").replace("{sha256}", &digest());
    let path = path.replace("{generation}", "1").replace("{volume}", "db").replace("{target}", "usb1");
    path.replace("{guest}", other)
        .replace("{name}", "ada")
        .replace("{number}", "1")
        .replace("{policy}", "usual")
}

/// A file that the release of [`bodies`] names.
fn digest() -> String {
    Sha256Text::of(b"{}").as_str().to_owned()
}

async fn call(client: &Client, method: Method, path: &str, body: &str) -> (StatusCode, Option<String>) {
    let request =
        client.http.request(method, format!("{}{path}", client.url)).headers(client.headers.clone());
    let response = request.body(body.to_owned()).send().await.unwrap();
    let status = response.status();
    let is_page = response.headers().get("content-type").is_some_and(|kind| kind != "application/json");
    if is_page {
        return (status, None);
    }
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    (status, answer["error"]["code"].as_str().map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served_as_it_is_committed() {
    let world = World::start().await;
    let anyone = world.anyone();
    let response = anyone.http.get(format!("{}/v1/openapi.json", anyone.url)).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let served: Value = response.json().await.unwrap();
    assert_eq!(served, openapi::document());
    let committed = include_str!("../../../docs/hub-api.openapi.json");
    assert_eq!(served, serde_json::from_str::<Value>(committed).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_each_call_and_no_other() {
    let world = World::with(Options { operator_calls: MANY_CALLS, ..Options::default() }).await;
    let sources = [
        include_str!("../../src/api/mod.rs"),
        include_str!("../../src/api/alerts/mod.rs"),
        include_str!("../../src/api/resources/mod.rs"),
        include_str!("../../src/api/sign_in/mod.rs"),
        include_str!("../../src/api/sign_in/oidc/links.rs"),
    ];
    let parts = sources.iter().flat_map(|source| source.split(".route(\"").skip(1));
    let routes: BTreeSet<&str> = parts.filter_map(|rest| rest.split('"').next()).collect();
    let mut served = BTreeSet::new();
    for route in routes {
        for verb in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let at = path(route, "box7", ID);
            let (status, _) = call(&world.anyone(), verb.parse().unwrap(), &at, "").await;
            assert_ne!(status, StatusCode::NOT_FOUND, "{verb} {route} has a route");
            if status != StatusCode::METHOD_NOT_ALLOWED {
                served.insert((route, verb));
            }
        }
    }
    let described: BTreeSet<_> = calls().map(|call| (call.path, call.method.verb())).collect();
    assert_eq!(served, described);
}

/// What the document says may come back, by status.
fn described(document: &Value, call: &Call) -> BTreeMap<u16, String> {
    let verb = call.method.verb().to_ascii_lowercase();
    let responses = document["paths"][call.path][&verb]["responses"].as_object().unwrap().iter();
    responses.map(|(status, said)| (status.parse().unwrap(), said["description"].to_string())).collect()
}

/// A time that a mute can end at.
fn soon() -> String {
    let now = hubd::clock::Clock::now(&hubd::clock::SystemClock);
    (now + jiff::SignedDuration::from_hours(1)).to_string()
}

/// Bodies that are right for no call.
const RIGHT_FOR_NONE: [&str; 6] = ["", "{}", "[]", "{", "null", r#"{"host_name":"a","host_name":"b"}"#];

/// Bodies that are right for some call, then those of [`RIGHT_FOR_NONE`].
fn bodies() -> Vec<String> {
    let csr_pem = csr(&KeyPair::generate().unwrap());
    let secret = "0123456789abcdef".repeat(4);
    let mut all: Vec<String> = [
        json!({ "secret": secret, "csr_pem": csr_pem }),
        json!({ "secret": secret, "csr_pem": "no CSR" }),
        json!({ "claimed_name": "box9", "csr_pem": csr_pem }),
        json!({ "csr_pem": csr_pem }),
        json!({ "host_name": "box7" }),
        json!({ "host_name": "box8" }),
        json!({ "host_name": "box 8" }),
        json!({ "reason": "because", "document": document(1) }),
        json!({ "reason": "because", "document": document(9) }),
        json!({ "reason": "because", "document": "{}" }),
        json!({ "id": ID, "blob": "{}" }),
        json!({ "order": "{}" }),
        json!({ "withdrawal": "{}" }),
        json!({ "name": "ada", "role": "viewer", "days": 5 }),
        json!({ "name": "admin", "role": "viewer", "days": 5 }),
        json!({ "name": "cyd", "role": "customer", "days": 5 }),
        json!({ "name": "ci", "role": "viewer", "scope": { "kind": "customer", "customer": "acme" }, "days": 5 }),
        json!({ "name": "acme", "fields": { "display_name": "Acme", "labels": { "tier": "gold" } } }),
        json!({ "display_name": "Acme Inc.", "remove": ["notes"] }),
        json!({ "days": 5, "overlap_hours": 1 }),
        json!({ "name": "ada", "password": "correct horse staple" }),
        json!({ "token": "0123456789abcdef" }),
        json!({ "by": "subject", "subject": "s-1" }),
        json!({ "by": "claim", "value": "" }),
        json!({ "what": "newest" }),
        json!({ "until": soon() }),
        json!({ "until": "2126-11-21T12:00:00Z" }),
        json!({ "until": "2026-01-01T12:00:00Z" }),
        json!({ "code": "DISK_FULL", "host": "box7" }),
        json!({ "code": "DISK_FULL", "host": "no such host" }),
        json!({ "code": "GUEST_CRASHED", "host": "box7", "guest": "web" }),
        json!({ "code": "HUB_DISK_FULL", "host": "box7" }),
        json!({ "matchers": ["host=box7"], "until": soon(), "comment": "a test" }),
        json!({ "matchers": ["host!=x"], "until": soon(), "comment": "a test" }),
        json!({ "matchers": ["no label=x"], "until": soon(), "comment": "a test" }),
        json!({ "version": "2026.11.1" }),
        json!({ "version": "2026.11.7" }),
        json!({ "version": "2026.11.1",
            "waves": [{ "hosts": "rest", "max_failures": 0, "soak_s": 0, "timeout_s": 600 }] }),
        json!({ "set": { "tier": "canary" }, "remove": ["site"] }),
        json!({ "set": { "tier": "canary" }, "remove": ["tier"] }),
        json!({ "set": { "Tier": "canary" } }),
        json!({ "windows": ["mon-fri 20:00-04:00 Europe/Vienna"] }),
        json!({ "windows": ["at night"] }),
        json!({ "version": "2026.11.1", "on_failure": { "roll_back": "2026.11.1" }, "subject": "guest_agent", "times": { "per_hour": 3, "not": ["2026-12-24..2026-12-26"] },
            "waves": [{ "hosts": { "labelled": { "tier": "canary" } }, "max_failures": 0, "soak_s": 0, "timeout_s": 600 }] }),
        json!({ "at": "2026-11-21T12:00:00Z" }),
        json!({ "reason": "because", "to": 1 }),
        json!({ "reason": "because", "to": 9 }),
        json!({ "reason": "because", "patch": { "label": "blue" } }),
        json!({ "reason": "because", "patch": [] }),
        json!({ "reason": "because", "value": crate::resources::target("usb1", 1) }),
        json!({ "reason": "because", "value": crate::resources::policy("usual", 3) }),
        json!({ "reason": "because", "value": crate::resources::guest(1) }),
        json!({ "schema": "holdfast.report/v1", "sequence": 1, "held": 0, "coverage": "full", "sections": {} }),
        json!({ "schema": "holdfast.report/v9", "sequence": 1 }),
    ]
    .iter()
    .map(Value::to_string)
    .collect();
    all.push(release(1, 1, &[("agentd", b"{}")]).to_json().unwrap());
    all.push(release(1, 1, &[("agentd", b"[]")]).to_json().unwrap());
    all.extend(RIGHT_FOR_NONE.map(str::to_owned));
    all
}

/// Each call by each caller with every input that a careless or hostile caller might send. The document contains each
/// answer, by its status and by its code, and no answer is the hub's own fault.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_undocumented() {
    let provider = Some(crate::oidc::provider("https://login.example"));
    let world = World::with(Options { operator_calls: MANY_CALLS, provider, ..Options::default() }).await;
    let host = world.enrol("box7").await;
    let document = openapi::document();
    let admin = world.admin();
    let clients = [
        ("anyone", world.anyone()),
        ("a made-up token", world.with_token("made-up")),
        ("an admin with a stale tag", admin.with("if-match", "\"7\"")),
        ("an admin", admin.with("if-match", "\"0\"")),
        ("an admin without a tag", admin.with("idempotency-key", "k-1")),
        ("a host", host.client.clone()),
    ];
    let (bodies, mut heard) = (bodies(), BTreeMap::<u16, usize>::new());
    // Where a request is refused before its body is read, six bodies that are right for no call are enough.
    let right_for_none = bodies.len().saturating_sub(RIGHT_FOR_NONE.len());
    for one in calls() {
        let described = described(&document, one);
        for (who, client) in &clients {
            let may = match one.caller {
                Caller::Anyone => true,
                Caller::Agent => *who == "a host",
                Caller::Operator(_) => who.starts_with("an admin"),
                // No client here has a session.
                Caller::Session => false,
            };
            for (query, named) in [("", "box7"), ("?limit=0", "box7"), ("", "no such host"), ("?x=1", "%00")]
            {
                // A revoked host would be refused everything that comes after.
                let ends_host = one.name == "revokeHost" && named == "box7";
                if ends_host || (named != "box7" && !one.path.contains('{')) && query.is_empty() {
                    continue;
                }
                let from = if may && query.is_empty() { 0 } else { right_for_none };
                for body in bodies.iter().skip(from).filter(|body| one.body.is_some() || body.is_empty()) {
                    let at = path(one.path, named, ID) + query;
                    let (status, code) = call(client, method(one.method), &at, body).await;
                    *heard.entry(status.as_u16()).or_default() += 1;
                    let told = described.get(&status.as_u16()).unwrap_or_else(|| {
                        panic!(
                            "{who}: {} {at} ({body:.60}): {status} {code:?} is not described",
                            one.method.verb()
                        )
                    });
                    let code = code.map(|code| format!("`{code}`"));
                    assert!(
                        code.as_ref().is_none_or(|code| told.contains(code)),
                        "{who}: {} {at} ({body:.60}): {code:?} is not described: {told}",
                        one.method.verb()
                    );
                    assert!(status.as_u16() != 500, "{who}: {at}: {code:?}");
                    assert!(may || !status.is_success(), "{who}: {at} was answered");
                }
            }
        }
    }
    for status in [200, 201, 202, 400, 401, 403, 404, 409, 412, 428] {
        assert!(heard.contains_key(&status), "{status} never came: {heard:?}");
    }
}
