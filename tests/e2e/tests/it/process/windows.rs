//! Tests of a quiesced backup with real guest agent.
//!
//! Docker and systemd are the fake programs of the controller's own tests; a log records their calls.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use e2e::document;
use serde_json::{Value, json};

use super::stand::{self, well};

const STACKS: &str = "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstop_timeout_s = 5\n";

/// The folder of a guest that has its bootstrap, as the simulator keeps it.
fn guest_root(folder: &Path) -> Option<PathBuf> {
    if folder.join("var/lib/holdfast/bootstrap.json").is_file() {
        return Some(folder.to_owned());
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).find_map(|inner| guest_root(&inner))
}

/// A unit that runs, and the fake programs that change it.
fn furnish(root: &Path) {
    for folder in ["world/c", "world/u", "world/timers", "world/fail", "world/hold", "bin", "etc/holdfast"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guestd/tests/it/fake_programs.sh");
    for name in ["systemctl", "systemd-run"] {
        symlink(&script, root.join("bin").join(name)).unwrap();
    }
    std::fs::write(root.join("world/u/db.service"), "active\n").unwrap();
    std::fs::write(root.join("world/log"), "").unwrap();
    std::fs::write(root.join("etc/holdfast/stacks.toml"), STACKS).unwrap();
}

/// `guestd`, in the guest's place, with the fake programs before all others.
fn guestd(root: &Path, words: &[&str]) -> Output {
    let programs = std::env::var_os("HOLDFAST_E2E_PROGRAMS").unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the controller's own commands, as a person in the guest gives them"
    )]
    let mut command = Command::new(Path::new(&programs).join("guestd"));
    command.args(words).arg("--root").arg(root).args(["--source-address", "127.66.0.101"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", root.join("bin").display())).output().unwrap()
}

#[test]
fn a_guests_stacks_stand_still_for_its_backup_and_the_label_says_so() {
    let stand = stand::running();
    let one = document::guest(&stand.stage.ground(), 1, "one", "acme");
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one] }), "one guest").unwrap();
    stand.stage.guests_until("one guest", |guests| guests.len() == 1 && guests.iter().all(well)).unwrap();
    let root = guest_root(&stand.stage.folder().join("sim")).expect("a guest with its bootstrap");
    furnish(&root);

    let dry = guestd(&root, &["quiesce", "--dry-run"]);
    assert!(dry.status.success(), "{dry:?}");
    let backup = guestd(&root, &["backup", "--output", "json"]);
    let said = String::from_utf8_lossy(&backup.stderr).into_owned();
    assert!(backup.status.success(), "{said}");
    let view: Value = serde_json::from_slice(&backup.stdout).unwrap();
    assert_eq!(
        (view["kind"].as_str(), view["status"].as_str()),
        (Some("quiesced_backup"), Some("done")),
        "{view:#}"
    );
    assert!(said.contains("window ended: the backup was captured"), "{said}");
    assert!(said.contains("is application-consistent"), "{said}");

    let log = std::fs::read_to_string(root.join("world/log")).unwrap();
    let place = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words} is not in\n{log}"));
    assert!(place("systemctl stop -- db.service") < place("systemctl start -- db.service"), "{log}");
    assert!(!log.contains("BARE"), "nothing was stopped without marker and timer:\n{log}");
    assert_eq!(std::fs::read_to_string(root.join("world/u/db.service")).unwrap(), "active\n");
    assert!(!root.join("var/lib/holdfast/quiesce.json").exists());
    let status = String::from_utf8(guestd(&root, &["status"]).stdout).unwrap();
    assert!(status.contains("Last window") && status.contains("application-consistent"), "{status}");

    // The same without a window: the report matches what was done.
    let plain = guestd(&root, &["backup", "--crash-consistent"]);
    assert!(plain.status.success(), "{plain:?}");
    let after = std::fs::read_to_string(root.join("world/log")).unwrap();
    assert_eq!(after.matches("systemctl stop -- db.service").count(), 1, "{after}");
}
