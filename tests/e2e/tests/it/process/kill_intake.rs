//! Tests of the agent killed at the intake of jobs.

use std::path::Path;
use std::time::Duration;

use e2e::document;
use e2e::stage::HOST;
use serde_json::{Value, json};

use super::fire::{Aim, End, Fire};
use super::jobs::{key, lay_down};
use super::stand::{self, well};

/// Where the agent dies, each with a job of its own. The points of the answer come first: later lives begin by
/// reporting older jobs.
const POINTS: [&str; 6] = [
    "mail:before:told",
    "mail:after:told",
    "mail:before:taken",
    "mail:after:taken",
    "operation:before:opened",
    "operation:after:opened",
];

fn is_done(reported: &Value, job: &str) -> bool {
    let jobs = reported["sections"]["jobs"].as_array().cloned().unwrap_or_default();
    jobs.iter().any(|one| one["id"] == job && one["state"] == "done")
}

/// Signs a backup of guest `one` and leaves it at the hub, while no agent runs. Returns the job's id.
fn backup_now(fire: &Fire, key: &Path, file: &Path) -> String {
    let words = ["sign", HOST, "one", "--backup-now", "--reason", "before an update", "--confirm", "one"];
    let more = ["--key", key.to_str().unwrap(), "--out", file.to_str().unwrap(), "--submit"];
    let signed = fire.stand.stage.holdfast(&[&words[..], &more[..]].concat()).unwrap();
    signed["job"].as_str().unwrap().to_owned()
}

#[test]
fn a_job_runs_once_wherever_the_intake_is_killed() {
    let mut stand = stand::enrolled();
    let folder = tempfile::tempdir().unwrap();
    lay_down(&stand, &key(folder.path()));
    stand.stage.start_agent(None).unwrap();
    let guest = document::guest(&stand.stage.ground(), 1, "one", "acme");
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [guest] }), "one guest").unwrap();
    stand.stage.guests_until("one guest", |guests| guests.iter().any(well)).unwrap();
    e2e::wait::until("who may sign is told", Duration::from_secs(60), || {
        let host = stand.stage.holdfast(&["host", "show", HOST])?;
        Ok(host["sections"]["trust"]["operators"].is_string().then_some(()))
    })
    .unwrap();
    stand.stage.kill_agent().unwrap();

    let mut fire = Fire::new(stand);
    let mut jobs = Vec::new();
    for (nth, point) in POINTS.into_iter().enumerate() {
        let (key, file) = (folder.path().join("key"), folder.path().join(format!("job-{nth}.json")));
        let job = backup_now(&fire, &key, &file);
        // A finished job is reported a little later. A life that is to end at that report does not end before.
        let enough = |reported: &Value| !point.ends_with(":told") && is_done(reported, &job);
        let end = fire.live(&Aim::Name(point.to_owned()), enough);
        assert_eq!(end, End::Killed(Some(point.to_owned())), "{point}");
        assert_eq!(fire.live(&Aim::Rest, |reported| is_done(reported, &job)), End::Rested, "{point}");
        jobs.push(job);
    }
    // After each life it was checked that Proxmox had as many tasks as the journals name.
    let backups = || fire.books().operations.values().filter(|operation| operation.kind == "backup");
    let ids: Vec<&str> = backups().map(|operation| operation.id.as_str()).collect();
    assert_eq!(ids, jobs, "each became one operation, under its own id, in their order");
    println!("{} kills at the intake, each job once", POINTS.len());
}
