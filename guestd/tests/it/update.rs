//! Tests of program replacement.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::fake_agent::{FakeAgent, TOKEN};
use crate::guest::{Guest, Running, until};

/// Every moment that has a name.
const POINTS: [&str; 6] = ["FetchBegun", "Fetched", "Tried", "OldKept", "ExchangeArmed", "Swapped"];

/// Takes every call, and notes it.
const SYSTEMCTL: &str =
    "#!/bin/sh\necho \"$*\" >> \"$(dirname \"$0\")/calls\"\ntest ! -e \"$(dirname \"$0\")/refuses\"\n";

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
        fs::create_dir_all(guest.path("bin")).unwrap();
        fs::write(guest.path("bin/systemctl"), SYSTEMCTL).unwrap();
        fs::set_permissions(guest.path("bin/systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
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

    /// The calls of systemd.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.guest.path("bin/calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Whether a timer would put the previous program back, also after a restart of the guest. Its three files go one by
    /// one.
    fn is_armed(&self) -> bool {
        let units = ["holdfast-take-back.timer", "holdfast-take-back.service"];
        let unit = |unit: &str| self.guest.path("etc/systemd/system").join(unit).exists();
        let link = self.guest.path("etc/systemd/system/timers.target.wants/holdfast-take-back.timer");
        units.into_iter().any(unit) || fs::symlink_metadata(link).is_ok()
    }

    fn exchange(&self) -> serde_json::Value {
        let bytes = fs::read(self.guest.path("var/lib/holdfast/exchange.json"));
        bytes.map_or(serde_json::Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// What the timer starts.
    fn timer_fires(&self) -> std::process::Output {
        let unit =
            fs::read_to_string(self.guest.path("etc/systemd/system/holdfast-take-back.service")).unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        self.guest.start_as_systemd(&argv)
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
    until("it asks what becomes of it", || case.agent.read(|script| !script.asked.is_empty()), String::new)
        .await;
    assert_eq!(case.agent.read(|script| script.asked[0].clone()), format!("trial={}", sha256(&case.new)));
    assert!(case.is_armed() && case.exchange()["state"] == "on_trial", "{}", case.exchange());
    assert!(case.calls().iter().any(|call| call == "restart holdfast-take-back.timer"), "{:?}", case.calls());
    case.agent.script.lock().unwrap().trial = Some("confirmed");
    until("nothing would put the old one back", || !case.is_armed(), String::new).await;
    assert_eq!(case.exchange(), serde_json::Value::Null);
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
        // The last one may have been stopped in the middle of another try.
        let _ = fs::remove_file(case.guest.path("usr/bin/guestd.new"));
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

/// It prints its version and then fails. The timer runs the old program, which puts itself back, and is not exchanged
/// again in the same turn.
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
    let back = case.timer_fires();
    assert!(back.status.success(), "{}", String::from_utf8_lossy(&back.stderr));
    assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
    assert!(
        case.calls().iter().any(|call| call == "restart --no-block guestd.service"),
        "{:?}",
        case.calls()
    );
    assert!(!case.is_armed() && case.exchange()["state"] == "taken_back", "{}", case.exchange());
    let fetched = case.agent.read(|script| script.fetched);
    let running = case.guest.run_installed("");
    case.hello_of(&case.old).await;
    let said = format!("taken_back={}", sha256(bad.as_bytes()));
    let says = || case.agent.read(|script| script.asked.iter().filter(|asked| **asked == said).count() >= 2);
    until("the agent hears of it", says, String::new).await;
    assert_eq!(case.agent.read(|script| script.fetched), fetched, "not once more in this turn");
    assert_eq!(running.stop().0.code(), Some(0));
}

/// The new one runs, and the agent says that it must go: the same process becomes the old one, and no write of the guest's
/// is touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_the_agent_takes_back_puts_the_old_one_back() {
    let case = Case::new().await;
    case.turn(OWN, &case.new);
    case.agent.script.lock().unwrap().trial = Some("take_back");
    let running = case.guest.run_installed("");
    case.hello_of(&case.new).await;
    let said = format!("taken_back={}", sha256(&case.new));
    let says = || case.agent.read(|script| script.asked.contains(&said));
    until("the old one says so", says, || case.guest.state().to_string()).await;
    assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
    assert!(!case.is_armed() && case.exchange()["state"] == "taken_back");
    assert_eq!(case.agent.read(|script| script.fetched), 1);
    assert_eq!(running.stop().0.code(), Some(0), "it is the same process still");
}

/// Killed between the record and the rename, the way back is gone to its end by the next start of the bad one, or by the
/// timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_back_that_was_cut_off_is_gone_to_its_end() {
    for by_timer in [false, true] {
        let case = Case::new().await;
        case.turn(OWN, &case.new);
        case.agent.script.lock().unwrap().trial = Some("take_back");
        let mut running = case.guest.run_installed("TakenBack");
        assert!(running.died().await, "{}", case.guest.state());
        assert!(case.lies("guestd").as_deref() == Some(case.new.as_slice()));
        assert!(case.is_armed() && case.exchange()["state"] == "taken_back");
        if by_timer {
            assert!(case.timer_fires().status.success());
            assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
        }
        let again = case.guest.run_installed("");
        let said = format!("taken_back={}", sha256(&case.new));
        let says = || case.agent.read(|script| script.asked.contains(&said));
        until("the old one says so", says, || case.guest.state().to_string()).await;
        assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
        assert!(!case.is_armed());
        assert_eq!(again.stop().0.code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_timer_nothing_is_exchanged() {
    let case = Case::new().await;
    fs::write(case.guest.path("bin/refuses"), "").unwrap();
    case.turn(OWN, &case.new);
    let running = case.guest.run_installed("");
    case.guest.fault("serving", "nothing would put this controller back").await;
    assert!(case.lies("guestd").as_deref() == Some(case.old.as_slice()));
    fs::remove_file(case.guest.path("bin/refuses")).unwrap();
    assert_eq!(case.exchange(), serde_json::Value::Null);
    assert_eq!(running.stop().0.code(), Some(0));
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
