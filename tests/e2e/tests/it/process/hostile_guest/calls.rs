//! Every call with foreign ids, and without a token.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::client::{Guest, Token};
use super::judge::{Reported, Signals};

/// The objects of another guest.
pub struct Theirs {
    pub uid: String,
    pub operation: String,
    pub snapshot: String,
}

/// Calls without a token.
const OPEN: &[&str] = &["/healthz", "/v1/openapi.json", "/v1/claim"];

/// The codes that are allowed for an id that is not this guest's.
const FIT: &[&str] = &["NOT_FOUND", "NOT_YOURS", "RANGE"];

fn body(method: &str, path: &str) -> String {
    match path {
        _ if method == "GET" || method == "DELETE" => String::new(),
        "/v1/quiesce-windows/{id}/quiesced" => json!({ "stacks": [] }).to_string(),
        _ => json!({}).to_string(),
    }
}

/// The calls as the agent describes them: path, and its methods.
fn described(guest: &Guest) -> Vec<(String, Vec<String>)> {
    let document = guest.ask("GET", "/v1/openapi.json", Token::None, "").unwrap();
    let paths = document.body["paths"].as_object().unwrap_or_else(|| panic!("{document:?}")).clone();
    let methods = |call: &serde_json::Value| -> Vec<String> {
        let known = ["get", "put", "post", "delete"].iter().filter(|method| !call[**method].is_null());
        known.map(|method| method.to_ascii_uppercase()).collect()
    };
    paths.iter().map(|(path, call)| (path.clone(), methods(call))).collect()
}

fn with_id(path: &str, id: &str) -> String {
    ["{id}", "{name}", "{sha256}"].iter().fold(path.to_owned(), |path, part| path.replace(part, id))
}

/// Makes calls, and records each unexpected answer.
struct Asks<'a> {
    guest: &'a Guest,
    theirs: &'a Theirs,
    codes: BTreeMap<String, usize>,
    reported: Reported,
}

impl Asks<'_> {
    fn refused(&mut self, (method, path): (&str, &str), token: Token, body: &str, fit: &[&str]) {
        let shown: String = path.chars().take(80).collect();
        let answer = match self.guest.ask(method, path, token, body) {
            Ok(answer) => answer,
            Err(error) => {
                self.reported.faults.push(format!("{method} {shown} with {token:?}: {error}"));
                return;
            }
        };
        *self.codes.entry(answer.code().to_owned()).or_default() += 1;
        // The refusal may repeat names from the request itself.
        let (text, asked) = (answer.body.to_string(), format!("{path} {body}"));
        let reports = [&self.theirs.uid, &self.theirs.snapshot]
            .iter()
            .any(|theirs| text.contains(*theirs) && !asked.contains(*theirs));
        let is_error = (400..500).contains(&answer.status) && answer.body["data"].is_null();
        if reports || !is_error || !fit.contains(&answer.code()) {
            self.reported.faults.push(format!("{method} {shown} with {token:?}: {answer:?}"));
        }
    }
}

pub fn crossing(guest: &Guest, signals: &Signals, theirs: &Theirs) -> Reported {
    let calls = described(guest);
    let mut asks = Asks { guest, theirs, codes: BTreeMap::new(), reported: Reported::default() };
    signals.begun();
    let huge = "a".repeat(200);
    let beyond = "a".repeat(5000);
    let ids = [
        theirs.operation.as_str(),
        theirs.snapshot.as_str(),
        "0193a000-0000-7000-8000-00000000ffff",
        "no-id",
        "%2e%2e%2fself",
        "1'--",
        &huge,
        &beyond,
    ];
    let mut with_ids = BTreeSet::new();
    for (path, methods) in calls.iter().filter(|(path, _)| path.contains('{')) {
        for method in methods {
            with_ids.insert(format!("{method} {path}"));
            for id in ids {
                asks.refused((method, &with_id(path, id)), Token::Own, &body(method, path), FIT);
            }
        }
    }
    // Their guest and their snapshot, named in the body.
    for about in [json!({ "snapshot": theirs.snapshot }), json!({ "snapshot": "x", "guest": theirs.uid })] {
        asks.refused(("POST", "/v1/rollback"), Token::Own, &about.to_string(), FIT);
    }
    for path in ["/v1/snapshots", "/v1/backups", "/v1/quiesce-windows"] {
        asks.refused(("POST", path), Token::Own, &json!({ "guest": theirs.uid }).to_string(), FIT);
    }
    for (path, methods) in calls.iter().filter(|(path, _)| !OPEN.contains(&path.as_str())) {
        for (method, token) in
            methods.iter().flat_map(|method| [(method, Token::None), (method, Token::Invented)])
        {
            let path_with = with_id(path, &theirs.operation);
            asks.refused((method, &path_with), token, &body(method, path), &["UNAUTHENTICATED"]);
        }
    }
    let Asks { codes, mut reported, .. } = asks;
    if with_ids.len() < 9 {
        reported.faults.push(format!("the description names too few calls with an id: {with_ids:?}"));
    }
    let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{count} {code}")).collect();
    reported.counts = codes.join(", ");
    reported
}
