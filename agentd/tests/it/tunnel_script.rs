//! Tests of the shipped script that restarts a tunnel.
//!
//! A program of ours is in the place of systemctl.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "the script is run as its unit runs it")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentd::port::tunnels::TunnelFiles;
use holdfast_protocol::report::RestartOutcome;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/agent/restart-tunnel");

/// It notes how it was called. `state` says what it shows, `end` how a restart ends.
const SYSTEMCTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
case $1 in
    show) cat "$here/state" ;;
    *) exit "$(cat "$here/end")" ;;
esac
"#;

/// Asks for a restart of `tunnel`: what the agent reads of it, and how systemctl was called.
fn asked(list: &str, tunnel: &str, state: &str, end: &str) -> (Option<RestartOutcome>, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, text) in [("tunnels", list), ("systemctl", SYSTEMCTL), ("state", state), ("end", end)] {
        std::fs::write(at(name), text).unwrap();
    }
    std::fs::set_permissions(at("systemctl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(at("results")).unwrap();
    let mut command = std::process::Command::new("sh");
    command
        .arg(SCRIPT)
        .arg(tunnel)
        .args([at("tunnels"), at("systemctl"), at("results")].map(|path| path.into_os_string()));
    let output = command.output().unwrap();
    let files = TunnelFiles::at(folder.path());
    let outcome = tunnel.parse().ok().and_then(|name| files.answer(&name)).map(|answer| answer.outcome);
    assert_eq!(output.status.success(), outcome.is_some(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = read(&at("calls"));
    (outcome, calls)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

const LIST: &str = "# Which unit …\ncf cloudflared.service\nwg wg-quick@wg0.service\n";

#[test]
fn a_unit_that_runs_is_restarted_if_it_still_runs_and_one_that_failed_is_restarted() {
    let show = |unit: &str| format!("show --property=ActiveState --value -- {unit}\n");
    let (outcome, calls) = asked(LIST, "cf", "active\n", "0");
    assert_eq!(outcome, Some(RestartOutcome::Restarted));
    assert_eq!(calls, show("cloudflared.service") + "try-restart -- cloudflared.service\n");
    let (outcome, calls) = asked(LIST, "wg", "failed\n", "0");
    assert_eq!(outcome, Some(RestartOutcome::Restarted));
    assert_eq!(calls, show("wg-quick@wg0.service") + "restart -- wg-quick@wg0.service\n");
    assert_eq!(asked(LIST, "cf", "active\n", "1").0, Some(RestartOutcome::Failed));
}

#[test]
fn what_a_person_stopped_is_left() {
    for state in ["inactive\n", "deactivating\n", "maintenance\n", "\n"] {
        let (outcome, calls) = asked(LIST, "cf", state, "0");
        assert_eq!((outcome, calls.lines().count()), (Some(RestartOutcome::Left), 1), "{state:?}: {calls}");
    }
}

#[test]
fn nothing_is_restarted_that_the_list_does_not_name_whole() {
    for list in [
        "",
        "# cf cloudflared.service\n",
        "wg cloudflared.service\n",
        "cf\n",
        "cf cloudflared.service more\n",
        "cf cloudflared\n",
        "cf .service\n",
        "cf --force.service\n",
        "cf a/../b.service\n",
        "cf *.service\n",
        "cf $(touch x).service\n",
        "cfx cloudflared.service\n",
    ] {
        let (outcome, calls) = asked(list, "cf", "active\n", "0");
        assert_eq!((outcome, calls.as_str()), (Some(RestartOutcome::Unlisted), ""), "{list:?}");
    }
}

#[test]
fn a_name_that_is_none_writes_nothing() {
    for name in ["", "../x", "a b", "CF"] {
        let (outcome, calls) = asked(LIST, name, "active\n", "0");
        assert!(calls.is_empty(), "{name:?}");
        assert_eq!(outcome, None, "{name:?}");
    }
}
