//! Tests of bad input from operator, hub and Proxmox.

use std::time::Duration;

use e2e::document;
use e2e::stage::HOST;
use e2e::wait;
use serde_json::{Value, json};

use super::stand::{self, FOREIGN_VMID, Stand, well};

const LONG: Duration = Duration::from_secs(60);

fn refused(stand: &Stand, what: &str, document: &Value) -> String {
    let file = stand.stage.write_document(document).unwrap();
    let words = ["desired", "apply", HOST, file.to_str().unwrap(), "--yes"];
    let (_, says) = stand.stage.holdfast_refuses(&words).unwrap_or_else(|error| panic!("{what}: {error:#}"));
    says
}

/// Changes one document in one place.
fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut bad = document.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match bad.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.insert(key.to_owned(), value)),
        other => panic!("{parent} is {other:?}"),
    }
    bad
}

#[test]
fn bad_documents_are_refused_by_name_and_change_nothing() {
    let stand = stand::running();
    let ground = stand.stage.ground();
    let guest = |number| document::guest(&ground, number, &format!("g{number}"), "acme");
    let good = json!({ "poll_interval_s": 5, "guests": [guest(1), guest(2)] });
    stand.stage.apply(&good, "two guests").unwrap();
    stand.stage.guests_until("two guests", |guests| guests.len() == 2 && guests.iter().all(well)).unwrap();
    let configurations = stand.stage.configurations().unwrap();
    let held = stand.stage.holdfast(&["desired", "show", HOST]).unwrap();

    let cases: &[(&str, Value, &str)] = &[
        (
            "an older generation",
            with(&with(&good, "/generation", json!(0)), "/poll_interval_s", json!(7)),
            "STALE_GENERATION",
        ),
        (
            "the same generation, other content",
            with(&with(&good, "/generation", json!(1)), "/poll_interval_s", json!(7)),
            "GENERATION_CONFLICT",
        ),
        (
            "a jump",
            with(&with(&good, "/generation", json!(5000)), "/poll_interval_s", json!(7)),
            "GENERATION_JUMP",
        ),
        ("an unknown field", with(&good, "/guests/0/features", json!("keyctl=1")), "UNKNOWN_FIELD"),
        (
            "one VMID twice",
            with(&with(&good, "/guests/0/vmid", json!(5100)), "/guests/1/vmid", json!(5100)),
            "DUPLICATE_VMID",
        ),
        ("one name twice", with(&good, "/guests/1/name", json!("g1")), "DUPLICATE_NAME"),
        ("no memory", with(&good, "/guests/0/size/memory_mib", json!(0)), "RANGE"),
        ("too much memory", with(&good, "/guests/0/size/memory_mib", json!(u64::MAX)), "RANGE"),
        ("a name that splices", with(&good, "/guests/0/name", json!("a,mp0=/etc")), "RANGE"),
    ];
    for (what, document, code) in cases {
        let says = refused(&stand, what, document);
        assert!(says.contains(code), "{what}: wanted {code}, got: {says}");
    }
    assert_eq!(stand.stage.holdfast(&["desired", "show", HOST]).unwrap(), held, "the hub holds what it held");
    assert_eq!(stand.stage.configurations().unwrap(), configurations, "nothing in Proxmox changed");

    // A refusal poisons nothing: the next good document is taken.
    let next = with(&good, "/guests/0/size/memory_mib", json!(448));
    stand.stage.apply(&next, "a good one again").unwrap();
    stand
        .stage
        .guests_until("the good document", |guests| {
            guests.iter().any(|guest| guest["size"]["memory_mib"] == 448)
        })
        .unwrap();
}

#[test]
fn a_number_that_is_someone_elses_is_left_alone() {
    let stand = stand::running();
    let ground = stand.stage.ground();
    let before = stand.stage.configurations().unwrap();
    let mut guest = document::guest(&ground, 1, "late", "acme");
    guest["vmid"] = json!(FOREIGN_VMID);
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [guest] }), "a taken number").unwrap();
    let guests = stand
        .stage
        .guests_until("the refusal", |guests| {
            guests.iter().any(|guest| guest.to_string().contains("VMID_FOREIGN"))
        })
        .unwrap();
    assert_eq!(guests[0]["status"], "absent", "{guests:#?}");
    assert_eq!(stand.stage.configurations().unwrap(), before, "nothing in Proxmox changed");

    guest["vmid"] = json!(FOREIGN_VMID + 1);
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [guest] }), "a free number").unwrap();
    stand
        .stage
        .guests_until("the guest under the free number", |guests| guests.len() == 1 && well(&guests[0]))
        .unwrap();
    assert_eq!(stand.stage.configurations().unwrap()[&FOREIGN_VMID], before[&FOREIGN_VMID]);
}

