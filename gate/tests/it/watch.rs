//! Tests of the watch over a build that runs.
//!
//! The build on trial is a copy of this test program. It answers as the agent does, from files that a test writes.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_protocol::job::act::Sha256Text;
use serde_json::{Value, json};

use super::host::{AGENT_FOLDER, Host, Recipe};
use super::is_root;

/// Far more than a slow machine needs for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// No test of its own: the agent, where a test started this program as one.
#[test]
fn the_agent_of_these_tests() {
    let Some(folder) = std::env::var_os(AGENT_FOLDER) else { return };
    let folder = Path::new(&folder);
    let listener = UnixListener::bind(folder.join("agent.sock")).unwrap();
    let mut asked = 0_u64;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut question = String::new();
        stream.read_to_string(&mut question).unwrap();
        let question: Value = serde_json::from_str(&question).unwrap();
        let name = question["question"].as_str().unwrap().to_owned();
        let answer = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
        // The gate may be ended while it reads.
        let _unread = stream.write_all(&answer);
        if name == "trial_withdrawal" {
            asked += 1;
            replace(&folder.join("asked"), &asked.to_string());
        }
    }
}

fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension("fresh");
    std::fs::write(&fresh, text).unwrap();
    std::fs::rename(fresh, path).unwrap();
}

fn until(what: &str, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the gate has asked three more times: the first of them may have begun before.
fn asks_on(host: &Host) {
    let asked =
        || std::fs::read_to_string(host.path("agent/asked")).ok().and_then(|text| text.parse::<u64>().ok());
    let from = asked().unwrap_or(0);
    until("the gate asks", || asked().is_some_and(|now| now >= from + 3));
}

fn says(host: &Host, question: &str, answer: &Value) {
    replace(&host.path(&format!("agent/{question}.json")), &json!({ question: answer }).to_string());
}

/// It works but for Proxmox, so that no look is a verdict.
fn health() -> Value {
    json!({ "version": "7.0.0", "records": "works", "proxmox": "not_yet", "plan": "works", "helper": "works",
        "local_api": "works", "hub": "works" })
}

#[test]
fn a_build_on_trial_ends_its_own_trial_and_no_other() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let release = host.release("seven", &Recipe { program: &own, ..Recipe::default() });
    host.installs(&release);
    assert_eq!(host.starts(), "a");
    let manifest = Sha256Text::of(&std::fs::read(release.signed.with_file_name("manifest")).unwrap());
    let withdrawn = |manifest: &Sha256Text| json!({ "manifest": manifest.as_str(), "reason": "held" });

    says(&host, "health", &health());
    says(&host, "trial_withdrawal", &Value::Null);
    let _agent = host.runs("a");
    until("the agent listens", || host.path("agent/agent.sock").exists());
    let watch = host.watches();
    asks_on(&host);
    assert_eq!(host.status()["trial"]["slot"], "a", "nothing was withdrawn");
    says(&host, "trial_withdrawal", &withdrawn(&Sha256Text::of(b"another")));
    asks_on(&host);
    assert_eq!(host.status()["trial"]["slot"], "a", "another release was");
    replace(&host.path("agent/trial_withdrawal.json"), r#"{"trial_withdrawal":{"manifest":1}}"#);
    asks_on(&host);
    assert_eq!(host.status()["trial"]["slot"], "a", "what cannot be read ends nothing");

    says(&host, "trial_withdrawal", &withdrawn(&manifest));
    until("the trial ends", || host.status()["trial"].is_null());
    let status = host.status();
    assert_eq!(status["failures"][0]["reason"], json!({ "withdrawn": { "reason": "held" } }));
    assert_eq!((&status["a"], &status["floor"]), (&json!("empty"), &Value::Null));
    let restarted = "reset-failed agentd.service\nrestart --no-block agentd.service\n";
    until("the agent is restarted", || {
        std::fs::read_to_string(host.path("systemctl.log")).is_ok_and(|log| log.ends_with(restarted))
    });
    assert!(host.does(&["status"]).contains("its offer was withdrawn: its rollout is held"));
    drop(watch);
    assert_eq!(host.starts(), "package", "the build before");
    // A confirmed build is not asked, whatever it would answer.
    let mut rest = host.status();
    rest["returning"] = json!("no");
    rest["a"] = json!({ "holds": rest["failures"][0]["build"] });
    rest["confirmed"] = json!("a");
    replace(&host.path("slots/state.json"), &rest.to_string());
    let before = std::fs::read_to_string(host.path("agent/asked")).unwrap();
    host.does(&["watch"]);
    assert_eq!(std::fs::read_to_string(host.path("agent/asked")).unwrap(), before);
}
