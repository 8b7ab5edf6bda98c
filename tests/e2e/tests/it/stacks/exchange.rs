//! Tests of an updated guest agent in a booted guest.
//!
//! It has a guest of its own and runs next to the story of the backups: a guest waits minutes for a build to be confirmed
//! before it puts its previous one back. Nothing is rolled back: the database keeps every row, also those of the turn.

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
/// What the timer of an exchange leaves in a guest.
const UNITS: [&str; 3] = [
    "/etc/systemd/system/holdfast-take-back.timer",
    "/etc/systemd/system/holdfast-take-back.service",
    "/etc/systemd/system/timers.target.wants/holdfast-take-back.timer",
];
/// A hello a minute, eight minutes of trial, a restart; nothing is measured by it.
const TURN: Duration = Duration::from_secs(1_200);

/// Both cases, one after the other.
pub fn reported(stand: &Stand) -> Guest {
    let lab = stand.made(2, LAB);
    shop::keep_ledger(&lab, "0.5");
    let shipped = Build::shipped(&Stand::program("guestd"));
    let newer = shipped.newer(stand.folder(), &[]);
    let broken = newer.newer(stand.folder(), &[FINDS_NO_BOOT]);
    comes_up(stand, &lab, &shipped, &newer);
    ends_at_once(stand, &lab, &newer, &broken);
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
    released(stand, new);
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
    // For a person, for a day.
    assert_eq!(snapshots(stand, lab).len(), 1);
    wait::until("it is confirmed in the guest", TURN, || Ok((!on_trial(lab)).then_some(()))).unwrap();
    assert!(runs(lab, new) && unit(lab, "NRestarts") == "0");
}

fn ends_at_once(stand: &Stand, lab: &Guest, old: &Build, bad: &Build) {
    imported(stand, bad);
    wait::until("its turn", TURN, || {
        let update = updates(stand)?.into_iter().nth(1);
        Ok(update.filter(|update| step(update, "await_controller")["status"] == "intended"))
    })
    .unwrap();
    stand.step(&format!("{LAB}: controller {} is offered, which ends as soon as it starts", bad.version));
    // A hello each minute is soon enough for everything but this test.
    lab.run(&["systemctl", "restart", "guestd.service"]);
    wait::until("the bad one in its place", TURN, || Ok(lies(lab, PROGRAM, bad).then_some(()))).unwrap();
    assert!(on_trial(lab), "the way back was there before the exchange");
    let failed = || -> anyhow::Result<Option<()>> { Ok((unit(lab, "Result") != "success").then_some(())) };
    wait::until("its end", TURN, failed).unwrap();
    // Nothing else in the guest notices.
    let noted = shop::acknowledged(lab);
    let written = wait::until("the database goes on", TURN, || {
        Ok(Some(shop::acknowledged(lab)).filter(|now| *now > noted))
    });
    let written = written.unwrap();
    let update = ended(stand, 2);
    stand.step(&format!("{LAB}: the guest put its previous controller back, by itself"));
    assert_eq!(update["status"], "done", "{update:#}");
    assert!(note(&update, "await_controller").contains("put its previous one back"), "{update:#}");
    assert!(lies(lab, PROGRAM, old) && runs(lab, old), "the very bytes");
    wait::until("nothing is on trial", TURN, || Ok((!on_trial(lab)).then_some(()))).unwrap();
    let reported = wait::until("the operator hears of it", TURN, || {
        let reported = stand.reported(LAB)?.filter(|reported| speaks(reported, old));
        Ok(reported.filter(|reported| codes(reported).contains("CONTROLLER_BAD")))
    });
    let reported = reported.unwrap();
    let conditions = reported["conditions"].as_array().cloned().unwrap_or_default();
    let words: Vec<&str> = conditions.iter().filter_map(|one| one["message"].as_str()).collect();
    println!("         {words:?}");
    assert!(words.iter().any(|text| text.contains(&bad.version)), "{words:?}");
    assert!(!codes(&reported).contains("CONTROLLER_SILENT"), "no person is needed: {reported:#}");
    database_went_on(lab, written);
    assert_eq!(snapshots(stand, lab).len(), 2);
    audited(stand, old, bad);
    assert_eq!(updates(stand).unwrap().len(), 2, "it does not get it once more");
}

/// Whether a controller is on trial: its record or a unit of its timer is there.
fn on_trial(lab: &Guest) -> bool {
    let record = std::fs::read_to_string(lab.path("/var/lib/holdfast/exchange.json")).unwrap_or_default();
    record.contains("on_trial") || UNITS.iter().any(|unit| lab.path(unit).symlink_metadata().is_ok())
}

/// Every row that was acknowledged is there, without a gap.
fn database_went_on(lab: &Guest, written: u64) {
    let said = shop::asked(lab, "ledger", "select count(*), max(n) from ledger");
    let (rows, last) = said.split_once('|').expect("two numbers");
    let (rows, last): (u64, u64) = (rows.parse().unwrap(), last.parse().unwrap());
    assert!(rows == last && last >= written, "{rows} rows to {last}, {written} were acknowledged");
    println!("         {rows} rows, {written} of them from before its controller ended");
}

/// The audit chain records all of it, and is valid.
fn audited(stand: &Stand, good: &Build, bad: &Build) {
    stand.stage.agent_does(&["audit", "verify"]).unwrap();
    let shown = stand.stage.agent_does(&["audit", "show", "--last", "1000"]).unwrap();
    let line = |words: &[&str]| shown.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["controller_bad", &bad.version, &bad.sha256]), "{shown}");
    assert!(!line(&["controller_bad", &good.sha256]) && !line(&["controller_silent"]), "{shown}");
    assert!(line(&["approve_release", "signed by ada"]), "{shown}");
}

/// The program is a file of a release at the hub, the document requests it, and an operator signs for what waits. Nobody
/// brings anything to the host.
fn released(stand: &Stand, build: &Build) {
    let (folder, key) = (stand.folder().to_str().unwrap(), stand.key().to_str().unwrap());
    let manifest = stand.folder().join(format!("manifest-{}.json", build.version));
    let manifest = manifest.to_str().unwrap();
    let program = format!("guest_agent={}", build.file.to_str().unwrap());
    let holdfast = |words: &[&str]| stand.stage.holdfast(words).unwrap();
    let (version, days) = (build.version.as_str(), "--expires-in-days");
    holdfast(&[
        "release",
        "manifest",
        "--version",
        version,
        days,
        "30",
        "--out",
        manifest,
        "--file",
        &program,
    ]);
    let signed = holdfast(&["release", "sign", manifest, "--key", key, "--confirm", version]);
    let signed = signed["file"].as_str().expect("where it is");
    holdfast(&["release", "upload", signed, "--files", folder]);
    requested(stand, build);
    stand.sign(&["approve_release", "--confirm", e2e::stage::HOST], &format!("controller {version}"));
}

/// A person imports the program at the host, an operator signs for what the host recorded, and the document requests
/// it.
fn imported(stand: &Stand, build: &Build) {
    let file = build.file.to_str().unwrap();
    let draft = stand.stage.agent_does(&["release", "import", file, "--version", &build.version]).unwrap();
    assert!(draft.contains(&build.sha256), "{draft}");
    let request = stand.folder().join(format!("release-{}.json", build.version));
    std::fs::write(&request, draft).unwrap();
    let what = ["--draft", request.to_str().unwrap(), "--confirm", e2e::stage::HOST];
    stand.sign(&what, &format!("controller {}", build.version));
    requested(stand, build);
}

fn requested(stand: &Stand, build: &Build) {
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
