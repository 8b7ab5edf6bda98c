//! Tests of the conditions of tunnels.

use holdfast_protocol::condition::Severity;
use holdfast_protocol::report::TunnelReport;
use serde_json::{Value, json};

use super::*;

fn tunnel(state: &str, fields: Value) -> TunnelReport {
    let mut report = json!({ "name": "cf", "unit": "cloudflared.service", "state": state, "since": at(-300),
        "why": "no connection is ready", "checked_at": at(0) });
    report.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(report).unwrap()
}

fn with(state: &str, fields: Value) -> Box7 {
    Box7 { tunnels: TunnelsView { reports: Some(vec![tunnel(state, fields)]) }, ..Box7::well() }
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    vec![
        ("TUNNEL_DEGRADED", with("degraded", json!({}))),
        ("TUNNEL_DOWN", with("down", json!({}))),
        ("TUNNEL_TOKEN_MISSING", with("up", json!({ "token": { "is": "missing" } }))),
    ]
}

#[test]
fn each_state_has_its_condition_since_its_beginning() {
    for (state, codes, severity) in [
        ("up", vec![], None),
        ("unproved", vec![], None),
        ("unknown", vec![], None),
        ("degraded", vec!["TUNNEL_DEGRADED"], None),
        ("down", vec!["TUNNEL_DOWN"], None),
        ("stopped", vec!["TUNNEL_DOWN"], Some(Severity::Warning)),
    ] {
        let host = with(state, json!({}));
        assert_eq!(host.codes(), codes, "{state}");
        if let Some(finding) = host.found().first() {
            assert_eq!((finding.since, finding.severity), (Some(at(-300)), severity), "{state}");
        }
    }
}

#[test]
fn a_tunnel_that_cannot_be_looked_at_keeps_its_condition_and_one_that_is_gone_does_not() {
    let down = with("down", json!({})).after(&[]);
    assert_eq!(down.len(), 1);
    assert_eq!(with("unknown", json!({})).after(&down), down);
    assert_eq!(Box7 { tunnels: TunnelsView::default(), ..Box7::well() }.after(&down), down, "not read yet");
    assert!(with("up", json!({})).after(&down).is_empty());
    assert!(Box7::well().after(&down).is_empty(), "root's settings do not name it any more");
}

#[test]
fn a_missing_token_is_reported_whatever_the_state() {
    let missing = json!({ "token": { "is": "missing" } });
    assert_eq!(with("unknown", missing.clone()).codes(), ["TUNNEL_TOKEN_MISSING"]);
    assert_eq!(with("down", missing).codes(), ["TUNNEL_DOWN", "TUNNEL_TOKEN_MISSING"]);
    let present = json!({ "token": { "is": "present", "written_at": at(-60) } });
    assert!(with("up", present).codes().is_empty());
}

#[test]
fn what_became_of_a_restart_is_in_the_facts() {
    let restarts = json!({ "restarts": { "asked_at": at(-60), "asked_today": 2, "outcome": "unlisted" } });
    let found = with("down", restarts).found();
    assert!(
        found[0].message.contains("2 restarts asked for within a day, the last one: refused"),
        "{found:?}"
    );
}
