//! One correlation id, from the click through programs and records.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use e2e::stage::HOST;
use serde_json::Value;

use super::jobs::agentd;
use super::stand::Stand;

/// How long the last report may take.
const REPORTED: Duration = Duration::from_secs(30);

/// Follows a job that is done: by the id of its click alone it is found at the hub, in the agent's report and audit, in
/// the events, and in the logs of both.
pub(super) fn follow(stand: &Stand, job: &str) {
    let shown = stand.stage.holdfast(&["job", "show", HOST, job]).unwrap();
    let id = shown["job"]["correlation_id"].as_str().unwrap().to_owned();
    assert_eq!(shown["job"]["report"]["correlation_id"], id, "the agent's report on the job: {shown:#}");
    let has = |value: &Value| value["correlation_id"] == id.as_str();

    e2e::wait::until("the operation and the events", REPORTED, || {
        let host = stand.stage.holdfast(&["host", "show", HOST])?;
        let operations = host["sections"]["operations"].as_array().cloned().unwrap_or_default();
        let operation = operations.iter().find(|operation| has(operation));
        let events = stand.stage.holdfast(&["events", "--host", HOST])?;
        let events = events.as_array().or(events["items"].as_array()).cloned().unwrap_or_default();
        let kinds: BTreeSet<&str> =
            events.iter().filter(|event| has(event)).filter_map(|event| event["kind"].as_str()).collect();
        let all = ["job_queued", "job_succeeded"].iter().all(|kind| kinds.contains(kind));
        Ok((operation.is_some_and(|operation| operation["id"] == job) && all).then_some(()))
    })
    .unwrap();

    let audit = String::from_utf8(agentd(stand, &["audit", "show", "--last", "1000"]).stdout).unwrap();
    let line = audit.lines().find(|line| line.contains("job_taken")).unwrap();
    assert!(line.contains(&format!("(correlation {id})")), "{line}");

    let of_agent = actions(&stand.stage.agent_log(), "agentd", &id);
    assert!(["job_taken", "destroy"].iter().all(|action| of_agent.contains(*action)), "{of_agent:?}");
    let of_hub = actions(&stand.stage.agent_log().with_file_name("hubd.log"), "hubd", &id);
    assert!(["job_queued", "job_succeeded"].iter().all(|action| of_hub.contains(*action)), "{of_hub:?}");
}

/// The actions of the entries of a log that have this correlation id. Every line is one entry, in the agreed form.
fn actions(log: &Path, service: &str, id: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(log).unwrap();
    let entries = text.lines().filter(|line| line.starts_with('{')).map(|line| {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(entry["timestamp"].is_string() && entry["service"] == service, "{line}");
        entry
    });
    let of_it = entries.filter(|entry| entry["correlation_id"] == id);
    of_it.filter_map(|entry| entry["action"].as_str().map(str::to_owned)).collect()
}
