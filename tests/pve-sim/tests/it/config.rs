//! Tests of changed configurations.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use crate::client::{Client, open};
use serde_json::Value;

const CONFIG: &str = "/nodes/pve1/lxc/100/config";
const START: &str = "/nodes/pve1/lxc/100/status/start";
const STOP: &str = "/nodes/pve1/lxc/100/status/stop";

fn shown(client: &Client, key: &str) -> Value {
    client.ask("GET", CONFIG, "").1["data"][key].clone()
}

/// The row of a key in the list of what waits.
fn pending(client: &Client, key: &str) -> Value {
    let (_, body) = client.ask("GET", "/nodes/pve1/lxc/100/pending", "");
    let rows = body["data"].as_array().expect("a list");
    rows.iter().find(|row| row["key"] == key).cloned().unwrap_or_default()
}

#[test]
fn an_unknown_bridge_of_a_stopped_guest_is_refused_and_written() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    let (status, _) = client.ask("PUT", CONFIG, "net0=name%3Deth0,bridge%3Dvmbr77");
    assert_eq!(status, 500);
    let line = shown(&client, "net0").as_str().expect("a line").to_owned();
    assert!(
        line.contains("bridge=vmbr77") && line.contains("hwaddr=") && !line.contains("BC:24:11:FF:15:7C")
    );
    // Every later change is refused as well, and written.
    let (status, _) = client.ask("PUT", CONFIG, "memory=140");
    assert_eq!((status, shown(&client, "memory")), (500, Value::from(140)));
    let (status, _) = client.ask("PUT", CONFIG, "net0=name%3Deth0,bridge%3Dvmbr0");
    assert_eq!(status, 200);
    assert_eq!(client.ask("PUT", CONFIG, "memory=150").0, 200);
}

#[test]
fn an_unknown_bridge_of_a_running_guest_drops_the_whole_call() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    assert_eq!(client.task("POST", START, ""), "OK");
    let before = shown(&client, "net0");
    let (status, body) = client.ask("PUT", CONFIG, "nameserver=10.66.0.53&net0=name%3Deth0,bridge%3Dvmbr77");
    assert_eq!(status, 400, "{body}");
    assert!(body["errors"]["net0"].is_string(), "{body}");
    assert_eq!((shown(&client, "net0"), pending(&client, "nameserver")), (before, Value::Null));
}

#[test]
fn what_waits_comes_into_force_at_the_end_and_is_not_deleted_before() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    assert_eq!(client.task("POST", START, ""), "OK");
    assert_eq!(client.ask("PUT", CONFIG, "nameserver=10.66.0.53").0, 200);
    assert_eq!(pending(&client, "nameserver")["pending"], "10.66.0.53");
    let now = client.ask("GET", &format!("{CONFIG}?current=1"), "").1;
    assert_eq!(now["data"]["nameserver"], Value::Null, "not in force");
    // The current value is what a deletion looks for.
    assert_eq!(client.ask("PUT", CONFIG, "delete=nameserver").0, 200);
    assert_eq!(pending(&client, "nameserver")["pending"], "10.66.0.53");
    assert_eq!(client.ask("PUT", CONFIG, "revert=nameserver").0, 200);
    assert_eq!(pending(&client, "nameserver"), Value::Null);
    assert_eq!(client.ask("PUT", CONFIG, "nameserver=10.66.0.54").0, 200);
    assert_eq!(client.task("POST", STOP, ""), "OK");
    assert_eq!(shown(&client, "nameserver"), "10.66.0.54");
    assert_eq!(pending(&client, "nameserver")["value"], "10.66.0.54");
}

#[test]
fn a_volume_taken_off_a_running_guest_stands_nowhere_until_its_end() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let client = Client::of(&opened);
    assert_eq!(client.ask("PUT", CONFIG, "mp0=labbtrfs%3A1,mp%3D/srv").0, 200);
    let volume =
        shown(&client, "mp0").as_str().expect("a line").split(',').next().expect("a volume").to_owned();
    assert_eq!(client.task("POST", START, ""), "OK");
    assert_eq!(client.ask("PUT", CONFIG, "delete=mp0").0, 200);
    assert_eq!((shown(&client, "mp0"), shown(&client, "unused0")), (Value::Null, Value::Null));
    assert_eq!(client.task("POST", STOP, ""), "OK");
    assert_eq!((shown(&client, "mp0"), shown(&client, "unused0")), (Value::Null, Value::from(volume)));
}

#[test]
fn a_token_sees_its_own_tasks_only() {
    let state = tempfile::tempdir().expect("folder");
    let opened = open(state.path());
    let upid = Client::of(&opened).ended("POST", START, "");
    let other = Client::with(&opened, "agent@pve!none");
    let (status, body) = other.ask("GET", "/nodes/pve1/tasks", "");
    assert_eq!((status, body["data"].as_array().map(Vec::len)), (200, Some(0)), "{body}");
    assert_eq!(other.ask("GET", &format!("/nodes/pve1/tasks/{upid}/status"), "").0, 403);
    let own = Client::of(&opened).ask("GET", "/nodes/pve1/tasks?limit=1", "").1;
    assert_eq!(own["data"][0]["upid"], Value::from(upid));
}
