//! Tests of `agentd setup` with fake Proxmox commands.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value as Json;

pub struct TheBox {
    pub dir: tempfile::TempDir,
    user: String,
}

impl TheBox {
    fn new() -> Self {
        // The user that runs this test is the agent's user, so that no user must be created and files can be given
        // away.
        let uid = rustix::process::geteuid().as_raw().to_string();
        let users = std::fs::read_to_string("/etc/passwd").unwrap();
        let me = users.lines().find(|line| line.split(':').nth(2) == Some(&uid)).unwrap();
        Self::of(me.split(':').next().unwrap())
    }

    /// A host whose agent has another user; only root can set that up.
    pub fn of(user: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["pveum", "pvesh"] {
            let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/box").join(name);
            std::os::unix::fs::symlink(here, dir.path().join(name)).unwrap();
        }
        Self { user: user.to_owned(), dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    fn command(&self, more: &[&str]) -> std::process::Command {
        let path = |name: &str| self.path(name).display().to_string();
        let pin = format!("spki/sha256:{}", "ab".repeat(32));
        let (config, state) = (path("etc/agent.toml"), path("state"));
        let words = [
            "setup",
            "--node",
            "pve1",
            "--pin",
            &pin,
            "--storage",
            "labbtrfs",
            "--vmid-range",
            "300-399",
            "--listen",
            "10.66.0.1:8443",
            "--config",
            &config,
            "--state-dir",
            &state,
            "--system-user",
            &self.user,
        ];
        let path = format!("{}:/usr/bin:/bin", self.dir.path().display());
        #[expect(clippy::disallowed_methods, reason = "the test runs the program itself")]
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_agentd"));
        command.args(words).args(more).env("PATH", path).env("BOX", self.dir.path());
        command
    }

    fn json(&self, more: &[&str]) -> Json {
        let output = self.run(&[more, &["--output", "json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

#[test]
fn once_is_enough_and_twice_changes_nothing() {
    let the_box = TheBox::new();
    let first = the_box.json(&["--yes"]);
    assert_eq!(first["outcome"], "done");
    assert_eq!(the_box.read("pools").lines().count(), 1);
    let secret = the_box.read("state/secrets/proxmox-operate");
    assert!(secret.starts_with("secret-of-operate-"), "{secret:?}");
    let mode = std::fs::metadata(the_box.path("state/secrets/proxmox-operate")).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(the_box.read("etc/agent.toml").contains("id = \"holdfast@pve!operate\""));
    assert!(!the_box.read("log").contains("secret-of"), "no secret stands in an argument");
    let log = the_box.read("log");
    let second = the_box.json(&["--yes"]);
    assert_eq!((&second["to_do"], the_box.read("log")), (&Json::from(0), log));
}

#[test]
fn a_dry_run_and_a_no_change_nothing() {
    let the_box = TheBox::new();
    let planned = the_box.json(&["--dry-run"]);
    assert_eq!(planned["outcome"], "planned");
    // Standard input is at its end: no person says yes.
    let unasked = the_box.run(&[]);
    assert_eq!(unasked.status.code(), Some(66));
    assert!(
        String::from_utf8_lossy(&unasked.stdout).contains("+ pool holdfast\n    pveum pool add holdfast")
    );
    for name in ["log", "etc/agent.toml", "state"] {
        assert!(!the_box.path(name).exists(), "{name}");
    }
}

#[test]
fn what_was_changed_by_hand_is_put_right() {
    let the_box = TheBox::new();
    the_box.json(&["--yes"]);
    let wide = the_box.read("roles").replace("\"privs\":\"Sys.Audit\"", "\"privs\":\"Sys.Audit,Sys.Modify\"");
    std::fs::write(the_box.path("roles"), wide).unwrap();
    std::fs::remove_file(the_box.path("state/secrets/proxmox-observe")).unwrap();
    let kept = the_box.read("state/secrets/proxmox-operate");
    the_box.json(&["--yes"]);
    assert!(!the_box.read("roles").contains("Sys.Modify"));
    assert!(the_box.read("state/secrets/proxmox-observe").starts_with("secret-of-observe-"));
    assert_eq!(the_box.read("state/secrets/proxmox-operate"), kept);
    assert_eq!(the_box.json(&["--yes"])["to_do"], 0);
}

#[test]
fn removing_leaves_a_clean_box_and_the_state_folder() {
    let the_box = TheBox::new();
    the_box.json(&["--yes"]);
    std::fs::write(the_box.path("state/agent.db"), "the only record").unwrap();
    the_box.json(&["--yes", "--remove"]);
    for list in ["pools", "roles", "users", "tokens", "acl"] {
        assert_eq!(the_box.read(list), "", "{list}");
    }
    assert!(!the_box.path("etc/agent.toml").exists());
    assert_eq!(the_box.read("state/agent.db"), "the only record");
}

#[test]
fn a_box_without_proxmox_is_reported_so() {
    let the_box = TheBox::new();
    std::fs::remove_file(the_box.path("pvesh")).unwrap();
    let output = the_box.run(&["--yes"]);
    assert_eq!(output.status.code(), Some(69));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is this a Proxmox box?"), "{said}");
}

#[test]
fn a_proxmox_without_env_is_refused_before_anything_is_changed() {
    let the_box = TheBox::new();
    for old in ["8.4.1", "9.0.11", "nonsense"] {
        std::fs::write(the_box.path("version"), old).unwrap();
        let output = the_box.run(&["--yes"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(69) && said.contains("9.1 or newer is needed"), "{said}");
    }
    assert!(!the_box.path("log").exists());
}

#[test]
fn a_refusal_is_handed_on_and_what_was_done_is_kept() {
    let the_box = TheBox::new();
    std::fs::write(the_box.path("locked"), "user add").unwrap();
    let output = the_box.run(&["--yes"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("pveum user add holdfast@pve") && said.contains("realm is locked"), "{said}");
    std::fs::remove_file(the_box.path("locked")).unwrap();
    assert_eq!(the_box.json(&["--yes"])["outcome"], "done");
}

const ALICE: &str =
    "alice ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c\n";

/// The permitted signers are shown, installed once for all to read, and never replaced by another run.
#[test]
fn operators_and_policy_are_laid_down_once() {
    let the_box = TheBox::new();
    let file = |name: &str, text: &str| {
        std::fs::write(the_box.path(name), text).unwrap();
        the_box.path(name).display().to_string()
    };
    let (operators, policy) = (file("people", ALICE), file("rules", "version = 1\n"));
    let both = ["--operators", &operators, "--policy", &policy];
    let planned = the_box.json(&[&both[..], &["--dry-run"]].concat());
    let shown = planned["steps"].to_string();
    assert!(
        shown.contains("operators (alice), sha256 ") && !the_box.path("etc/operators").exists(),
        "{shown}"
    );

    the_box.json(&[&both[..], &["--yes"]].concat());
    for (name, text) in [("etc/operators", ALICE), ("etc/policy.toml", "version = 1\n")] {
        assert_eq!(the_box.read(name), text);
        assert_eq!(std::fs::metadata(the_box.path(name)).unwrap().mode() & 0o777, 0o644, "{name}");
    }
    assert_eq!(the_box.json(&[&both[..], &["--yes"]].concat())["to_do"], 0, "again changes nothing");
    assert_eq!(the_box.json(&["--yes"])["to_do"], 0, "nor does a run that does not name them");

    let log = the_box.read("log");
    let others = file("others", &ALICE.replacen("alice", "mallory", 1));
    let looser = file("looser", "version = 2\n[verbs.destroy_guest]\ndelay_s = 0\n");
    for words in [
        vec!["--operators", &others, "--policy", &policy, "--yes"],
        vec!["--operators", &operators, "--policy", &looser, "--yes"],
        vec!["--operators", &operators, "--yes"],
        vec!["--operators", &others, "--policy", &policy, "--dry-run"],
    ] {
        let refused = the_box.run(&words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(73) && said.contains("holdfast sign"), "{words:?}: {said}");
    }
    assert_eq!(
        (the_box.read("etc/operators"), the_box.read("etc/policy.toml")),
        (ALICE.to_owned(), "version = 1\n".to_owned())
    );
    assert_eq!(the_box.read("log"), log, "Proxmox was not even asked");
}

/// As `agentd setup … --print | head` does it.
#[test]
fn output_that_is_not_read_to_its_end_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = TheBox::new().command(&["--print"]).stdout(writer).output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}

/// No job changes who may sign releases, so root replaces them here, and is shown that it happens.
#[test]
fn release_keys_are_laid_down_and_replaced() {
    let the_box = TheBox::new();
    let file = |name: &str, text: &str| {
        std::fs::write(the_box.path(name), text).unwrap();
        the_box.path(name).display().to_string()
    };
    let (first, second) = (file("first", ALICE), file("second", &ALICE.replacen("alice", "bob", 1)));
    the_box.json(&["--release-keys", &first, "--yes"]);
    assert_eq!(the_box.read("etc/release-keys"), ALICE);
    assert_eq!(std::fs::metadata(the_box.path("etc/release-keys")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(the_box.json(&["--release-keys", &first, "--yes"])["to_do"], 0, "again changes nothing");
    assert_eq!(the_box.json(&["--yes"])["to_do"], 0, "nor does a run that does not name them");

    let planned = the_box.json(&["--release-keys", &second, "--dry-run"])["steps"].to_string();
    assert!(planned.contains("release keys (bob)") && planned.contains("will be replaced"), "{planned}");
    the_box.json(&["--release-keys", &second, "--yes"]);
    assert!(the_box.read("etc/release-keys").starts_with("bob "));

    let jobs_alone = ALICE.replacen("alice", "alice namespaces=\"holdfast-job\"", 1);
    let refused = the_box.run(&["--release-keys", &file("jobs", &jobs_alone), "--yes"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(the_box.read("etc/release-keys").starts_with("bob "));
}

#[test]
fn what_the_agent_would_not_take_is_never_laid_down() {
    let the_box = TheBox::new();
    let file = |name: &str, text: &str| {
        std::fs::write(the_box.path(name), text).unwrap();
        the_box.path(name).display().to_string()
    };
    let good = file("people", ALICE);
    let reach = file("reach", "version = 1\n[verbs.cancel]\nsignatures = 9\n");
    for (operators, policy) in [
        (file("empty", ""), None),
        (file("wild", &ALICE.replacen("alice", "*", 1)), None),
        (file("noise", "nonsense\n"), None),
        (the_box.path("nowhere").display().to_string(), None),
        (good.clone(), Some(file("toml", "version = one\n"))),
        (good.clone(), Some(reach)),
        (good, Some(file("stranger", "version = 1\n[verbs.cancel]\nsigners = [\"mallory\"]\n"))),
    ] {
        let mut words = vec!["--yes".to_owned(), "--operators".to_owned(), operators];
        words.extend(policy.into_iter().flat_map(|policy| ["--policy".to_owned(), policy]));
        let refused = the_box.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(64), "{words:?}: {said}");
        assert!(!the_box.path("etc").exists() && !the_box.path("log").exists(), "{words:?}");
    }
}
