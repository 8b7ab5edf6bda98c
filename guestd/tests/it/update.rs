//! Tests of program replacement.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::fake_agent::{FakeAgent, TOKEN};
use crate::guest::{Guest, Running, until};

/// Every moment that has a name.
const POINTS: [&str; 5] = ["FetchBegun", "Fetched", "Tried", "OldKept", "Swapped"];

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Case {
    agent: FakeAgent,
    guest: Guest,
    /// What was installed.
    old: Vec<u8>,
    /// Another build of it, as the agent hands it out.
    new: Vec<u8>,
}

impl Case {
    /// A guest with a controller of its own, and an agent that has another for it.
    async fn new() -> Self {
        let (agent, guest) = (FakeAgent::start().await, Guest::new());
        guest.keep(&agent.bootstrap(TOKEN));
        let old = fs::read(guest.install()).unwrap();
        // No reader uses the bytes after a program's last section, so they only make it another build.
        let new = [old.as_slice(), b"another build"].concat();
        agent.script.lock().unwrap().artifact.clone_from(&new);
        Self { agent, guest, old, new }
    }

    /// The agent says that the guest should now run these bytes.
    fn turn(&self, version: &str, bytes: &[u8]) {
        self.says(version, &sha256(bytes), bytes.len() as u64);
    }

    fn says(&self, version: &str, sha256: &str, bytes: u64) {
        let turn = json!({ "now": Uuid::from_u128(7) });
        let controller = json!({ "version": version, "sha256": sha256, "bytes": bytes, "turn": turn });
        self.agent.script.lock().unwrap().desired = Some(controller);
    }

    fn lies(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.guest.path("usr/bin").join(name)).ok()
    }

    /// Waits for a hello of this build.
    async fn hello_of(&self, bytes: &[u8]) {
        let digest = sha256(bytes);
        let said = || {
            let is = |build: &holdfast_protocol::job::act::Sha256Text| build.as_str() == digest;
            self.agent.read(|script| script.hellos.iter().any(|hello| hello.build.as_ref().is_some_and(is)))
        };
        until("a hello of that build", said, || self.guest.state().to_string()).await;
    }

    /// The old program is in place, no other file is next to it, and it goes on sending hellos.
    async fn is_as_it_was(&self, running: Running) {
        let hellos = self.agent.read(|script| script.hellos.len());
        until("two more hellos", || self.agent.read(|script| script.hellos.len() >= hellos + 2), String::new)
            .await;
        assert_eq!(self.lies("guestd").as_deref(), Some(self.old.as_slice()));
        // It may be tried once more in the same operation; the download is removed each time.
        until("nothing lies beside it", || self.lies("guestd.new").is_none(), String::new).await;
        assert_eq!(self.lies("guestd.old"), None);
        let own = sha256(&self.old);
        assert!(self.agent.read(|script| {
            script.hellos.iter().all(|hello| hello.build.as_ref().is_some_and(|build| build.as_str() == own))
        }));
        assert_eq!(running.stop().0.code(), Some(0));
    }
}

