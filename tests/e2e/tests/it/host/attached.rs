//! Tests of a disk that the agent keeps mounted.

use std::time::Instant;

use serde_json::{Value, json};

use super::disks::{SPOT, ask, check, seen_by_pid_1};
use super::stand::Stand;
use super::story::{SOON, apply};

const MARKER: &str = "/mnt/holdfast/usb1/.holdfast/target.json";

/// The document names the disk, the operator signs for it, root makes the agent's folder on it; the rest happens by
/// itself.
pub fn by_signature(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("holdfast sign box1 usb1: attach_storage");
    assert_eq!(ask(stand, r#"{"verb":"unmount","target":"usb1"}"#)["ok"], true);
    goal(stand, "attached");
    until(stand, "held");
    machine.refuses(&format!("grep -q ' {SPOT} ' /proc/1/mountinfo"));
    let job = sign(stand, "it is for the photographs");
    let unmarked = until(stand, "unmarked");
    stand.saw(&format!("the agent's own loop: {}", seen_by_pid_1(stand)));
    // From now on it is a disk that was mounted before the agent started.
    machine.does("systemctl restart agentd");
    let said = until(stand, "unmarked");
    assert_eq!(said["reason"], unmarked["reason"]);
    machine.does(quoted(said["reason"].as_str().unwrap()));
    let mounted = until(stand, "mounted");
    stand.saw(&format!("{}, {} durable writes a second", mounted["device"], mounted["iops"]));
    let marker = machine.reports(&format!("cat {MARKER}"));
    assert_eq!((&marker["target"], &marker["mark"]), (&json!("usb1"), &json!(job)));
    assert_eq!(machine.does(&format!("stat -c '%U %a' {MARKER}")), "holdfast 600");
    assert_eq!(check(stand, "disk usb1")["state"], "good");
}

/// The file system accepts no write any more, as after errors of its device, and the mount stays as it is.
pub fn fails(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("the attached disk works no more under its mount");
    machine.does(&format!("mount -o remount,ro {SPOT}"));
    let wrong = until(stand, "wrong");
    stand.saw(&format!("told: {}", wrong["reason"]));
    assert!(wrong["reason"].as_str().unwrap().contains("it takes no write"), "{wrong}");
    machine.does(&format!("mount -o remount,rw {SPOT}"));
    until(stand, "mounted");
}

/// The disk is removed, another one has its UUID, it returns empty, and returns as it was. Only the last is accepted.
pub fn out_and_in(stand: &Stand) {
    let machine = &stand.machine;
    let marker = machine.does(&format!("cat {MARKER}"));
    stand.step("the attached disk drops, is exchanged, is emptied, and returns");
    let gone = pull_out(stand);
    stand.saw(&format!("told as dropped after {:.1} s: {}", gone.elapsed().as_secs_f32(), reason(stand)));
    machine.refuses(&format!("runuser -u holdfast -- touch {SPOT}/x"));
    assert_eq!(machine.does(&format!("find {SPOT} -mindepth 1 | wc -l")), "0", "nothing on the root disk");
    machine.until("the hub's word of it", SOON, "holdfast storage list box1 --output json", |said| {
        said.contains("\"dropped\"")
    });

    stand.disk.put_in_another(&stand.folder);
    let wrong = until(stand, "wrong");
    stand.saw(&format!("another drive: {}", wrong["reason"]));
    machine.refuses(&format!("grep -q ' {SPOT} ' /proc/1/mountinfo"));
    stand.disk.pull_out();
    stand.disk.until_out(|| ());

    stand.disk.put_in();
    back(stand, &marker);
    pull_out(stand);
    stand.disk.empty();
    stand.disk.put_in();
    let wrong = until(stand, "wrong");
    stand.saw(&format!("emptied: {}", wrong["reason"]));
    machine.until("it to be let go", SOON, "cat /proc/1/mountinfo", |said| !said.contains(SPOT));
    stand.disk.pull_out();
    stand.disk.until_out(|| ());
    stand.disk.fill_again();
    stand.disk.put_in();
    back(stand, &marker);
}

/// After a restart of the host no operator has to do anything.
pub fn is_back(stand: &Stand) {
    let mounted = until(stand, "mounted");
    stand.saw(&format!("usb1 is mounted again, {}: {}", mounted["device"], seen_by_pid_1(stand)));
    assert!(mounted["iops"].is_number(), "what was measured once is kept: {mounted}");
    assert_eq!(stand.machine.reports(&format!("cat {MARKER}"))["target"], "usb1");
}

/// After another signature, the agent unmounts it.
pub fn let_go(stand: &Stand) {
    stand.step("holdfast sign box1 usb1: detach_storage");
    goal(stand, "decommissioned");
    sign(stand, "the photographs moved");
    until(stand, "detached");
    let table = "cat /proc/1/mountinfo";
    stand.machine.until("it to be unmounted", SOON, table, |said| !said.contains(SPOT));
}

fn goal(stand: &Stand, state: &str) {
    let target = json!({
        "name": "usb1", "class": "slow", "role": "bulk-data", "state": state, "label": "grey, 64 MB",
        "backend": { "usb": { "uuid": stand.disk.uuid } }, "default": false, "schedulable": false,
    });
    apply(stand, &json!([target]), &format!("usb1 shall be {state}"));
}

/// Signs what waits for the target, and waits until it is done; gives the job.
fn sign(stand: &Stand, reason: &str) -> String {
    let machine = &stand.machine;
    machine.until("the draft at the hub", SOON, "holdfast host show box1 --output json", |said| {
        serde_json::from_str::<Value>(said).is_ok_and(|host| {
            let waiting = host["sections"]["waiting"].as_array().cloned().unwrap_or_default();
            waiting.iter().any(|one| one["payload"].as_str().is_some_and(|payload| payload.contains("usb1")))
        })
    });
    let signed = machine.reports(&format!(
        "holdfast sign box1 usb1 --key /root/key --confirm usb1 --reason '{reason}' --submit --output json"
    ));
    let job = signed["job"].as_str().unwrap().to_owned();
    let end = machine.reports(&format!("holdfast job watch box1 {job} --timeout 120 --output json"));
    assert_eq!(end["report"]["state"], "done", "{end:#}");
    job
}

/// Pulls the mounted disk out of the host. A mount that is made again before the disk is out is removed, too.
fn pull_out(stand: &Stand) -> Instant {
    stand.disk.pull_out();
    stand.disk.until_out(|| {
        // Fails where nothing is mounted any more, which is intended.
        let _gone = stand.machine.tries(&format!("umount {SPOT}"));
    });
    let gone = Instant::now();
    until(stand, "dropped");
    gone
}

fn back(stand: &Stand, marker: &str) {
    until(stand, "mounted");
    assert_eq!(stand.machine.does(&format!("cat {MARKER}")), marker, "as it was");
    stand.saw(&format!("it is back by itself: {}", seen_by_pid_1(stand)));
}

/// Waits until the agent reports this status of the target.
fn until(stand: &Stand, status: &str) -> Value {
    let line = "agentd storage list --output json";
    let wanted = |said: &str| of(said).filter(|target| target["status"] == status);
    let said = stand.machine.until(status, SOON, line, |said| wanted(said).is_some());
    wanted(&said).unwrap()
}

fn of(said: &str) -> Option<Value> {
    let targets: Value = serde_json::from_str(said).ok()?;
    targets.as_array()?.iter().find(|target| target["name"] == "usb1").cloned()
}

fn reason(stand: &Stand) -> String {
    let said = stand.machine.does("agentd storage list --output json");
    of(&said).map(|target| target["reason"].to_string()).unwrap_or_default()
}

/// The command line that the reason shows to the operator.
fn quoted(reason: &str) -> &str {
    reason.split('`').nth(1).unwrap_or_else(|| panic!("no line to run: {reason}"))
}