/// Runs the agent with one damaged file until it reports `code`, repairs the file, and checks that the work is then
/// done.
fn spoilt(path: &str, spoil: impl Fn(&str) -> String, code: &str) {
    let mut stand = stand::enrolled();
    let file = stand.stage.folder().join(path);
    let good = std::fs::read_to_string(&file).unwrap();
    let before = stand.stage.configurations().unwrap();
    std::fs::write(&file, spoil(&good)).unwrap();
    let ground = stand.stage.ground();
    let guest = document::guest(&ground, 1, "one", "acme");
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [guest] }), "one guest").unwrap();
    stand.stage.start_agent(None).unwrap();
    let mut last = Value::Null;
    let seen = wait::until(code, LONG, || {
        // The agent's socket opens a moment after its start.
        let Ok(status) = stand.stage.agent_says(&["status"]) else { return Ok(None) };
        last = status;
        Ok(last.to_string().contains(code).then_some(()))
    });
    assert!(seen.is_ok(), "no {code} in {last:#}");
    assert_eq!(stand.stage.configurations().unwrap(), before, "nothing in Proxmox changed");
    assert!(stand.stage.stop_agent().unwrap().success());
    std::fs::write(&file, good).unwrap();
    stand.stage.start_agent(None).unwrap();
    stand
        .stage
        .guests_until("the guest, once mended", |guests| guests.len() == 1 && guests.iter().all(well))
        .unwrap();
}

#[test]
fn a_wrong_pin_stops_the_agent_from_speaking_to_proxmox() {
    let spoil = |text: &str| {
        let (head, tail) = text.split_once("spki/sha256:").unwrap();
        let digit = if tail.starts_with('0') { '1' } else { '0' };
        format!("{head}spki/sha256:{digit}{}", &tail[1..])
    };
    spoilt("agent/agent.toml", spoil, "PIN_MISMATCH");
}

#[test]
fn a_token_that_proxmox_does_not_know_any_more_is_said_so() {
    // Proxmox answers a revoked, an expired and a wrong token alike: 401 without a body.
    let spoil = |_: &str| "00000000-0000-4000-8000-000000000000\n".to_owned();
    spoilt("agent/state/secrets/proxmox-observe", spoil, "UNAUTHENTICATED");
}

#[test]
fn a_revoked_host_is_served_no_more_and_its_guests_run_on() {
    let stand = stand::running();
    let ground = stand.stage.ground();
    let guest = document::guest(&ground, 1, "one", "acme");
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [guest] }), "one guest").unwrap();
    stand.stage.guests_until("one guest", |guests| guests.len() == 1 && guests.iter().all(well)).unwrap();
    let before = stand.stage.configurations().unwrap();
    stand.stage.show(&["host", "revoke", HOST, "--yes"]).unwrap();
    let status = wait::until("the agent's word of it", LONG, || {
        let status = stand.stage.agent_says(&["status"])?;
        Ok(status.to_string().contains("REVOKED").then_some(status))
    });
    status.unwrap();
    assert_eq!(stand.stage.configurations().unwrap(), before, "nothing in Proxmox changed");
}

#[test]
fn a_token_the_hub_does_not_know_is_refused() {
    let stand = stand::enrolled();
    let token = stand.stage.folder().join("operator/bad-token");
    std::fs::write(&token, "hfo_0000000000000000000000000000000000000000000").unwrap();
    let hosts = stand.stage.holdfast(&["host", "list"]).unwrap();
    let (code, says) = stand.stage.log_in_refused(&token).unwrap();
    assert_eq!(code, 77, "{says}");
    assert_eq!(stand.stage.holdfast(&["host", "list"]).unwrap(), hosts, "the good login still stands");
}
