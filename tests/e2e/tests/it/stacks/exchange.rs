//! Tests of an updated guest agent in a booted guest.
//!
//! It has a guest of its own and runs next to the story of the backups: an agent waits minutes until it takes a guest
//! for silent.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::wait;
use serde_json::{Value, json};

use super::builds::{self, Build, FINDS_NO_BOOT};
use super::guest::Guest;
use super::shop;
use super::stand::{self, Stand};

/// The guest.
const LAB: &str = "lab";
const PROGRAM: &str = "/usr/bin/guestd";
/// A hello a minute, four minutes of silence, a restart; nothing is measured by it.
const TURN: Duration = Duration::from_secs(900);

/// Both cases, one after the other.
pub fn reported(stand: &Stand) -> Guest {
    let lab = stand.made(2, LAB);
    shop::keep_ledger(&lab, "0.5");
    let shipped = Build::shipped(&Stand::program("guestd"));
    let newer = shipped.newer(stand.folder(), &[]);
    let broken = newer.newer(stand.folder(), &[FINDS_NO_BOOT]);
    comes_up(stand, &lab, &shipped, &newer);
    falls_silent(stand, &lab, &newer, &broken);
    lab
}

/// A day later nothing of it is left.
pub fn expires(stand: &mut Stand, lab: &Guest) {
    stand.step(&format!("{LAB}: a day later"));
    assert_eq!(snapshots(stand, lab).len(), 2, "each turn's own");
    stand.stage.stop_agent().unwrap();
    stand.stage.start_agent_ahead(25).unwrap();
    wait::until("its snapshots go", TURN, || Ok(snapshots(stand, lab).is_empty().then_some(()))).unwrap();
}

fn comes_up(stand: &Stand, lab: &Guest, old: &Build, new: &Build) {
    assert!(runs(lab, old), "the one that the golden carries");
    let process = unit(lab, "MainPID");
    intended(stand, new);
    stand.step(&format!("{LAB}: controller {} is offered", new.version));
    let update = ended(stand, 1);
    assert_eq!(update["status"], "done", "{update:#}");
    stand.step(&format!("{LAB}: it runs, and said hello"));
    assert!(lies(lab, PROGRAM, new) && runs(lab, new), "the very bytes");
    assert!(lies(lab, "/usr/bin/guestd.old", old), "the old one is kept for a person");
    assert!(!lab.path("/usr/bin/guestd.new").exists());
    assert_eq!(
        (unit(lab, "MainPID"), unit(lab, "NRestarts").as_str()),
        (process, "0"),
        "the unit saw no stop"
    );
    // The host and the hub have it from its own hello.
    let seen = at_the_box(stand);
    assert_eq!(
        (&seen["controller"]["version"], &seen["controller"]["health"]),
        (&json!(new.version), &json!("well"))
    );
    wait::until("the hub is told, and nobody need do anything", TURN, || {
        Ok(stand.reported(LAB)?.filter(|reported| speaks(reported, new) && codes(reported).is_empty()))
    })
    .unwrap();
    // The state that it could have gone back to is kept for a day.
    assert_eq!(snapshots(stand, lab).len(), 1);
    for step in ["arm_roll_back", "shut_down", "roll_back", "start_again"] {
        assert!(note(&update, step).starts_with("not needed"), "{step}: {update:#}");
    }
}

fn falls_silent(stand: &Stand, lab: &Guest, old: &Build, bad: &Build) {
    intended(stand, bad);
    wait::until("its turn", TURN, || {
        let update = updates(stand)?.into_iter().nth(1);
        Ok(update.filter(|update| step(update, "await_controller")["status"] == "intended"))
    })
    .unwrap();
    stand.step(&format!("{LAB}: controller {} is offered, which ends as soon as it starts", bad.version));
    // A hello each minute is soon enough for everything but this test.
    lab.run(&["systemctl", "restart", "guestd.service"]);
    wait::until("the bad one in its place", TURN, || Ok(lies(lab, PROGRAM, bad).then_some(()))).unwrap();
    let failed = || -> anyhow::Result<Option<()>> { Ok((unit(lab, "Result") != "success").then_some(())) };
    wait::until("its end", TURN, failed).unwrap();
    let silent = lab.run(&["date", "--utc", "+%Y-%m-%dT%H:%M:%S"]);
    // Nothing else in the guest notices.
    let noted = shop::acknowledged(lab);
    let written = wait::until("the database goes on", TURN, || {
        Ok(Some(shop::acknowledged(lab)).filter(|now| *now > noted))
    });
    let written = written.unwrap();
    let update = ended(stand, 2);
    stand.step(&format!("{LAB}: nobody is heard, and nothing is rolled back"));
    assert_eq!(update["status"], "done", "{update:#}");
    for skipped in ["arm_roll_back", "shut_down", "roll_back", "start_again"] {
        assert!(note(&update, skipped).starts_with("not gone"), "{skipped}: {update:#}");
    }
    let reported = wait::until("the operator is told", TURN, || {
        Ok(stand.reported(LAB)?.filter(|reported| codes(reported).contains("CONTROLLER_SILENT")))
    });
    let reported = reported.unwrap();
    let conditions = reported["conditions"].as_array().cloned().unwrap_or_default();
    let words: Vec<&str> = conditions.iter().filter_map(|one| one["message"].as_str()).collect();
    println!("         {words:?}");
    assert!(words.iter().any(|text| text.contains(&bad.version) && text.contains("guestd.old")), "{words:?}");
    assert!(!codes(&reported).contains("CONTROLLER_BAD"), "silence is no verdict: {reported:#}");
    // As the operator is instructed, at the host.
    lab.run(&["mv", "/usr/bin/guestd.old", PROGRAM]);
    lab.run(&["systemctl", "reset-failed", "guestd.service"]);
    lab.run(&["systemctl", "restart", "guestd.service"]);
    wait::until("the one before says hello", TURN, || {
        let reported = stand.reported(LAB)?.filter(|reported| speaks(reported, old));
        Ok(reported.filter(|reported| reported["controller"]["hello_at"].as_str() > Some(silent.trim())))
    })
    .unwrap();
    assert!(lies(lab, PROGRAM, old) && runs(lab, old), "the very bytes");
    database_went_on(lab, written);
    assert_eq!(snapshots(stand, lab).len(), 2);
    audited(stand, old, bad);
    assert_eq!(updates(stand).unwrap().len(), 2, "nobody gets it once more");
}

