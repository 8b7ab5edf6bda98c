//! Updates of the agent by signed releases, good and bad.
//!
//! The programs on trial are the package's own with bytes added, so that their digests differ, or small scripts that do
//! what a bad build does. Times are short by root's own settings.

use std::time::Duration;

use serde_json::Value;

use super::machine::Machine;
use super::stand::{Stand, write};
use super::story::{SOON, guest_is_well};

const GATE: &str = "/usr/lib/holdfast/holdfast-agent-gate";

/// A watch looks each half second; a trial is over after 20 seconds.
const SETTINGS: &str = "health_window_s = 5\nhub_wait_s = 7\ndeadline_s = 20\nlook_every_ms = 500\n";

/// The agent asks for an offer a minute after its start; then come the fetch, the trial, and the report.
const ASKED_AND_TRIED: Duration = Duration::from_secs(300);

/// Makes a release: `release NAME VERSION EXPIRES KEY` over `/root/releases/NAME/agentd`.
const RELEASE: &str = r#"set -eu
cd /root/releases/$1
size=$(stat -c %s agentd) sha=$(sha256sum <agentd | cut -d' ' -f1)
cat >manifest <<END
{"schema":"holdfast.release/v1","version":"$2","issued_at":"2026-01-01T00:00:00Z","expires_at":"$3","files":[{"kind":"agent","name":"agentd","sha256":"$sha","size_bytes":$size}]}
END
rm -f manifest.sig
ssh-keygen -q -Y sign -n holdfast-release -f $4 manifest
jq -n --arg manifest "$(base64 -w0 manifest)" --arg signature "$(cat manifest.sig)" \
    '{schema: "holdfast.signed-release/v1", manifest: $manifest, signatures: [$signature]}' >release.json
"#;

/// What became of each case.
struct Table(Vec<[String; 3]>);

impl Table {
    fn row(&mut self, stand: &Stand, what: &str, came: &str) {
        let runs = running(&stand.machine);
        stand.saw(&format!("{what:44} {came:44} {runs}"));
        self.0.push([what.to_owned(), came.to_owned(), runs]);
    }
}

fn status(machine: &Machine) -> Value {
    machine.reports(&format!("{GATE} status --output json"))
}

/// The program that runs as the agent.
fn running(machine: &Machine) -> String {
    let pid = "systemctl show --property=MainPID --value agentd";
    let exe = machine.does(&format!("readlink /proc/$({pid})/exe || true"));
    match exe.as_str() {
        "/usr/bin/agentd" => "package".to_owned(),
        slot => slot.trim_start_matches("/var/lib/holdfast-slots/").trim_end_matches("/agentd").to_owned(),
    }
}

/// Makes a release of a program that a line of shell writes to `agentd`.
fn release(machine: &Machine, name: &str, version: &str, program: &str) {
    signed(machine, name, version, program, ("2099-01-01T00:00:00Z", "/root/release-key"));
}

fn signed(machine: &Machine, name: &str, version: &str, program: &str, (end, key): (&str, &str)) {
    let folder = format!("/root/releases/{name}");
    machine.does(&format!("mkdir -p {folder}; cd {folder}; {program}; chmod 755 agentd"));
    machine.does(&format!("sh /root/release.sh {name} {version} {end} {key}"));
}

fn install(name: &str) -> String {
    format!("{GATE} install /root/releases/{name}/release.json /root/releases/{name}/agentd")
}

/// The package's program, other by a few bytes.
fn padded(with: &str) -> String {
    format!("cp /usr/bin/agentd agentd; printf {with} >>agentd")
}

fn script(body: &str) -> String {
    format!("printf '#!/bin/sh\\n{body}\\n' >agentd")
}

/// Waits until nothing is on trial and nobody is watched.
fn settled(machine: &Machine) -> Value {
    let line = format!("{GATE} status --output json");
    let said = machine.until("the verdict", SOON, &line, |said| {
        serde_json::from_str::<Value>(said)
            .is_ok_and(|state| state.get("trial").is_none() && state["returning"] == "no")
    });
    serde_json::from_str(&said).unwrap()
}

