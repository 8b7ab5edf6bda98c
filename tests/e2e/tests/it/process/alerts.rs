//! The story of an alert, by the command and a real hub.

use std::time::Duration;

use e2e::stage::{HOST, Stage};
use e2e::wait;
use serde_json::{Value, json};

use super::stand;

const LONG: Duration = Duration::from_secs(60);

/// A token that ends within a week is a condition of the hub.
const CODE: &str = "TOKEN_EXPIRING";

/// The only alert, once it fires.
fn alert(stage: &Stage) -> Value {
    wait::until("an alert fires", LONG, || {
        let all = stage.holdfast(&["alert", "list"])?;
        Ok(all.as_array().and_then(|all| all.first()).cloned())
    })
    .unwrap()
}

fn kinds(detail: &Value) -> Vec<&str> {
    let entries = detail["log"]["items"].as_array().unwrap();
    entries.iter().rev().filter_map(|entry| entry["kind"].as_str()).collect()
}

#[test]
fn an_operator_finds_acknowledges_silences_and_explains_an_alert() {
    let mut stand = stand::enrolled();
    let stage = &mut stand.stage;
    stage.holdfast(&["operator", "add", "eve", "--role", "viewer", "--days", "5"]).unwrap();
    // The hub looks at its own rows when it starts.
    stage.stop_hub().unwrap();
    stage.start_hub().unwrap();
    stage.log_in().unwrap();
    let found = alert(stage);
    assert_eq!((&found["code"], &found["subject"]), (&json!(CODE), &json!("token:eve")));
    let short = found["id"].as_str().unwrap().replacen("hub-", "hub/", 1);

    let known = stage.holdfast(&["alert", "ack", &short, "--for", "2h"]).unwrap();
    assert_eq!(known["acknowledged"]["by"], "admin");
    let detail = stage.holdfast(&["alert", "show", &short]).unwrap();
    assert_eq!(kinds(&detail), ["opened", "fired", "suppressed", "acknowledged"], "no route has a receiver");
    assert_eq!(detail["receivers"], json!([]));
    let open = stage.holdfast(&["alert", "unack", &short]).unwrap();
    assert!(open.get("acknowledged").is_none());

    let matcher = format!("code={CODE}");
    let add = ["alert", "silence", "add", &matcher, "--for", "1h", "--comment", "eve leaves"];
    let silence = stage.holdfast(&add).unwrap()["id"].to_string();
    let explained = stage.holdfast(&["alert", "explain", "DISK_FULL", "--host", HOST]).unwrap();
    assert_eq!((&explained["route"], &explained["fires_after_s"]), (&Value::Null, &json!(60)));
    stage.holdfast(&["alert", "silence", "end", &silence]).unwrap();
    assert_eq!(stage.holdfast(&["alert", "silence", "list"]).unwrap(), json!([]));

    let announced = stage.holdfast(&["host", "maintenance", HOST, "--for", "1h"]).unwrap();
    let host = stage.holdfast(&["host", "show", HOST]).unwrap();
    assert_eq!(host["host"]["maintenance_until"], announced["windows"][0]["until"]);
    let ended = stage.holdfast(&["host", "maintenance", HOST, "--end"]).unwrap();
    assert_eq!(ended["windows"], json!([]));

    assert_eq!(stage.holdfast(&["alert", "receivers"]).unwrap(), json!([]));
    let refused: [(&[&str], i32, &str); 4] = [
        (&["alert", "test", "ops"], 4, "NOT_FOUND"),
        (&["alert", "show", "hub/999"], 4, "NOT_FOUND"),
        (&["alert", "silence", "add", "host!=x", "--for", "1h", "--comment", "all"], 1, "SILENCE_EVERYTHING"),
        (&["host", "maintenance", HOST, "--for", "200d"], 1, "RANGE"),
    ];
    for (words, code, name) in refused {
        let (exit, says) = stage.holdfast_refuses(words).unwrap();
        assert!(exit == code && says.contains(name), "{words:?}: {exit}: {says}");
    }
    let log = stage.holdfast(&["alert", "log", "--alert", &short]).unwrap();
    assert_eq!(log.as_array().unwrap().len(), 5, "{log}");
}