/// Every row that was acknowledged is there, without a gap.
fn database_went_on(lab: &Guest, written: u64) {
    let said = shop::asked(lab, "ledger", "select count(*), max(n) from ledger");
    let (rows, last) = said.split_once('|').expect("two numbers");
    let (rows, last): (u64, u64) = (rows.parse().unwrap(), last.parse().unwrap());
    assert!(rows == last && last >= written, "{rows} rows to {last}, {written} were acknowledged");
    println!("         {rows} rows, {written} of them from before the guest was told silent");
}

/// The audit chain records all of it, and is valid.
fn audited(stand: &Stand, good: &Build, bad: &Build) {
    stand.stage.agent_does(&["audit", "verify"]).unwrap();
    let shown = stand.stage.agent_does(&["audit", "show", "--last", "1000"]).unwrap();
    let line = |words: &[&str]| shown.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["controller_silent", &bad.version, &bad.sha256]), "{shown}");
    assert!(!line(&["controller_silent", &good.sha256]) && !line(&["controller_bad"]), "{shown}");
    assert!(line(&["approve_release", "signed by ada"]), "{shown}");
}

/// A person imports the program at the host, an operator signs for what the host recorded, and the document requests
/// it.
fn intended(stand: &Stand, build: &Build) {
    let file = build.file.to_str().unwrap();
    let draft = stand.stage.agent_does(&["release", "import", file, "--version", &build.version]).unwrap();
    assert!(draft.contains(&build.sha256), "{draft}");
    let request = stand.folder().join(format!("release-{}.json", build.version));
    std::fs::write(&request, draft).unwrap();
    let what = ["--draft", request.to_str().unwrap(), "--confirm", e2e::stage::HOST];
    stand.sign(&what, &format!("controller {}", build.version));
    stand.goal(&format!("controller {}", build.version), |document| {
        stand::guest_in(document, LAB)["controller"] =
            json!({ "version": build.version, "sha256": build.sha256 });
    });
}

/// What the host reports of this guest.
fn at_the_box(stand: &Stand) -> Value {
    let status = stand.stage.agent_says(&["status"]).unwrap();
    let guests = status["sections"]["guests"].as_array().cloned().unwrap_or_default();
    guests.into_iter().find(|guest| guest["name"] == LAB).unwrap_or_else(|| panic!("{status:#}"))
}

fn speaks(reported: &Value, build: &Build) -> bool {
    reported["controller"]["version"] == build.version.as_str() && reported["controller"]["health"] == "well"
}

fn codes(reported: &Value) -> BTreeSet<&str> {
    reported["conditions"].as_array().into_iter().flatten().filter_map(|one| one["code"].as_str()).collect()
}

/// The exchanges of this guest, oldest first.
fn updates(stand: &Stand) -> anyhow::Result<Vec<Value>> {
    let status = stand.stage.agent_says(&["status"])?;
    let all = status["sections"]["operations"].as_array().cloned().unwrap_or_default();
    let is = |one: &Value| one["kind"] == "update_controller" && one["name"] == LAB;
    let mut all: Vec<Value> = all.into_iter().filter(is).collect();
    all.sort_by(|one, two| one["opened_at"].as_str().cmp(&two["opened_at"].as_str()));
    Ok(all)
}

/// The end of the exchange of this number.
fn ended(stand: &Stand, number: usize) -> Value {
    let ended = wait::until("the end of its turn", TURN, || {
        let update = updates(stand)?.into_iter().nth(number - 1);
        Ok(update.filter(|update| update["ended_at"].is_string()))
    });
    ended.unwrap_or_else(|error| panic!("{error}: {:#}", at_the_box(stand)))
}

fn step<'a>(update: &'a Value, name: &str) -> &'a Value {
    let steps = update["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().find(|step| step["name"] == name).unwrap_or(&Value::Null)
}

fn note<'a>(update: &'a Value, name: &str) -> &'a str {
    step(update, name)["note"].as_str().unwrap_or_default()
}

/// Whether a file of the guest's is this build.
fn lies(lab: &Guest, inside: &str, build: &Build) -> bool {
    let path = lab.path(inside);
    path.is_file() && builds::digest(&path) == build.sha256
}

/// Whether the running controller is this build. Its process is checked, not the file on the disk.
fn runs(lab: &Guest, build: &Build) -> bool {
    let process = format!("/proc/{}/exe", unit(lab, "MainPID"));
    lab.run(&["sha256sum", &process]).starts_with(&build.sha256)
}

fn unit(lab: &Guest, property: &str) -> String {
    let property = format!("--property={property}");
    lab.run(&["systemctl", "show", &property, "--value", "guestd.service"]).trim().to_owned()
}

/// The snapshots for a way back, as Proxmox has them.
fn snapshots(stand: &Stand, lab: &Guest) -> BTreeSet<String> {
    let text = stand.stage.configurations().unwrap().remove(&lab.vmid).expect("its configuration");
    let sections = text.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    sections.filter(|name| name.starts_with("update-")).map(str::to_owned).collect()
}
