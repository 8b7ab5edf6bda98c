//! Tests of the program that a start runs.

use serde_json::Value;

use super::host::{Host, Recipe};
use super::is_root;

#[test]
fn without_a_release_the_package_runs_and_nothing_is_written() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    assert_eq!(host.starts(), "package");
    assert!(!host.path("slots/state.json").exists());
    assert!(!host.path("systemctl.log").exists(), "no watch is started");
    std::fs::remove_file(host.path("etc/release-keys")).unwrap();
    assert_eq!(host.starts(), "package");
}

#[test]
fn a_build_on_trial_has_three_starts_and_the_package_is_put_back() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    let release = host.release("seven", &Recipe::default());
    host.installs(&release);
    for left in [2, 1, 0] {
        assert_eq!(host.starts(), "a");
        assert_eq!(host.status()["trial"]["starts_left"], left);
    }
    assert_eq!(host.starts(), "package");
    let status = host.status();
    assert_eq!(status["failures"][0]["reason"], "starts_used");
    assert_eq!(status["a"], "empty");
    assert!(!host.path("slots/a/agentd").exists(), "what failed is removed");
    let log = std::fs::read_to_string(host.path("systemctl.log")).unwrap();
    assert_eq!(log.lines().count(), 4, "the watch is started with each: {log}");
}

/// The start before was in another boot, as after a power cut.
fn power_cut(host: &Host) {
    let mut state = host.status();
    state["trial"]["began"]["boot"] = Value::from("the boot before");
    std::fs::write(host.path("slots/state.json"), state.to_string()).unwrap();
}

#[test]
fn power_cuts_take_no_build_back_and_a_gate_of_before_reads_the_state() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    host.installs(&host.release("seven", &Recipe::default()));
    assert_eq!(host.starts(), "a");
    for cut in 1..=10 {
        power_cut(&host);
        assert_eq!(host.starts(), "a");
        assert_eq!(host.status()["trial"]["starts_left"], 2, "cut {cut}");
        let said = host.does(&["status"]);
        assert!(said.contains(&format!("2 more starts; {cut} that ended with the machine")), "{said}");
    }
    let trial = host.status()["trial"].clone();
    let names: Vec<&String> = trial.as_object().unwrap().keys().collect();
    assert_eq!(names, ["began", "slot", "starts_left"], "these were there at first");
    // One that brings its machine down comes to its end, too.
    for left in [1, 0] {
        power_cut(&host);
        assert_eq!(host.starts(), "a");
        assert_eq!(host.status()["trial"]["starts_left"], left);
    }
    power_cut(&host);
    assert_eq!(host.starts(), "package");
    assert_eq!(host.status()["failures"][0]["reason"], "starts_used");
    assert!(!host.path("slots/reboots.json").exists());
    // The next build begins anew, once the one that was put back is not watched any more.
    let mut state = host.status();
    state["returning"] = Value::from("no");
    std::fs::write(host.path("slots/state.json"), state.to_string()).unwrap();
    host.installs(&host.release("eight", &Recipe { version: "8.0.0", ..Recipe::default() }));
    host.starts();
    power_cut(&host);
    host.starts();
    assert!(host.does(&["status"]).contains("2 more starts; 1 that ended"));
    // A damaged count is none, and no reason not to start.
    std::fs::write(host.path("slots/reboots.json"), "{").unwrap();
    assert_eq!(host.starts(), "a");
}

#[test]
fn an_offer_of_the_agent_is_taken_at_the_next_start_and_once() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    host.offers(&host.release("seven", &Recipe::default()));
    assert_eq!(host.starts(), "a");
    assert!(!host.path("agent/update/release.json").exists() && !host.path("agent/update/agentd").exists());
    // A second one waits for the verdict on the first.
    host.offers(&host.release("eight", &Recipe { version: "8.0.0", ..Recipe::default() }));
    assert_eq!(host.starts(), "a");
    let refused = host.status()["refused"].clone();
    assert_eq!((&refused["code"], &refused["cause"]), (&"ON_TRIAL".into(), &"host".into()));
    // A link in the agent's folder leads root nowhere.
    std::os::unix::fs::symlink("/etc/shadow", host.path("agent/update/agentd")).unwrap();
    std::fs::write(host.path("agent/update/release.json"), "{}").unwrap();
    assert_eq!(host.starts(), "a");
}

/// Confirms by editing the state as the watch would: the watch itself needs a running agent.
fn confirmed(host: &Host) {
    let mut state = host.status();
    let trial = state["trial"].take();
    let slot = trial["slot"].as_str().unwrap().to_owned();
    state["confirmed"] = Value::from(slot.clone());
    state["floor"] = state[&slot]["holds"]["version"].clone();
    std::fs::write(host.path("slots/state.json"), state.to_string()).unwrap();
}

#[test]
fn a_confirmed_build_runs_until_it_is_damaged_and_the_package_only_where_it_may() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    host.installs(&host.release("seven", &Recipe::default()));
    host.starts();
    confirmed(&host);
    assert_eq!(host.starts(), "a");
    // The next one goes to the other slot, and when it fails the first is still there.
    let eight = Recipe { version: "8.0.0", program: b"program eight", ..Recipe::default() };
    host.installs(&host.release("eight", &eight));
    assert_eq!(host.starts(), "b");
    std::fs::write(host.path("slots/b/agentd"), "changed").unwrap();
    assert_eq!(host.starts(), "a");
    assert_eq!(host.status()["failures"][0]["reason"], "damaged");
    // One changed byte of the confirmed one, and nothing may run: the package is older than what was confirmed.
    std::fs::write(host.path("slots/a/agentd"), "program seveN").unwrap();
    let said = host.refuses(&["start"], 70);
    assert!(said.contains("no agent may run") && said.contains("apt install"), "{said}");
    std::fs::write(host.path("slots/a/agentd"), "program seven").unwrap();
    assert_eq!(host.starts(), "a");
    // Another one's signature on the same bytes is none.
    let theirs = host.release("theirs", &Recipe { signers: &["mallory"], ..Recipe::default() });
    std::fs::copy(theirs.signed, host.path("slots/a/release.json")).unwrap();
    host.refuses(&["start"], 70);
}

#[test]
fn a_damaged_state_is_made_anew_from_signed_slots() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    host.installs(&host.release("seven", &Recipe::default()));
    host.starts();
    confirmed(&host);
    for damage in [&b"{\"schema\":"[..], b"", &[0; 4096]] {
        std::fs::write(host.path("slots/state.json"), damage).unwrap();
        assert_eq!(host.starts(), "a");
        let status = host.status();
        assert_eq!((&status["confirmed"], &status["floor"]), (&Value::from("a"), &Value::from("7.0.0")));
        assert_eq!(std::fs::read(host.path("slots/state.damaged")).unwrap(), damage);
    }
}

#[test]
fn a_person_ends_a_trial() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    assert!(host.refuses(&["end"], 1).contains("nothing is on trial"));
    host.installs(&host.release("seven", &Recipe::default()));
    host.starts();
    host.does(&["end"]);
    let log = std::fs::read_to_string(host.path("systemctl.log")).unwrap();
    assert!(log.ends_with("reset-failed agentd.service\nrestart --no-block agentd.service\n"), "{log}");
    assert_eq!(host.starts(), "package");
    assert_eq!(host.status()["failures"][0]["reason"], "ended");
    assert!(host.does(&["status"]).contains("a person ended the trial"));
}
