//! Tests of a lost host and its replacement.

use std::time::Duration;

use e2e::document;
use e2e::stage::HOST;
use e2e::wait::until;
use serde_json::{Value, json};

use super::jobs::{agentd, key, lay_down};
use super::stand::{self, Stand, well};

pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// Problem codes that the agent reports of itself.
fn problems(stand: &Stand) -> Vec<String> {
    let status = stand.stage.agent_at_its_listener().unwrap_or_default();
    let problems = status["sections"]["agent"]["problems"].as_array().cloned().unwrap_or_default();
    problems.iter().filter_map(|problem| problem["code"].as_str().map(str::to_owned)).collect()
}

pub(super) fn reported(stand: &Stand, code: &str) {
    until(code, PATIENCE, || Ok(problems(stand).iter().any(|reported| reported == code).then_some(())))
        .unwrap();
}

/// Until the hub has a report of the running agent, of its host and its guests.
pub(super) fn heard(stand: &Stand) -> Value {
    let started = |status: &Value| status["sections"]["agent"]["started_at"].as_str().map(str::to_owned);
    until("the hub hears this agent", PATIENCE, || {
        let Some(own) = stand.stage.agent_at_its_listener().as_ref().and_then(started) else {
            return Ok(None);
        };
        let host = stand.stage.holdfast(&["host", "show", HOST])?;
        let same = started(&host) == Some(own) && host["sections"]["guests"].is_array();
        Ok(same.then_some(host))
    })
    .unwrap()
}

#[test]
fn a_new_box_takes_the_place_and_the_old_one_stands_still() {
    let mut stand = stand::enrolled();
    let folder = tempfile::tempdir().unwrap();
    lay_down(&stand, &key(folder.path()));
    stand.stage.start_agent(None).unwrap();
    let one = document::guest(&stand.stage.ground(), 1, "one", "acme");
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one] }), "one guest").unwrap();
    stand
        .stage
        .guests_until("one guest", |guests| guests.iter().any(|g| g["name"] == "one" && well(g)))
        .unwrap();
    until("the hub knows this life", PATIENCE, || {
        let host = stand.stage.holdfast(&["host", "show", HOST])?;
        Ok(host["sections"]["trust"]["operators"].is_string().then_some(()))
    })
    .unwrap();
    let before = stand.stage.guests().unwrap().len();

    // The host is gone, and with it its state.
    stand.stage.kill_agent().unwrap();
    stand.stage.change_state("lost", None).unwrap();
    let key = folder.path().join("key");
    let new_key = stand.stage.agent_does(&["enroll", "--show-key"]).unwrap();
    let words = ["host", "restore", HOST, "--key", key.to_str().unwrap(), "--reason", "the box burnt"];
    let order = [&words[..], &["--new-key", new_key.trim()]].concat();
    let (code, words) = stand.stage.holdfast_refuses(&[&order[..], &["--confirm", "box2"]].concat()).unwrap();
    assert_eq!(code, 1, "{words}");
    let invite = stand.stage.holdfast(&[&order[..], &["--confirm", HOST]].concat()).unwrap();
    let line = invite["code"].as_str().unwrap();
    let plain = stand.stage.enrol_with(line, &[]).unwrap_err().to_string();
    assert!(plain.contains("--restore"), "{plain}");
    stand.stage.enrol_with(line, &["--restore"]).unwrap();

    // The new one holds the document back: it would make the guest anew, empty.
    stand.stage.start_agent(None).unwrap();
    reported(&stand, "RESTORING");
    let host = heard(&stand);
    assert_eq!((&host["host"]["wanted"], &host["host"]["held"]), (&json!(1), &json!(0)), "{host:#}");
    assert_eq!(host["sections"]["guests"].as_array().unwrap().len(), before, "{host:#}");
    assert!(host["sections"]["operations"].as_array().is_none_or(Vec::is_empty), "{host:#}");
    stand.stage.stop_agent().unwrap();

    // The old one starts again: it receives the order and does nothing, also after a restart.
    stand.stage.change_state("new", Some("lost")).unwrap();
    stand.stage.start_agent(None).unwrap();
    reported(&stand, "REPLACED");
    let words = stand.stage.agent_does(&["status"]).unwrap();
    assert!(words.contains("another box took this one's place, ordered by ada"), "{words}");
    stand.stage.kill_agent().unwrap();
    stand.stage.start_agent(None).unwrap();
    reported(&stand, "REPLACED");
    let audit = agentd(&stand, &["audit", "show", "--last", "100"]);
    let audit = String::from_utf8_lossy(&audit.stdout);
    assert!(audit.contains("ordered by ada: the box burnt"), "{audit}");
    stand.stage.stop_agent().unwrap();

    // The new one is not harmed by it, and takes the document once the guests are on record as lost.
    stand.stage.change_state("lost", Some("new")).unwrap();
    stand.stage.start_agent(None).unwrap();
    reported(&stand, "RESTORING");
    assert_eq!(heard(&stand)["host"]["state"], "online");
    let no_one =
        stand.stage.agent_does(&["enroll", "--take-up", "--without", "two"]).unwrap_err().to_string();
    assert!(no_one.contains("no guest of the lost box is called two"), "{no_one}");
    let words = stand.stage.agent_does(&["enroll", "--take-up"]).unwrap();
    assert!(words.starts_with("1 guests of the lost box are on record"), "{words}");
    until("the document is held", PATIENCE, || {
        let host = stand.stage.holdfast(&["host", "show", HOST])?;
        Ok((host["host"]["held"] == json!(1)).then_some(()))
    })
    .unwrap();
    // Only the agent's state was lost, not the node. The guest still exists there. The handover neither makes it twice
    // nor makes it ours.
    let says = |what: &str, words: &str| {
        let guests = stand.stage.guests_until(what, |guests| {
            let one = guests.iter().find(|guest| guest["name"] == "one");
            one.is_some_and(|one| one["conditions"].to_string().contains(words))
        });
        guests.unwrap().len()
    };
    assert_eq!(says("it is told", "handed over as lost"), before);
    stand.stage.agent_does(&["enroll", "--take-up", "--without", "one"]).unwrap();
    says("it is an operator's to adopt", "an operator must adopt it");
}
