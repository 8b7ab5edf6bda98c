//! Attacks on quotas and lanes.
//!
//! In: guests with tokens. Out: faults, and one line of figures. The hostile guest requests snapshots and backups until
//! it is refused, and its backups wait in its lane. Meanwhile one neighbour has a backup with a quiesce window and
//! another a snapshot. Both finish while work of the hostile guest still waits, so no neighbour waits for all of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use e2e::wait;
use serde_json::{Value, json};

use super::super::test_bridge::within;
use super::client::{Guest, PATIENCE, Token};
use super::net::Net;

/// More than any quota: snapshots of a guest, and backups in its lane.
const ATTEMPTS: usize = 24;

/// Backups that a guest may request in a day.
const BACKUPS_MAX: usize = 12;

/// The errors for a guest that requests more than it may have.
const FULL: &[&str] = &["QUOTA", "BUSY"];

/// What the hostile guest was given, and how it was refused.
struct Filled {
    /// Requests for work that waits already are answered with that work.
    operations: BTreeSet<String>,
    refused: Option<String>,
}

fn fill(guest: &Guest, kind: &str, body: impl Fn(usize) -> Value) -> Filled {
    let mut filled = Filled { operations: BTreeSet::new(), refused: None };
    let path = format!("/v1/{kind}");
    for number in 0..ATTEMPTS {
        let answer =
            guest.ask_once("POST", &path, &body(number).to_string(), &format!("{kind}-{number}")).unwrap();
        match answer.body["data"]["operation"].as_str() {
            Some(operation) => drop(filled.operations.insert(operation.to_owned())),
            None => {
                filled.refused = Some(answer.code().to_owned());
                break;
            }
        }
    }
    filled
}

fn status(guest: &Guest, operation: &str) -> std::io::Result<Value> {
    let answer = guest.ask("GET", &format!("/v1/operations/{operation}?wait=5s"), Token::Own, "")?;
    Ok(answer.body["data"]["status"].clone())
}

fn is_over(status: &Value) -> bool {
    ["done", "failed", "undone", "parked", "cancelled"].iter().any(|over| status == over)
}

/// A backup with a window: requested, granted, quiesced, captured, released. Returns how long the stacks were stopped.
fn window(guest: &Guest) -> Result<Duration, String> {
    let ask = |method: &str, path: &str, body: Value| {
        let answer = guest
            .ask_once(method, path, &body.to_string(), &path.replace('/', "-"))
            .map_err(|error| error.to_string())?;
        if answer.status >= 300 {
            Err(format!("{method} {path}: {answer:?}"))
        } else {
            Ok(answer.body["data"].clone())
        }
    };
    let opened = ask("POST", "/v1/quiesce-windows", json!({}))?;
    let id =
        opened["id"].as_str().or(opened["operation"].as_str()).ok_or(format!("no id: {opened}"))?.to_owned();
    let path = format!("/v1/quiesce-windows/{id}");
    let until = |wanted: &str| {
        let mut last = Value::Null;
        wait::until(&format!("the window is {wanted}"), PATIENCE, || {
            last = guest.ask("GET", &format!("{path}?wait=5s"), Token::Own, "")?.body["data"].clone();
            Ok((last["phase"] == wanted || last["phase"] == "expired" || last["phase"] == "cancelled")
                .then_some(()))
        })
        .map_err(|error| format!("{error:#}: {last}"))?;
        if last["phase"] == wanted { Ok(last.clone()) } else { Err(format!("wanted {wanted}: {last}")) }
    };
    until("granted")?;
    let stopped = Instant::now();
    ask("PUT", &format!("{path}/quiesced"), json!({ "stacks": [] }))?;
    until("captured")?;
    let still = stopped.elapsed();
    ask("PUT", &format!("{path}/released"), json!({ "begun_ms_ago": 0 }))?;
    let end = until("released")?;
    let is_quiesced = end["label"]["consistency"] == "application";
    if is_quiesced { Ok(still) } else { Err(format!("its backup is not of standing programs: {end}")) }
}

fn snapshot(guest: &Guest) -> Result<(), String> {
    let answer = guest
        .ask_once("POST", "/v1/snapshots", r#"{"name":"before-work"}"#, "before-work")
        .map_err(|error| error.to_string())?;
    let operation = answer.body["data"]["operation"].as_str().ok_or(format!("{answer:?}"))?.to_owned();
    let end = wait::until("the snapshot", PATIENCE, || {
        let status = status(guest, &operation)?;
        Ok(is_over(&status).then_some(status))
    });
    match end {
        Ok(status) if status == "done" => Ok(()),
        other => Err(format!("the snapshot: {other:?}")),
    }
}

/// Runs the attack, ends the hostile guest's remaining work, and returns faults and figures.
pub fn lanes(net: &Net, hostile: &Guest, neighbours: &[Guest]) -> (Vec<String>, String) {
    let mut faults = Vec::new();
    // Backups first: they are the slow ones, and one of the whole host runs at a time.
    let (backups, snapshots) = within(net.guest(hostile.number), || {
        let backups = fill(hostile, "backups", |_| json!({}));
        (backups, fill(hostile, "snapshots", |number| json!({ "name": format!("fill-{number}") })))
    });
    if backups.operations.is_empty() || backups.operations.len() > BACKUPS_MAX {
        faults.push(format!("{} backups taken in, then {:?}", backups.operations.len(), backups.refused));
    }
    if !snapshots.refused.as_deref().is_some_and(|code| FULL.contains(&code)) {
        faults.push(format!(
            "{} snapshots taken in, then {:?}",
            snapshots.operations.len(),
            snapshots.refused
        ));
    }
    let [windowed, snapshotted] = neighbours else { panic!("two neighbours") };
    let began = Instant::now();
    let (still, taken) = std::thread::scope(|scope| {
        let window = scope.spawn(|| within(net.guest(windowed.number), || window(windowed)));
        let taken = within(net.guest(snapshotted.number), || snapshot(snapshotted));
        (window.join().unwrap(), taken)
    });
    let took = began.elapsed();
    faults.extend(taken.err());
    let all: Vec<&String> = snapshots.operations.iter().chain(&backups.operations).collect();
    let waiting = within(net.guest(hostile.number), || {
        let open: Vec<&&String> =
            all.iter().filter(|operation| !is_over(&status_now(hostile, operation))).collect();
        for operation in &open {
            let path = format!("/v1/operations/{operation}");
            hostile.ask_once("DELETE", &path, "", &format!("end-{operation}")).unwrap();
        }
        for operation in &open {
            let ended = wait::until("the hostile guest's work", PATIENCE, || {
                Ok(is_over(&status(hostile, operation)?).then_some(()))
            });
            faults.extend(ended.err().map(|error| format!("{error:#}")));
        }
        open.len()
    });
    if waiting == 0 {
        faults.push("the neighbours waited for all that the hostile guest had asked for".to_owned());
    }
    let still = still.unwrap_or_else(|fault| {
        faults.push(fault);
        Duration::ZERO
    });
    let figures = format!(
        "{} snapshots and {} backups of the hostile guest were taken in, then {:?} and {:?}; its neighbours were done after {} ms \
         (programs stood still for {} ms) while {waiting} of them waited",
        snapshots.operations.len(),
        backups.operations.len(),
        snapshots.refused,
        backups.refused,
        took.as_millis(),
        still.as_millis()
    );
    (faults, figures)
}

fn status_now(guest: &Guest, operation: &str) -> Value {
    let answer = guest.ask("GET", &format!("/v1/operations/{operation}"), Token::Own, "");
    answer.map_or(Value::Null, |answer| answer.body["data"]["status"].clone())
}
