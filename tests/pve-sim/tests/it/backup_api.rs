//! Tests of the backup server against recordings.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use pve_sim::backup_api::{Ask, answer};
use serde_json::Value;

const SECRET: &str = "11111111-2222-3333-4444-555555555555";

fn exchanges() -> Vec<Value> {
    let text = include_str!("../../pbs/exchanges.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect("an exchange")).collect()
}

/// As on the genuine one, but that its groups are of containers.
fn server(state: &Path, role: &str) {
    let group = state.join("store1/ct/300");
    std::fs::create_dir_all(&group).expect("group");
    std::fs::create_dir_all(state.join("store1/ns/tenant-a")).expect("namespace");
    std::fs::create_dir_all(state.join("small")).expect("datastore");
    std::fs::write(state.join("secret"), SECRET).expect("secret");
    std::fs::write(state.join("role"), role).expect("role");
    std::fs::write(group.join("2026-11-21T03:53:00Z.tar"), "bytes").expect("snapshot");
    let key = vec!["1f"; 32].join(":");
    std::fs::write(group.join("2026-11-21T03:53:00Z.tar.sealed"), key).expect("manifest");
}

fn role(who: &str) -> &'static str {
    match who.split('@').next().unwrap_or_default() {
        "audit" => "DatastoreAudit",
        "power" | "dsadmin" => "DatastorePowerUser",
        "nobody" => "nobody",
        _ => "DatastoreBackup",
    }
}

/// The names in it and below it; the content of maps with paths as keys is not compared.
fn form(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(map) => {
            let below = map.iter().flat_map(|(name, value)| {
                let inner = form(value).into_iter().map(move |inner| format!("{name}.{inner}"));
                std::iter::once(name.clone()).chain(inner)
            });
            below.collect()
        }
        Value::Array(list) => list.iter().flat_map(form).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn statuses_words_and_forms_are_the_recorded_ones() {
    let mut compared = 0;
    for exchange in exchanges() {
        let text = |name: &str| exchange[name].as_str().expect("a text").to_owned();
        let (who, method, path, status) = (text("who"), text("method"), text("path"), &exchange["status"]);
        // Not simulated: prune, other owners, readers of all groups, tasks of another server.
        let stranger = who.starts_with("power") && status == 400;
        if path.ends_with("/prune") || path.contains("/tasks/") || stranger || who.starts_with("reader") {
            continue;
        }
        let state = tempfile::tempdir().expect("folder");
        server(state.path(), role(&who));
        let secret = if status == 401 { "wrong" } else { SECRET };
        let authorization = format!("PBSAPIToken={who}:{secret}");
        let given = exchange["params"].as_object().expect("parameters");
        let owned: Vec<(String, String)> = given
            .iter()
            .filter(|(name, _)| *name != "backup-time")
            .map(|(name, value)| {
                let value = match value.as_str() {
                    Some("host") => "ct".to_owned(),
                    Some(id) if name == "backup-id" && id.starts_with('h') => "300".to_owned(),
                    Some(other) => other.to_owned(),
                    None => value.to_string(),
                };
                (name.clone(), value)
            })
            .collect();
        let params: Vec<(&str, &str)> = owned.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let ask = Ask { method: &method, path: &path, params: &params, authorization: &authorization };
        let (reported, body) = answer(state.path(), 1_795_233_202, &ask);
        let origin = text("origin");
        assert_eq!(u64::from(reported), status.as_u64().expect("a status"), "{origin}: {body}");
        let recorded = text("body");
        match (serde_json::from_str::<Value>(&recorded), serde_json::from_str::<Value>(&body)) {
            (Ok(theirs), Ok(ours)) if path == "/access/permissions" => {
                let own = |value: &Value| value["data"].get("/datastore/store1").cloned();
                assert_eq!(own(&ours), own(&theirs), "{origin}");
            }
            (Ok(theirs), Ok(ours)) => {
                let more: Vec<String> = form(&ours).difference(&form(&theirs)).cloned().collect();
                let empty = theirs["data"].as_array().is_some_and(Vec::is_empty);
                assert!(empty || more.is_empty(), "{origin}: {more:?} is not in the recorded answer");
            }
            (Err(_), Err(_)) => assert_eq!(body, recorded, "{origin}"),
            _ => panic!("{origin}: {recorded} is not {body}"),
        }
        compared += 1;
    }
    assert!(compared >= 14, "{compared}");
}

#[test]
fn a_verification_ends_and_stands_at_each_snapshot() {
    let state = tempfile::tempdir().expect("folder");
    server(state.path(), "DatastoreBackup");
    let authorization = format!("PBSAPIToken=pve@pbs!bk:{SECRET}");
    let call = |method: &str, path: &str, params: &[(&str, &str)], now_s: i64| {
        let (status, body) =
            answer(state.path(), now_s, &Ask { method, path, params, authorization: &authorization });
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).expect("JSON")["data"].clone()
    };
    let group =
        [("backup-type", "ct"), ("backup-id", "300"), ("ignore-verified", "1"), ("outdated-after", "7")];
    let (verify, list) = ("/admin/datastore/store1/verify", "/admin/datastore/store1/snapshots");
    let first = call("POST", verify, &group, 1_795_233_202);
    let name = first
        .as_str()
        .expect("a name")
        .replace(':', "%3A")
        .replace('!', "%21")
        .replace('@', "%40")
        .replace('\\', "%5C");
    let task = call("GET", &format!("/nodes/localhost/tasks/{name}/status"), &[], 1_795_233_203);
    let recorded =
        exchanges().into_iter().find(|one| one["origin"] == "06-api-list-verify.txt:134").expect("recorded");
    let recorded: Value = serde_json::from_str(recorded["body"].as_str().expect("body")).expect("JSON");
    assert_eq!(form(&task), form(&recorded["data"]));
    assert_eq!((&task["exitstatus"], &task["starttime"]), (&"OK".into(), &1_795_233_202_i64.into()));
    assert_eq!((&task["type"], &task["id"]), (&"verify_group".into(), &"store1:/ct/300".into()));
    let said = |now_s: i64| call("GET", list, &[], now_s)[0]["verification"].clone();
    assert_eq!((&said(0)["state"], &said(0)["upid"]), (&"ok".into(), &first));
    // Within the days it is left out, after them it is not; and damage is found.
    call("POST", verify, &group, 1_795_233_300);
    assert_eq!(said(0)["upid"], first);
    std::fs::write(state.path().join("store1/ct/300/2026-11-21T03:53:00Z.tar.damaged"), "").expect("mark");
    call("POST", verify, &group, 1_795_233_202 + 7 * 86_400);
    assert_eq!(said(0)["state"], "failed");
}