/// The version that the program under test has.
const OWN: &str = env!("CARGO_PKG_VERSION");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controller_is_replaced_and_says_hello() {
    let case = Case::new().await;
    let waits =
        json!({ "version": OWN, "sha256": sha256(&case.new), "bytes": case.new.len(), "turn": "waits" });
    case.agent.script.lock().unwrap().desired = Some(waits);
    let running = case.guest.run_installed("");
    case.hello_of(&case.old).await;
    until("two hellos", || case.agent.read(|script| script.hellos.len() >= 2), String::new).await;
    assert_eq!(case.agent.read(|script| script.fetched), 0, "before its turn it does nothing");
    case.turn(OWN, &case.new);
    case.hello_of(&case.new).await;
    assert!(case.lies("guestd").as_deref() == Some(case.new.as_slice()));
    assert!(
        case.lies("guestd.old").as_deref() == Some(case.old.as_slice()),
        "the old one is kept for a person"
    );
    assert_eq!(case.lies("guestd.new"), None);
    let mode = fs::metadata(case.guest.path("usr/bin/guestd")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert_eq!(case.agent.read(|script| script.fetched), 1, "the new one is content");
    assert_eq!(running.stop().0.code(), Some(0), "it is the same process, and ends as told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_with_another_hash_is_discarded() {
    // In order: other bytes, too few, too many, more than any controller has.
    let case = Case::new().await;
    let digest = sha256(&case.new);
    let named = case.new.len() as u64;
    let changed = [&case.new[..case.new.len() - 1], b"X"].concat();
    let rows: [(&str, Vec<u8>, u64, &str); 4] = [
        ("other bytes", changed, named, "another hash"),
        ("truncated", case.new[..case.new.len() / 2].to_vec(), named, "fewer bytes"),
        ("longer than named", [case.new.as_slice(), b"more"].concat(), named, "more bytes than announced"),
        ("absurd", case.new.clone(), u64::from(u32::MAX), "nothing was fetched"),
    ];
    for (name, bytes, size, words) in rows {
        case.agent.script.lock().unwrap().artifact = bytes;
        case.says(OWN, &digest, size);
        let running = case.guest.run_installed("");
        case.guest.fault("serving", words).await;
        println!("{name}");
        case.is_as_it_was(running).await;
    }
    assert!(case.agent.read(|script| script.fetched) >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_or_broken_program_is_not_installed() {
    let case = Case::new().await;
    let rows: [(&[u8], &str, &str); 4] = [
        (b"#!/bin/sh\nexit 3\n", OWN, "does not run here"),
        (b"\x7fELF but no program", OWN, "does not run here"),
        (b"#!/bin/sh\necho guestd 77.0.0\n", OWN, "calls itself"),
        (b"#!/bin/sh\necho guestd 0.0.1\n", "0.0.1", "not newer"),
    ];
    for (bytes, version, words) in rows {
        case.agent.script.lock().unwrap().artifact = bytes.to_vec();
        case.turn(version, bytes);
        let running = case.guest.run_installed("");
        case.guest.fault("serving", words).await;
        case.is_as_it_was(running).await;
    }
}

/// It prints its version and then fails: the agent's snapshot covers that case. The old program is kept in the same
/// folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_program_leaves_the_old_one_in_place() {
    let case = Case::new().await;
    let bad = format!("#!/bin/sh\nif test \"$1\" = --version; then echo guestd {OWN}; else exit 9; fi\n");
    case.agent.script.lock().unwrap().artifact = bad.clone().into_bytes();
    case.turn(OWN, bad.as_bytes());
    let (status, _) = case.guest.run_installed("").end();
    assert_eq!(status.code(), Some(9), "the new one took its place, and systemd sees how it ends");
    assert_eq!(case.lies("guestd").as_deref(), Some(bad.as_bytes()));
    assert!(case.lies("guestd.old").as_deref() == Some(case.old.as_slice()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_anywhere_leaves_a_whole_program() {
    for point in POINTS {
        let case = Case::new().await;
        case.turn(OWN, &case.new);
        let mut running = case.guest.run_installed(point);
        assert!(running.died().await, "it did not die at {point}: {}", case.guest.state());
        let lies = case.lies("guestd").unwrap();
        let wanted = if point == "Swapped" { &case.new } else { &case.old };
        assert!(lies == *wanted, "{point}: neither half of one nor the other");
        let again = case.guest.run_installed("");
        case.hello_of(&case.new).await;
        assert!(case.lies("guestd").as_deref() == Some(case.new.as_slice()), "{point}");
        assert!(case.lies("guestd.old").as_deref() == Some(case.old.as_slice()), "{point}");
        assert_eq!(case.lies("guestd.new"), None, "{point}");
        assert_eq!(again.stop().0.code(), Some(0), "{point}");
    }
}

/// While a process holds the lock for stacks, the controller is not replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_replacement_while_stacks_are_stopped() {
    let case = Case::new().await;
    fs::create_dir_all(case.guest.path("run/holdfast")).unwrap();
    let held = fs::File::create(case.guest.path("run/holdfast/quiesce.lock")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    case.turn(OWN, &case.new);
    let running = case.guest.run_installed("");
    case.guest.fault("serving", "stacks are stopped").await;
    assert_eq!(case.agent.read(|script| script.fetched), 0);
    assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
    drop(held);
    case.hello_of(&case.new).await;
    assert_eq!(running.stop().0.code(), Some(0));
}

/// No file of the guest can grow beyond some kilobytes, as on a disk that is full: what was there stays, and the next start
/// that has room ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_leaves_everything_as_it_was() {
    let case = Case::new().await;
    case.turn(OWN, &case.new);
    let running = case.guest.run_installed_on_a_full_disk();
    case.guest.fault("serving", "cannot write").await;
    case.is_as_it_was(running).await;
    let running = case.guest.run_installed("");
    case.hello_of(&case.new).await;
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_takes_no_new_file_leaves_everything_as_it_was() {
    let case = Case::new().await;
    fs::create_dir_all(case.guest.path("usr/bin/guestd.new/full")).unwrap();
    case.turn(OWN, &case.new);
    let running = case.guest.run_installed("");
    case.guest.fault("serving", "guestd.new").await;
    assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
    assert_eq!(case.agent.read(|script| script.fetched), 0);
    assert_eq!(running.stop().0.code(), Some(0));
}
