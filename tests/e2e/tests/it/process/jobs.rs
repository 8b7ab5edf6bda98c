//! Tests of a signed destroy with the real programs.

use std::path::Path;
use std::process::{Command, Output};

use e2e::document;
use e2e::stage::HOST;
use serde_json::{Value, json};

use super::correlation;
use super::stand::{self, Stand, well};

/// A key of the operator's, and its line for the operators file.
pub(super) fn key(folder: &Path) -> String {
    e2e::stage::make_key(folder, "ada").unwrap()
}

/// Root writes the operators file, where the settings say, before the agent starts.
pub(super) fn lay_down(stand: &Stand, operators: &str) {
    let folder = stand.stage.state().parent().unwrap().to_owned();
    let (names, policy) = (folder.join("operators"), folder.join("policy.toml"));
    std::fs::write(&names, operators).unwrap();
    std::fs::write(&policy, "version = 1\n[verbs.destroy_guest]\ndelay_s = 2\n").unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the program under test")]
pub(super) fn agentd(stand: &Stand, words: &[&str]) -> Output {
    let programs = std::env::var_os("HOLDFAST_E2E_PROGRAMS").unwrap();
    let config = stand.stage.state().parent().unwrap().join("agent.toml");
    Command::new(Path::new(&programs).join("agentd"))
        .args(words)
        .env("HOLDFAST_AGENT_CONFIG", config)
        .output()
        .unwrap()
}

#[test]
fn a_guest_is_let_go_by_a_signature_and_the_audit_reports_it() {
    let mut stand = stand::enrolled();
    let folder = tempfile::tempdir().unwrap();
    lay_down(&stand, &key(folder.path()));
    stand.stage.start_agent(None).unwrap();
    let ground = stand.stage.ground();
    let (one, two) = (document::guest(&ground, 1, "one", "acme"), document::guest(&ground, 2, "two", "acme"));
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one, two] }), "two guests").unwrap();
    stand.stage.guests_until("two guests", |guests| guests.len() == 2 && guests.iter().all(well)).unwrap();
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one] }), "the second goes").unwrap();
    e2e::wait::until("the draft of its destroy", std::time::Duration::from_secs(60), || {
        let host = stand.stage.holdfast(&["host", "show", HOST])?;
        let waiting = host["sections"]["waiting"].as_array().cloned().unwrap_or_default();
        let known = host["sections"]["trust"]["operators"].is_string();
        Ok((known && waiting.iter().any(|one| one["payload"] != "")).then_some(()))
    })
    .unwrap();

    let (key, file) = (folder.path().join("key"), folder.path().join("job.json"));
    let (key, file) = (key.to_str().unwrap(), file.to_str().unwrap());
    let sign = ["sign", HOST, "two", "--key", key, "--reason", "the customer left", "--out", file];
    let (code, words) = stand.stage.holdfast_refuses(&[&sign[..], &["--confirm", "one"]].concat()).unwrap();
    assert!(code == 1 && words.contains("nothing was signed"), "{words}");
    let signed = stand.stage.holdfast(&[&sign[..], &["--confirm", "two", "--submit"]].concat()).unwrap();
    let job = signed["job"].as_str().unwrap();
    let end = stand.stage.holdfast(&["job", "watch", HOST, job, "--timeout", "120"]).unwrap();
    assert_eq!(end["report"]["state"], "done", "{end:#}");
    correlation::follow(&stand, job);
    let guests = stand
        .stage
        .guests_until("one guest is left", |guests| {
            guests.iter().filter(|guest| guest["status"] != "foreign").count() == 1
        })
        .unwrap();
    assert!(guests.iter().any(|guest| guest["name"] == "one" && well(guest)), "{guests:#?}");
    // The same text again is no second job; the hub reports the result of the first.
    let again = stand.stage.holdfast(&["job", "submit", HOST, file]).unwrap();
    assert_eq!(again["report"]["state"], "done", "{again:#}");

    // The audit chain records it, on the host and outside, and its head is the one that the hub received.
    let verified = agentd(&stand, &["audit", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let shown = agentd(&stand, &["audit", "show", "--last", "1000"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for line in ["operators_changed", "job_taken", "destroy_guest signed by ada", "job_done"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let export = agentd(&stand, &["audit", "export"]).stdout;
    let exported = folder.path().join("audit.jsonl");
    std::fs::write(&exported, &export).unwrap();
    let verify = ["audit", "verify", exported.to_str().unwrap(), "--host", HOST];
    let holds: Value =
        e2e::wait::until("the hub's head in the export", std::time::Duration::from_secs(30), || {
            std::fs::write(&exported, agentd(&stand, &["audit", "export"]).stdout)?;
            Ok(stand.stage.holdfast(&verify).ok())
        })
        .unwrap();
    assert!(holds["lines"].as_u64().unwrap() > 20, "{holds:#}");
    let text = String::from_utf8(export).unwrap();
    std::fs::write(&exported, text.replacen("the customer left", "nobody knows why", 1)).unwrap();
    let (code, words) = stand.stage.holdfast_refuses(&verify).unwrap();
    assert!(code == 1 && words.contains("is broken"), "{words}");
}
