//! Tests of quiesce windows.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use holdfast_protocol::local::window::WindowPhase;

use crate::fake_agent::{FakeAgent, TOKEN};
use crate::fake_windows::Windows;
use crate::guest::{Guest, until};
use crate::world::World;

/// A guest that has its token and stacks that run.
pub async fn guest() -> (FakeAgent, Guest, World, BTreeMap<String, String>) {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    guest.keep(&agent.bootstrap(TOKEN));
    let world = World::of(&guest);
    let before = world.states();
    (agent, guest, world, before)
}

pub fn plan(agent: &FakeAgent, change: impl FnOnce(&mut Windows)) {
    let mut script = agent.script.lock().unwrap();
    script.windows.due = true;
    change(&mut script.windows);
}

pub fn windows<T>(agent: &FakeAgent, look: impl FnOnce(&Windows) -> T) -> T {
    agent.read(|script| look(&script.windows))
}

pub fn stack_status(guest: &Guest) -> serde_json::Value {
    match std::fs::read(guest.path("run/holdfast/stacks.json")) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
        Err(_) => serde_json::Value::Null,
    }
}

/// Waits until a window is over, with this reason.
pub async fn over(guest: &Guest, words: &str) {
    let why = || stack_status(guest)["last"]["why"].as_str().unwrap_or_default().to_owned();
    until(
        &format!("a window is over: {words}"),
        || why().contains(words),
        || stack_status(guest).to_string(),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_stacks_stop_for_a_due_backup_and_resume() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |_| {});
    let running = guest.run();
    over(&guest, "the backup was captured").await;
    assert_eq!(world.states(), before, "exactly what ran runs, and what a person stopped stands still");
    assert!(world.was_guarded() && !world.marker() && world.timer().is_none());
    assert_eq!(
        world.acts(),
        [
            "hook pre",
            "docker stop web1 web2",
            "docker stop cache1",
            "systemctl stop -- db.service",
            "systemctl start -- db.service",
            "docker start cache1",
            "docker start web1 web2",
            "hook post",
        ]
    );
    windows(&agent, |windows| {
        assert_eq!(windows.asked.len(), 1);
        let said = &windows.quiesced[0];
        assert_eq!(said.stacks.iter().map(|stack| stack.as_str()).collect::<Vec<_>>(), ["db", "app"]);
        assert_eq!(said.canaries.len(), 1, "no volume is mounted");
        assert_eq!((windows.released[0].down.len(), windows.released[0].begun_ms_ago), (0, Some(0)));
    });
    assert!(!guest.path("var/lib/holdfast/releases.json").exists(), "the agent heard it");
    let text = String::from_utf8(guest.status("table").stdout).unwrap();
    for words in ["db, app, idle", "Last window", "application-consistent (says the test)", "Canaries    1"] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
    let bound = world.log().into_iter().find(|line| line.starts_with("systemd-run")).unwrap();
    assert!(bound.contains("--on-active=890s --on-active=60s --on-unit-inactive=60s"), "{bound}");
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_being_stopped_cancels_the_window() {
    let (agent, guest, world, _) = guest().await;
    world.set_unit("spare.service", "deactivating");
    plan(&agent, |_| {});
    let _running = guest.run();
    over(&guest, "spare.service of stack db are being stopped by hand").await;
    assert!(!world.acts().iter().any(|act| act.contains("stop")), "{:?}", world.acts());
    windows(&agent, |windows| assert_eq!((windows.given_up, windows.quiesced.len()), (1, 0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hot_volumes_that_are_mounted_get_a_canary() {
    let (agent, guest, world, _) = guest().await;
    std::fs::create_dir_all(guest.path("proc/self")).unwrap();
    std::fs::create_dir_all(guest.path("srv/db")).unwrap();
    std::fs::write(guest.path("proc/self/mountinfo"), "23 22 0:21 / /srv/db rw - ext4 /dev/sdb rw\n")
        .unwrap();
    plan(&agent, |_| {});
    let _running = guest.run();
    over(&guest, "the backup was captured").await;
    let canary = windows(&agent, |windows| windows.quiesced[0].canaries[1].clone());
    assert_eq!(canary.mount.unwrap().as_str(), "/srv/db");
    assert_eq!(std::fs::read(guest.path("srv/db/.holdfast-canary")).unwrap().len(), 64);
    assert!(world.was_guarded());
}

/// Nothing is stopped, and the window is called off, when this file cannot be written or that act fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_stopped_without_marker_program_or_timer() {
    for (folder_at, fails, words) in [
        (Some("var/lib/holdfast/quiesce.json.new"), None, "the marker cannot be written"),
        (Some("var/lib/holdfast/guestd-resume.new"), None, "no timer could be armed"),
        (None, Some("arm-timer"), "no timer could be armed"),
    ] {
        let (agent, guest, world, before) = guest().await;
        if let Some(path) = folder_at {
            // A folder where the file would be made: no process can write it, not even root.
            std::fs::create_dir_all(guest.path(path).join("x")).unwrap();
        }
        if let Some(act) = fails {
            world.fault("fail", act);
        }
        plan(&agent, |_| {});
        let running = guest.run();
        over(&guest, words).await;
        assert_eq!(world.states(), before);
        assert!(!world.acts().iter().any(|act| act.contains("stop")), "{:?}", world.acts());
        assert!(!world.marker());
        windows(&agent, |windows| assert_eq!((windows.given_up, windows.quiesced.len()), (1, 0)));
        assert_eq!(running.stop().0.code(), Some(0));
    }
}

/// A full disk: each file but the marker may be unwritable, and the window goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_write_failures_stop_nothing() {
    for path in ["var/lib/holdfast/canary.new", "var/lib/holdfast/canaries.json.new"] {
        let (agent, guest, world, before) = guest().await;
        std::fs::create_dir_all(guest.path(path).join("x")).unwrap();
        plan(&agent, |_| {});
        let _running = guest.run();
        over(&guest, "the backup was captured").await;
        assert_eq!(world.states(), before);
        assert_eq!(
            stack_status(&guest)["last"]["notes"].as_array().unwrap().len(),
            1,
            "{}",
            stack_status(&guest)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_or_never_given_ends_in_running_stacks() {
    for call in ["ask", "quiesced", "released", "look", "give_up"] {
        let (agent, guest, world, before) = guest().await;
        plan(&agent, |windows| windows.lost.extend([call]));
        let _running = guest.run();
        // Until the call was made at least once; from then on answers arrive again.
        let made = || {
            windows(&agent, |w| match call {
                "ask" => w.asked.len(),
                "quiesced" => w.quiesced.len(),
                "released" => w.released.len(),
                "look" => w.looks as usize,
                _ => 1,
            })
        };
        until(call, || made() > 0, || stack_status(&guest).to_string()).await;
        agent.script.lock().unwrap().windows.lost.clear();
        until("it is over", || stack_status(&guest)["last"].is_object(), || stack_status(&guest).to_string())
            .await;
        assert_eq!(world.states(), before, "{call}");
        assert!(world.was_guarded() && !world.marker(), "{call}");
        windows(&agent, |windows| {
            assert!(windows.asked.iter().all(|key| *key == windows.asked[0]), "one request");
            assert!(windows.quiesced.iter().all(|said| *said == windows.quiesced[0]));
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_away_at_any_call_stops_nothing_for_longer_than_it_is_silent() {
    for call in ["due", "ask", "storage", "look", "quiesced"] {
        let (agent, guest, world, before) = guest().await;
        plan(&agent, |windows| windows.deaf.extend([call]));
        let _running = guest.run();
        let tried = || windows(&agent, |w| w.missed.contains(call));
        until(&format!("{call} is tried"), tried, || stack_status(&guest).to_string()).await;
        // Two minutes pass on its clock; nothing is waited for here.
        world.set_time(1_000 + 125);
        match call {
            "look" => over(&guest, "did not answer for too long").await,
            "quiesced" => over(&guest, "did not acknowledge that the stacks are stopped").await,
            _ => {}
        }
        agent.script.lock().unwrap().windows.deaf.clear();
        let ends = || world.states() == before && !world.marker();
        until(&format!("{call}: all runs"), ends, || {
            format!("{:?} {}", world.states(), stack_status(&guest))
        })
        .await;
        assert!(world.was_guarded(), "{call}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_too_late_changes_nothing() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Quiesced));
    let _running = guest.run();
    until("quiesced", || windows(&agent, |w| !w.quiesced.is_empty()), || stack_status(&guest).to_string())
        .await;
    // The answer to this status call is held until long after the bound, and then reports that all is well.
    agent.script.lock().unwrap().windows.held.insert("look");
    until("held", || windows(&agent, |w| w.waiting.contains("look")), || stack_status(&guest).to_string())
        .await;
    world.set_time(1_000 + 890);
    over(&guest, "the bound of the window passed").await;
    assert_eq!(world.states(), before);
    agent.script.lock().unwrap().windows.held.clear();
    let released = || windows(&agent, |w| w.released.len() == 1);
    until("told", released, || stack_status(&guest).to_string()).await;
    assert_eq!(world.states(), before);
    assert!(!world.marker());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_or_goes_ends_the_window() {
    for time in [Some("5.00 0.00\n"), Some("rubbish"), Some("99999999.00 0.00\n")] {
        let (agent, guest, world, before) = guest().await;
        plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
        let _running = guest.run();
        until(
            "capturing",
            || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
            || stack_status(&guest).to_string(),
        )
        .await;
        std::fs::write(guest.path("proc/uptime.new"), time.unwrap()).unwrap();
        std::fs::rename(guest.path("proc/uptime.new"), guest.path("proc/uptime")).unwrap();
        if time == Some("5.00 0.00\n") {
            // Back: more is left than ever was. The agent's end ends it all the same.
            agent.script.lock().unwrap().windows.stays_at = None;
        }
        until(
            "all runs",
            || world.states() == before && !world.marker(),
            || stack_status(&guest).to_string(),
        )
        .await;
    }
}

/// From the moment that all is stopped, nothing can be written any more, neither to the disk nor to memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starting_again_needs_no_room() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let _running = guest.run();
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    for file in ["guestd.json", "stacks.json", "resume-requested"] {
        no_room(&guest.path("run/holdfast").join(format!("{file}.new"))).await;
    }
    for file in
        ["quiesce.json.new", "canary.new", "canaries.json.new", "guestd-resume.new", "releases.json.new"]
    {
        no_room(&guest.path("var/lib/holdfast").join(file)).await;
    }
    agent.script.lock().unwrap().windows.stays_at = None;
    until("all runs", || world.states() == before && !world.marker(), || format!("{:?}", world.states()))
        .await;
    until("told", || windows(&agent, |w| !w.released.is_empty()), || format!("{:?}", world.log())).await;
    // The status for people could not be written: the agent is still notified once.
    let hellos = || agent.read(|script| script.hellos.len());
    let heard = hellos();
    until("more hellos", || hellos() > heard + 3, || hellos().to_string()).await;
    assert_eq!(windows(&agent, |w| w.released.len()), 1);
}

/// A folder where a file would be made: no process can write it, not even root. Tried again while another process is
/// just writing there.
async fn no_room(path: &Path) {
    let in_the_way = [ErrorKind::NotADirectory, ErrorKind::AlreadyExists];
    let made = || {
        let made = std::fs::create_dir_all(path.join("x"));
        assert!(made.as_ref().err().is_none_or(|error| in_the_way.contains(&error.kind())), "{made:?}");
        made.is_ok()
    };
    until("no room", made, || path.display().to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_agent_keeps_nothing_stopped() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let running = guest.run();
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    assert_eq!(world.states()["db.service"], "inactive");
    plan(&agent, |windows| windows.deaf.extend(["look", "released", "quiesced"]));
    // The messages from before were delivered by now.
    until("silent", || windows(&agent, |w| w.missed.contains("look")), || stack_status(&guest).to_string())
        .await;
    world.set_time(1_000 + 125);
    over(&guest, "did not answer for too long").await;
    assert_eq!(world.states(), before);
    assert!(!world.marker());
    // The agent is notified a minute later, by the process that runs then, that the start began a minute ago: its copy
    // may have been going on.
    assert!(guest.path("var/lib/holdfast/releases.json").exists());
    drop(running);
    world.set_time(1_000 + 185);
    let _running = guest.run();
    let missed = || windows(&agent, |w| w.missed.clone());
    agent.script.lock().unwrap().windows.missed.clear();
    until("queued for later", || missed().contains("released"), || stack_status(&guest).to_string()).await;
    agent.script.lock().unwrap().windows.deaf.clear();
    until("heard", || windows(&agent, |w| !w.released.is_empty()), || stack_status(&guest).to_string()).await;
    assert_eq!(windows(&agent, |w| w.released[0].begun_ms_ago), Some(59_990));
    let forgotten = || !guest.path("var/lib/holdfast/releases.json").exists();
    until("forgotten", forgotten, || stack_status(&guest).to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_is_ours_whatever_the_agent_says() {
    for bound_s in [900, u32::MAX] {
        let (agent, guest, world, before) = guest().await;
        plan(&agent, |windows| {
            windows.stays_at = Some(WindowPhase::Capturing);
            windows.bound_s = bound_s;
        });
        let _running = guest.run();
        until(
            "capturing",
            || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
            || stack_status(&guest).to_string(),
        )
        .await;
        // As after a suspend: much time at once.
        world.set_time(1_000 + if bound_s == 900 { 890 } else { 7_190 });
        over(&guest, "the bound of the window passed").await;
        assert_eq!(world.states(), before);
        assert_eq!(windows(&agent, |w| w.released.len()), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contradictory_answers_stop_nothing_or_resume() {
    for (phase, words) in [
        (WindowPhase::Captured, "they are running"),
        (WindowPhase::Released, "it is over"),
        (WindowPhase::Cancelled, "the agent cancelled the window"),
    ] {
        let (agent, guest, world, before) = guest().await;
        plan(&agent, |windows| windows.stays_at = Some(phase));
        // The window is requested, and is in that phase from the first status call on.
        let _running = guest.run();
        until("asked", || windows(&agent, |w| !w.asked.is_empty()), || stack_status(&guest).to_string())
            .await;
        agent.script.lock().unwrap().windows.phase = Some(phase);
        until("it is over", || stack_status(&guest)["last"].is_object(), || stack_status(&guest).to_string())
            .await;
        assert_eq!(world.states(), before, "{words}");
        assert!(!world.marker());
    }
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.bound_s = 5);
    let _running = guest.run();
    over(&guest, "too little time").await;
    assert_eq!((world.states(), world.acts().len()), (before, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_that_does_not_stop_calls_the_window_off() {
    for (fails, words) in
        [("stop-cache1", "stack app does not stop"), ("hook-pre", "pre_quiesce of stack app failed")]
    {
        let (agent, guest, world, before) = guest().await;
        world.fault("fail", fails);
        plan(&agent, |_| {});
        let _running = guest.run();
        over(&guest, words).await;
        assert_eq!(world.states(), before);
        assert!(!world.marker());
        windows(&agent, |windows| assert_eq!((windows.given_up, windows.quiesced.len()), (1, 0)));
    }
}

/// Its data are as after a power cut, even if all is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_part_cancels_the_window() {
    for (container, words) in
        [(true, "cache of stack app did not stop in time"), (false, "db.service of stack db did not stop")]
    {
        let (agent, guest, world, before) = guest().await;
        match container {
            true => world.set_deaf("cache1"),
            false => world.set_result("db.service", "timeout"),
        }
        world.set_grace("cache1", 300);
        plan(&agent, |_| {});
        let _running = guest.run();
        over(&guest, words).await;
        assert!(world.acts().contains(&"docker stop -t 1 cache1".to_owned()), "{:?}", world.acts());
        assert_eq!(world.states(), before);
        assert!(!world.marker());
        windows(&agent, |windows| assert_eq!((windows.given_up, windows.quiesced.len()), (1, 0)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_that_does_not_start_is_reported_and_retried() {
    let (agent, guest, world, before) = guest().await;
    world.fault("fail", "start-cache1");
    plan(&agent, |_| {});
    let running = guest.run();
    until("released", || windows(&agent, |w| !w.released.is_empty()), || stack_status(&guest).to_string())
        .await;
    windows(&agent, |windows| {
        let down = &windows.released[0].down;
        assert_eq!((down.len(), down[0].stack.as_str()), (1, "app"));
        assert!(down[0].why.contains("says the test"), "{}", down[0].why);
    });
    assert_eq!(world.states()["db.service"], "active", "one that fails keeps no other down");
    assert!(world.marker());
    let unwell = || {
        agent.read(|script| script.hellos.last().unwrap().health == holdfast_protocol::report::Health::Unwell)
    };
    until("unwell", unwell, || stack_status(&guest).to_string()).await;
    let text = String::from_utf8(guest.status("table").stdout).unwrap();
    assert!(text.contains("Down        app:"), "{text}");
    world.no_trouble("fail", "start-cache1");
    until("all runs", || world.states() == before && !world.marker(), || stack_status(&guest).to_string())
        .await;
    until("well again", || !unwell(), || stack_status(&guest).to_string()).await;
    until("the timer is taken back", || world.timer().is_none(), || format!("{:?}", world.log())).await;
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_request_ends_the_window_at_once() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let _running = guest.run();
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    let output = guest.resume(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(world.states(), before);
    assert!(!world.marker());
    over(&guest, "guestd resume was requested").await;
    let nothing = guest.resume(&[]);
    assert!(String::from_utf8_lossy(&nothing.stdout).contains("nothing is stopped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_the_controller_resumes_the_stacks_first() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let running = guest.run();
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    let (status, log) = running.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(world.states(), before, "{log}");
    assert!(!world.marker() && world.timer().is_none());
    // The next process that runs notifies the agent.
    world.set_time(1_000 + 30);
    let _running = guest.run();
    until("heard", || windows(&agent, |w| !w.released.is_empty()), || stack_status(&guest).to_string()).await;
    assert_eq!(windows(&agent, |w| w.released[0].begun_ms_ago), Some(29_990));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_shows_everything_and_stops_nothing() {
    let (_agent, guest, world, before) = guest().await;
    let output = guest.ask("quiesce", &["--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in [
        "db                   runs: db.service",
        "idle                 stopped, and stays stopped",
        "1. app stop: docker stop web1 web2",
        "2. db stop: systemctl stop -- db.service",
        "Nothing was stopped.",
    ] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
    assert_eq!((world.states(), world.acts().len()), (before, 0));
    assert!(world.timer().is_none() && !world.marker(), "what was tried was taken back");
    assert!(world.log().iter().any(|line| line.starts_with("systemd-run")), "the timer was tried");
    world.fault("fail", "arm-timer");
    let output = guest.ask("quiesce", &["--dry-run", "--output", "json"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), plan["problems"].as_array().unwrap().len()), (Some(1), 1), "{plan}");
    world.set_stacks("[stack.a]\ndriver = \"podman\"\n");
    let unwell =
        || stack_status(&guest)["file_problem"].as_str().is_some_and(|why| why.contains("stack.a.driver"));
    let running = guest.run();
    until("the file's mistake is told", unwell, || stack_status(&guest).to_string()).await;
    world.set_stacks("");
    until("and taken back", || !unwell(), || stack_status(&guest).to_string()).await;
    drop(running);
    world.set_stacks("[stack.a]\ndriver = \"podman\"\n");
    let refused = guest.ask("quiesce", &["--dry-run"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("stacks.toml is refused at `stack.a.driver`"), "{error}");
}

/// The agent labels a backup by when its first part was started, by any process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_suspend_the_timers_start_time_is_reported() {
    let (agent, guest, world, before) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let mut running = guest.run();
    let capturing = || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing));
    until("capturing", capturing, || stack_status(&guest).to_string()).await;
    running.sleep().await;
    world.set_time(1_000 + 900);
    let output = guest.start_as_systemd(&world.timer().unwrap());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(world.states(), before);
    world.set_time(1_000 + 1_000);
    running.wake();
    until("released", || windows(&agent, |w| !w.released.is_empty()), || stack_status(&guest).to_string())
        .await;
    assert_eq!(windows(&agent, |w| w.released[0].begun_ms_ago), Some(100_000 - 10));
}
