//! Tests of apt: snapshot before, health check after.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;

use crate::fake_agent::{FakeAgent, OnRequest};
use crate::guest::{Guest, Running};
use crate::windows::{guest, stack_status};
use crate::world::World;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_must_blocks_apt() {
    let hook = |guest: &Guest| guest.ask("apt-hook", &[]);
    let (agent, guest, world, _) = guest().await;
    assert_eq!(hook(&guest).status.code(), Some(0));
    assert_eq!(agent.read(|script| script.peers.len()), 0, "off: nobody is even asked");
    world.set_stacks("[apt]\nsnapshot = \"try\"\nkeep_hours = 3\n");
    for _ in 0..2 {
        let output = hook(&guest);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    agent.read(|script| {
        assert_eq!(script.requests.len(), 1, "one for all steps of a run");
        assert_eq!(script.requests[0].2["keep_s"], 10_800);
    });
    world.set_time(1_000 + 1_801);
    agent.script.lock().unwrap().on_request =
        [OnRequest::Refuse(ErrorCode::Quota), OnRequest::Refuse(ErrorCode::Quota)].into();
    let output = hook(&guest);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("packages change without one"), "{}", text(&output.stderr));
    world.set_stacks("[apt]\nsnapshot = \"must\"\n");
    let output = hook(&guest);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("must not change without"), "{}", text(&output.stderr));
    drop(agent);
    world.set_stacks("[apt]\nsnapshot = \"try\"\n");
    assert_eq!(hook(&guest).status.code(), Some(0), "an agent that is away holds nobody up");
    world.set_stacks("[apt]\nsnapshot = \"perhaps\"\n");
    assert_eq!(hook(&guest).status.code(), Some(0), "nor does a slip of the pen");
}

/// One stack that runs, and what is to be done about packages.
fn sets(world: &World, apt: &str) {
    world.set_stacks(&format!(
        "[apt]\n{apt}\n[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nhealth_timeout_s = 1\n"
    ));
}