/// Every case of the table.
pub fn releases(stand: &mut Stand) {
    stand.step("updates of the agent by signed releases");
    let mut table = Table(Vec::new());
    prepare(&stand.machine);
    good(stand, &mut table);
    bad(stand, &mut table);
    refused(stand, &mut table);
    cut_off(stand, &mut table);
    rolled_out(stand, &mut table);
    leave(stand);
    assert_eq!(table.0.len(), 18, "{:?}", table.0);
}

fn prepare(machine: &Machine) {
    write(machine, "/etc/holdfast/agent-gate.toml", SETTINGS);
    write(machine, "/root/release.sh", RELEASE);
    // As shipped, only sooner.
    write(machine, "/etc/systemd/system/agentd.service.d/soon.conf", "[Service]\nRestartSec=1\n");
    machine.does("systemctl daemon-reload; mkdir -p /root/releases");
    for key in ["release-key", "other-key"] {
        machine.does(&format!("ssh-keygen -q -t ed25519 -N '' -C '' -f /root/{key}"));
    }
    let refused = machine.refuses(&format!("{GATE} install /root/release.sh /root/release.sh"));
    assert!(refused.contains("no release keys"), "{refused}");
    machine.does("echo \"ada $(cat /root/release-key.pub)\" >/etc/holdfast/release-keys");
}

fn good(stand: &Stand, table: &mut Table) {
    let machine = &stand.machine;
    release(machine, "two", "2.0.0", &padded("two"));
    machine.does(&install("two"));
    machine.does("systemctl restart agentd");
    assert_eq!(running(machine), "a");
    let state = settled(machine);
    assert_eq!((&state["confirmed"], &state["floor"]), (&Value::from("a"), &Value::from("2.0.0")), "{state}");
    // What a person types is the same build.
    assert!(machine.does("agentd status --output json").contains("holdfast.status/v1"));
    table.row(stand, "a good release", "confirmed, floor 2.0.0");

    // Without the hub it takes longer, and is no verdict.
    machine.does("systemctl stop hubd");
    release(machine, "three", "3.0.0", &padded("three"));
    machine.does(&install("three"));
    machine.does("systemctl restart agentd");
    let state = settled(machine);
    machine.does("systemctl start hubd");
    assert_eq!((&state["confirmed"], &state["floor"]), (&Value::from("b"), &Value::from("3.0.0")), "{state}");
    table.row(stand, "a good release while the hub is silent", "confirmed after the longer window");
}

fn bad(stand: &Stand, table: &mut Table) {
    let machine = &stand.machine;
    let cases = [
        ("crash", "4.0.0", script("exit 1"), "crashes at its start", "starts_used"),
        ("ends", "4.1.0", script("exit 0"), "ends at once with 0", "starts_used"),
        ("hang", "4.2.0", script("sleep 1000"), "hangs at its start", "not_healthy"),
        ("gives-up", "4.3.0", script("exit 78"), "ends as systemd does not start again", "not_healthy"),
    ];
    for (name, version, program, what, reason) in cases {
        release(machine, name, version, &program);
        machine.does(&install(name));
        machine.tries("systemctl restart agentd");
        let state = settled(machine);
        let failure = newest_failure(&state, version);
        let found = &failure["reason"];
        assert!(found == reason || found.get(reason).is_some(), "{name}: {state}");
        assert!(failure.get("way_back").is_none(), "{name}: {state}");
        assert_eq!(running(machine), "b", "{name}");
        table.row(stand, what, &format!("taken back: {reason}"));
    }

    release(machine, "falls", "4.4.0", &padded("falls"));
    machine.does(&install("falls"));
    machine.does("systemctl restart agentd");
    // Healthy for a moment, and then it falls, each time within its window. Each watch has an invocation of its own.
    let watch = machine.does("systemctl show --property=InvocationID --value holdfast-agent-gate");
    for moments in 1..=3 {
        let seen = format!("journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID={watch}");
        machine.until("a moment of health", SOON, &seen, |said| {
            said.matches("waiting: healthy for 1 of").count() >= moments
        });
        machine.tries("systemctl kill --kill-whom=main --signal=KILL agentd");
    }
    let state = settled(machine);
    newest_failure(&state, "4.4.0");
    assert_eq!(running(machine), "b");
    table.row(stand, "healthy, and fails within the window", "taken back: starts_used");

    let again = machine.refuses(&install("crash"));
    assert!(again.contains("until a new manifest of it is signed"), "{again}");
    table.row(stand, "a release that failed, once more", "refused");
}