/// A guest whose apt is in the middle of its work: the hook was run, and the lock is held.
async fn amid(apt: &str) -> (FakeAgent, Guest, World, std::fs::File) {
    let (agent, guest, world, _) = guest().await;
    sets(&world, apt);
    let lock = world.changes_packages();
    let output = guest.ask("apt-hook", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (agent, guest, world, lock)
}

fn said(guest: &Guest) -> String {
    stack_status(guest)["packages"]["message"].as_str().unwrap_or_default().to_owned()
}

/// What systemd would start for the last call.
fn judge(guest: &Guest, world: &World) -> (Option<i32>, String) {
    let output = guest.start_as_systemd(world.judges().last().unwrap());
    (output.status.code(), text(&output.stderr))
}

fn requests(agent: &FakeAgent) -> BTreeMap<String, usize> {
    agent.read(|script| {
        let mut counts = BTreeMap::new();
        for request in &script.requests {
            *counts.entry(request.0.clone()).or_default() += 1;
        }
        counts
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stacks_are_checked_after_apt() {
    let (_agent, guest, world, lock) = amid("snapshot = \"try\"").await;
    assert_eq!(said(&guest), "packages are being changed");
    let judging = guest.start("apt-judge", &[]);
    drop(lock);
    let (status, log) = judging.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(said(&guest), "packages changed; well before and after it: db");
    let table = text(&guest.status("table").stdout);
    assert!(table.contains("Packages") && table.contains("well before and after it: db"), "{table}");
    // Once is enough.
    let (code, log) = judge(&guest, &world);
    assert_eq!((code, log.contains("no packages changed")), (Some(0), true), "{log}");
}

/// Between two of dpkg's runs nothing is well, and while stacks are stopped for a backup nothing runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_checked_during_apt_or_a_window() {
    type Hold = fn(&Guest) -> Option<std::fs::File>;
    let turn: Hold = |guest| {
        let file = std::fs::File::create(guest.path("run/holdfast/quiesce.lock")).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        Some(file)
    };
    let marker: Hold = |guest| {
        std::fs::write(guest.path("var/lib/holdfast/quiesce.json"), "{}").unwrap();
        None
    };
    for (hold, words) in [
        (None, "packages are still being changed, after 6 hours"),
        (Some(turn), "stacks stand still for a backup, after 6 hours"),
        (Some(marker), "stacks stand still for a backup, after 6 hours"),
    ] {
        let (agent, guest, world, lock) = amid("snapshot = \"try\"\nafter = \"roll_back\"").await;
        let _lock = hold.is_none().then_some(lock);
        let _turn = hold.and_then(|hold| hold(&guest));
        world.set_unit("db.service", "inactive");
        world.set_time(1_000 + 6 * 3_600);
        let looks = world.log().len();
        let (code, log) = judge(&guest, &world);
        assert_eq!(code, Some(1), "{log}");
        assert!(said(&guest).ends_with(words), "{}", said(&guest));
        assert_eq!(world.log().len(), looks, "nobody looked");
        assert!(!requests(&agent).contains_key("/v1/rollback"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_broken_by_packages_is_reported_only() {
    let (agent, guest, world, lock) = amid("snapshot = \"try\"").await;
    world.set_unit("db.service", "failed");
    world.set_packages("installed apt\nhalf-configured db\n");
    drop(lock);
    let (code, log) = judge(&guest, &world);
    assert_eq!(code, Some(1), "{log}");
    let said = said(&guest);
    let name = agent.read(|script| script.requests[0].2["name"].as_str().unwrap().to_owned());
    for words in ["stack db is not well", "db (half-configured)", &format!("`guestd rollback {name}`")] {
        assert!(said.contains(words), "{said}");
    }
    assert!(log.contains(&said), "the journal has it, too: {log}");
    assert_eq!(requests(&agent), [("/v1/snapshots".to_owned(), 1)].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_rolls_back_where_configured() {
    let (agent, guest, world, lock) = amid("snapshot = \"try\"\nafter = \"roll_back\"").await;
    agent.script.lock().unwrap().rolls_back = true;
    world.set_unit("db.service", "failed");
    drop(lock);
    let (code, log) = judge(&guest, &world);
    assert_eq!(code, Some(10), "{log}");
    agent.read(|script| {
        assert_eq!(script.requests[1].0, "/v1/rollback");
        assert_eq!(script.requests[1].2["snapshot"], script.requests[0].2["name"]);
    });
    assert!(said(&guest).contains("rolling back to snapshot apt-"), "it was said before it was done: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_rollback_past_later_snapshots_or_other_work() {
    type Change = fn(&mut crate::fake_agent::AgentScript);
    let cases: [(Change, &str, u32); 3] = [
        (|script| script.other_snapshots.push("mine".to_owned()), "snapshot mine came after it", 0),
        (|script| script.before_rollback = 1, "other work on this guest is queued before it", 1),
        (|_| {}, "says the test", 0),
    ];
    for (change, words, cancelled) in cases {
        let (agent, guest, world, lock) = amid("snapshot = \"try\"\nafter = \"roll_back\"").await;
        change(&mut agent.script.lock().unwrap());
        world.set_unit("db.service", "failed");
        drop(lock);
        let (code, log) = judge(&guest, &world);
        assert!(matches!(code, Some(1 | 11)), "{log}");
        assert!(said(&guest).contains(words), "{}", said(&guest));
        assert_eq!(agent.read(|script| script.cancelled), cancelled);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unhealthy_or_removed_stacks_are_ignored() {
    let (_agent, guest, world, _) = guest().await;
    sets(&world, "after = \"report\"");
    world.set_unit("db.service", "failed");
    assert_eq!(guest.ask("apt-hook", &[]).status.code(), Some(0));
    assert_eq!(judge(&guest, &world).0, Some(0), "it was not well before");
    assert_eq!(said(&guest), "packages changed; well before and after it: none");

    world.set_time(4_000);
    world.set_unit("db.service", "active");
    assert_eq!(guest.ask("apt-hook", &[]).status.code(), Some(0));
    world.set_unit("db.service", "failed");
    world.set_stacks("[apt]\nafter = \"report\"\n");
    assert_eq!(judge(&guest, &world).0, Some(0), "a person took it out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_last_call_of_a_run_in_one_boot_is_checked() {
    let (agent, guest, world, lock) = amid("snapshot = \"try\"\nafter = \"roll_back\"").await;
    let first: Running = guest.start("apt-judge", &[]);
    assert_eq!(guest.ask("apt-hook", &[]).status.code(), Some(0), "the next step of this run");
    // While apt runs: another judge waits for its end.
    assert_eq!(first.end().0.code(), Some(0));
    assert_eq!(world.judges().len(), 2);
    world.set_unit("db.service", "failed");
    drop(lock);
    world.set_boot("boot-b");
    let (code, log) = judge(&guest, &world);
    assert_eq!(code, Some(0), "a restart is none of apt's doing: {log}");
    assert_eq!(requests(&agent), [("/v1/snapshots".to_owned(), 1)].into());
    world.set_boot("boot-a");
    assert_eq!(judge(&guest, &world).0, Some(11));
    assert_eq!(requests(&agent)["/v1/rollback"], 1);
    // It was judged: what changes now has a snapshot of its own.
    world.set_unit("db.service", "active");
    assert_eq!(guest.ask("apt-hook", &[]).status.code(), Some(0));
    assert_eq!(requests(&agent)["/v1/snapshots"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guestd_try_is_checked_by_itself_only() {
    let (agent, guest, world, _) = guest().await;
    sets(&world, "snapshot = \"must\"\nafter = \"roll_back\"");
    let hook = format!("{} apt-hook --root \"$1\" --source-address 127.0.7.9", env!("CARGO_BIN_EXE_guestd"));
    let root = guest.path("");
    let output = guest.ask("try", &["--", "/bin/sh", "-c", &hook, "sh", root.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("something is tried"), "{}", text(&output.stderr));
    assert_eq!(requests(&agent), [("/v1/snapshots".to_owned(), 1)].into(), "the trial's own");
    assert!(world.judges().is_empty() && !guest.path("run/holdfast/apt.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packages_change_without_an_agent() {
    let (_agent, guest, world, _) = guest().await;
    sets(&world, "after = \"report\"");
    world.fault("fail", "arm-judge");
    let output = guest.ask("apt-hook", &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(said(&guest).contains("stacks are not checked"), "{}", said(&guest));
}