/// The newest failure, which must be of this version.
fn newest_failure(state: &Value, version: &str) -> Value {
    let failure = state["failures"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    assert_eq!(failure["build"]["version"], version, "{state}");
    failure
}

fn refused(stand: &Stand, table: &mut Table) {
    let machine = &stand.machine;
    let end = "2099-01-01T00:00:00Z";
    signed(machine, "other", "5.0.0", &padded("other"), (end, "/root/other-key"));
    signed(machine, "old", "5.0.0", &padded("old"), ("2026-01-02T00:00:00Z", "/root/release-key"));
    release(machine, "below", "2.5.0", &padded("below"));
    release(machine, "short", "5.0.0", &padded("short"));
    machine.does("cd /root/releases/short; head -c 1000000 agentd >part; mv part agentd");
    for (name, what, reason) in [
        ("other", "signed by another key", "not among this host's release keys"),
        ("old", "expired", "the release ended at"),
        ("below", "below the floor", "below 3.0.0"),
        ("short", "truncated", "it is truncated"),
    ] {
        let said = machine.refuses(&install(name));
        assert!(said.contains(reason), "{name}: {said}");
        table.row(stand, what, "refused");
    }
    // As the agent offers it: looked at in the next start, with the same end.
    machine.does("install -d -o holdfast -m 700 /var/lib/holdfast/update; cd /root/releases/other; cp agentd release.json /var/lib/holdfast/update/; systemctl restart agentd");
    assert_eq!(status(machine)["refused"]["code"], "KEY_UNKNOWN");
    machine.does("test ! -e /var/lib/holdfast/update/release.json");

    // The slot that the next build would be copied to has no room.
    machine.does("mount -t tmpfs -o size=1M,mode=755 tmpfs /var/lib/holdfast-slots/a");
    release(machine, "full", "5.1.0", &padded("full"));
    let said = machine.refuses(&install("full"));
    assert!(said.contains("is the disk full?"), "{said}");
    machine.does("umount /var/lib/holdfast-slots/a; systemctl restart agentd");
    table.row(stand, "the disk is full", "refused, nothing half there");
}

/// The gate is killed between two of its writes, and then the power fails in the trial.
fn cut_off(stand: &mut Stand, table: &mut Table) {
    let machine = &stand.machine;
    release(machine, "six", "6.0.0", &padded("six"));
    let offer = "cp /root/releases/six/agentd /root/releases/six/release.json /var/lib/holdfast/update/";
    for point in ["filling_stored", "build_copied", "trial_stored", "start_counted"] {
        machine.does(&format!("{offer}; echo {point} >/run/holdfast-agent-gate/end-at"));
        machine.tries("systemctl restart agentd");
        let exe = "readlink /proc/$(systemctl show --property=MainPID --value agentd)/exe";
        machine.until("an agent", SOON, exe, |said| said.starts_with('/'));
        machine.does("test ! -e /run/holdfast-agent-gate/end-at");
        // So that the next one begins as this one did.
        machine.tries(&format!("{GATE} end"));
        settled(machine);
        assert_eq!(running(machine), "b", "{point}");
        release(machine, "six", "6.0.0", &format!("{}; printf {point} >>agentd", padded("six")));
    }
    table.row(stand, "the gate killed between its writes", "an agent each time");

    machine.does(&format!("{offer}; systemctl restart agentd"));
    assert_eq!(running(machine), "a", "{}", status(machine));
    machine.does("sync");
    stand.machine.cut_power();
    stand.machine.boot();
    let machine = &stand.machine;
    let line = "systemctl is-active agentd";
    machine.until("agentd", SOON, line, |said| said == "active");
    let state = settled(machine);
    assert_eq!((&state["confirmed"], &state["floor"]), (&Value::from("a"), &Value::from("6.0.0")), "{state}");
    table.row(stand, "the power fails during a trial", "tried again, confirmed");

    // The verdict is stored, and the watch is killed before it restarts the agent.
    release(machine, "seven", "7.0.0", &script("sleep 1000"));
    machine.does(&install("seven"));
    machine.does("echo verdict_stored >/run/holdfast-agent-gate/end-at");
    machine.tries("systemctl --no-block restart agentd");
    let state = settled(machine);
    newest_failure(&state, "7.0.0");
    assert_eq!(running(machine), "a");
    table.row(stand, "the watch killed at its verdict", "taken back by the next one");
}

/// From an operator's folder through the hub to a confirmed build, with nobody at the host: by a rollout.
fn rolled_out(stand: &Stand, table: &mut Table) {
    let machine = &stand.machine;
    rollout(machine, ("eight", "8.0.0"), &padded("eight"), "1");
    let line = format!("{GATE} status --output json");
    machine.until("the fetched release", ASKED_AND_TRIED, &line, |said| {
        serde_json::from_str::<Value>(said).is_ok_and(|state| state["floor"] == "8.0.0")
    });
    assert_eq!(running(machine), "b");
    let shown = machine.until("the report", SOON, "holdfast host show box1", |said| said.contains("8.0.0"));
    let lines = shown.lines().filter(|line| line.contains("8.0.0")).collect::<Vec<_>>();
    stand.saw(&lines.join(" | "));
    machine.does("holdfast rollout watch 1");
    let rollouts = machine.reports("holdfast rollout list --output json").to_string();
    assert!(rollouts.contains("\"finished\""), "{rollouts}");
    table.row(stand, "by a rollout of the hub", "fetched, tried, confirmed, finished");

    rollout(machine, ("nine", "9.0.0"), &script("exit 1"), "2");
    let held = "timeout 20 holdfast rollout watch 2 2>&1 || true";
    let said = machine.until("the hold", ASKED_AND_TRIED, held, |said| said.contains("held"));
    stand.saw(said.lines().last().unwrap_or_default());
    newest_failure(&settled(machine), "9.0.0");
    assert_eq!(running(machine), "b");
    machine.does("holdfast rollout abort 2 --yes");
    table.row(stand, "a bad one by a rollout", "taken back, the rollout held");
}

/// Makes a release, leaves it at the hub, and has the host of the one wave fetch it.
fn rollout(machine: &Machine, (name, version): (&str, &str), program: &str, number: &str) {
    let folder = format!("/root/releases/{name}");
    machine.does(&format!("mkdir -p {folder}; cd {folder}; {program}; chmod 755 agentd"));
    for line in [
        format!("holdfast release manifest --version {version} --expires-in-days 30 --out manifest agentd"),
        format!("holdfast release sign manifest --key /root/release-key --confirm {version}"),
        "holdfast release verify manifest.signed.json --keys /etc/holdfast/release-keys --files .".to_owned(),
        "holdfast release upload manifest.signed.json --files .".to_owned(),
        format!("holdfast rollout plan {version} --wave hosts=box1,failures=0,soak=5s,timeout=30m"),
        format!("holdfast rollout start {number} --yes"),
    ] {
        machine.does(&format!("cd {folder}; {line}"));
    }
    machine.does("systemctl restart agentd");
}

fn leave(stand: &Stand) {
    let machine = &stand.machine;
    machine.does(
        "rm -r /etc/systemd/system/agentd.service.d /etc/holdfast/agent-gate.toml; systemctl daemon-reload",
    );
    stand.saw(&machine.does(&format!("{GATE} status")));
    stand.saw(&format!("the guest: {}", guest_is_well(stand)));
    assert!(SOON > Duration::from_secs(20), "a trial ends within the bound of a wait");
}
