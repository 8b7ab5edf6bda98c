//! Tests of kills at each moment of a window.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use crate::fake_agent::FakeAgent;
use crate::guest::{Guest, each_point, until};
use crate::windows::{guest, plan, stack_status, windows};
use crate::world::World;

/// Every moment that has a name.
pub const POINTS: [&str; 14] = [
    "Requested",
    "Granted",
    "ProgramLaid",
    "MarkerWritten",
    "TimerArmed",
    "HookRun",
    "OneStopped",
    "AllStopped",
    "QuiescedReported",
    "Captured",
    "OneStarted",
    "AllStarted",
    "MarkerGone",
    "TimerGone",
];

struct Dead {
    agent: FakeAgent,
    guest: Guest,
    world: World,
    before: BTreeMap<String, String>,
}

/// A guest whose controller died there. What is stopped then has its marker and its timer.
async fn dead_at(point: &str) -> Dead {
    dead_with(point, |_| {}).await
}

/// The same, of a guest that is set up so.
async fn dead_with(point: &str, set_up: impl Fn(&World)) -> Dead {
    let (agent, guest, world, before) = guest().await;
    set_up(&world);
    plan(&agent, |_| {});
    let mut running = guest.run_until(point);
    let died = running.died().await;
    assert!(died, "it did not die at {point}: {}", stack_status(&guest));
    // Nothing more is due: what happens now is the bringing back alone.
    agent.script.lock().unwrap().windows.due = false;
    if world.states() != before {
        assert!(world.marker() && world.timer().is_some(), "{point}: {:?}", world.states());
    }
    Dead { agent, guest, world, before }
}

/// All that ran runs, only that, and nothing is left over.
fn as_before(dead: &Dead, point: &str) {
    assert_eq!(dead.world.states(), dead.before, "{point}");
    assert!(!dead.world.marker() && dead.world.was_guarded(), "{point}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn the_next_start_resumes_everything() {
    each_point(&POINTS, |point| async move {
        let dead = dead_at(point).await;
        let running = dead.guest.run();
        let hellos = dead.agent.read(|script| script.hellos.len());
        let back = || dead.world.states() == dead.before && !dead.world.marker();
        until(point, back, || format!("{:?} {}", dead.world.states(), stack_status(&dead.guest))).await;
        // A window whose id was never stored is unknown after the kill: the agent's own bound ends it. For any other
        // window, the agent is notified that it is over, because it holds the lane for it.
        let stack_status = || windows(&dead.agent, |w| w.released.len() + w.given_up as usize > 0);
        until(
            &format!("{point}: told"),
            || point == "Requested" || stack_status(),
            || dead.world.log().join("\n"),
        )
        .await;
        until("hello", || dead.agent.read(|script| script.hellos.len() > hellos), String::new).await;
        as_before(&dead, point);
        assert_eq!(running.stop().0.code(), Some(0));
    })
    .await;
}

/// The controller lives, and a person's `guestd backup` dies: the lane that the agent holds for it is released.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_killed_manual_backup_is_resumed_and_reported() {
    each_point(
        &["Granted", "MarkerWritten", "AllStopped", "QuiescedReported", "MarkerGone"],
        |point| async move {
            let (agent, guest, world, before) = guest().await;
            let controller = guest.run();
            until("hello", || agent.read(|script| !script.hellos.is_empty()), String::new).await;
            assert!(guest.start_until(point, "backup").died().await, "{point}: {}", stack_status(&guest));
            let told_agent = || windows(&agent, |w| w.released.len() + w.given_up as usize > 0);
            until(&format!("{point}: told"), told_agent, || {
                format!("{:?} {}", world.states(), stack_status(&guest))
            })
            .await;
            assert_eq!((world.states(), world.marker()), (before, false), "{point}");
            // The controller notifies the agent first, and then records that it did.
            let noted = || stack_status(&guest)["open"].is_null();
            until(&format!("{point}: noted"), noted, || stack_status(&guest).to_string()).await;
            assert_eq!(controller.stop().0.code(), Some(0));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn the_timer_resumes_everything() {
    each_point(&POINTS, |point| async move {
        let dead = dead_at(point).await;
        let Some(timer) = dead.world.timer() else {
            assert_eq!(dead.world.states(), dead.before, "{point}");
            return;
        };
        // Before the bound it waits. A process that removed the marker first would leave parts that stop later without
        // a resume.
        if dead.world.marker() {
            let early = dead.guest.start_as_systemd(&timer);
            assert!(
                String::from_utf8_lossy(&early.stdout).contains("a window is open"),
                "{point}: {early:?}"
            );
            assert!(dead.world.marker());
        }
        dead.world.set_time(1_000 + 890);
        // The disk is full: nothing can be written in the marker's folder, but the marker is removed all the same.
        let output = dead.guest.start_as_systemd(&timer);
        assert_eq!(output.status.code(), Some(0), "{point}: {output:?}");
        as_before(&dead, point);
        assert!(dead.world.timer().is_none(), "{point}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_reboot_resumes_everything() {
    each_point(&POINTS, |point| async move {
        let dead = dead_at(point).await;
        // Timers die with PID 1, and the new boot's clock shows less than the old one's deadline.
        dead.world.lose_timers();
        dead.world.set_boot("boot-b");
        dead.world.set_time(7);
        // What systemd starts by itself is up by then.
        let program = dead.guest.path("var/lib/holdfast/guestd-resume");
        if dead.world.marker() {
            let root = dead.guest.path("");
            let argv = [program.to_str().unwrap(), "resume", "--root", root.to_str().unwrap()];
            let output = dead.guest.start_as_systemd(&argv.map(str::to_owned));
            assert_eq!(output.status.code(), Some(0), "{point}: {output:?}");
        }
        as_before(&dead, point);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_starts_after_a_kill_are_retried() {
    let dead = dead_at("AllStopped").await;
    dead.world.fault("fail", "start-db.service");
    let running = dead.guest.run();
    until("told", || !stack_status(&dead.guest)["down"].is_null(), || stack_status(&dead.guest).to_string())
        .await;
    assert!(dead.world.marker());
    dead.world.no_trouble("fail", "start-db.service");
    let back = || dead.world.states() == dead.before && !dead.world.marker();
    until("back", back, || stack_status(&dead.guest).to_string()).await;
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marker_that_cannot_be_read_starts_what_should_run() {
    let dead = dead_at("AllStopped").await;
    std::fs::write(dead.guest.path("var/lib/holdfast/quiesce.json"), "{").unwrap();
    // Which of them ran is not known any more: what the file wants running is started, jobs that are done excepted.
    let running = dead.guest.run();
    let wanted = || {
        ["web1", "web2", "cache1", "db.service"]
            .iter()
            .all(|id| ["running", "active"].contains(&dead.world.states()[*id].as_str()))
    };
    until("started", wanted, || format!("{:?}", dead.world.states())).await;
    until("put aside", || dead.guest.path("var/lib/holdfast/quiesce.json.bad").exists(), String::new).await;
    let problem =
        || stack_status(&dead.guest)["marker_problem"].as_str().unwrap_or_default().contains("malformed");
    until("told", problem, || stack_status(&dead.guest).to_string()).await;
    std::fs::remove_file(dead.guest.path("var/lib/holdfast/quiesce.json.bad")).unwrap();
    until("well again", || !problem(), || stack_status(&dead.guest).to_string()).await;
    running.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_world_readable_marker_is_still_used() {
    let dead = dead_at("AllStopped").await;
    let marker = dead.guest.path("var/lib/holdfast/quiesce.json");
    std::fs::set_permissions(&marker, std::fs::Permissions::from_mode(0o644)).unwrap();
    dead.world.set_time(1_000 + 890);
    let output = dead.guest.start_as_systemd(&dead.world.timer().unwrap());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    as_before(&dead, "mode 0644");
}

/// Nor does an agent have to say which volumes there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marker_that_is_too_long_starts_what_should_run_with_its_volumes() {
    let dead = dead_with("AllStopped", |world| {
        std::fs::create_dir_all(world.path("proc/self")).unwrap();
        std::fs::create_dir_all(world.path("srv/db")).unwrap();
        std::fs::write(world.path("proc/self/mountinfo"), "23 22 0:21 / /srv/db rw - ext4 /dev/sdb rw\n")
            .unwrap();
        world.set_stacks(
            "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstop_timeout_s = 1\nvolumes.data = { class = \"hot\" }\n",
        );
    })
    .await;
    assert_eq!(dead.world.states()["db.service"], "inactive");
    std::fs::write(dead.guest.path("var/lib/holdfast/quiesce.json"), [b' '; 600_000]).unwrap();
    let output = dead.guest.start_as_systemd(&dead.world.timer().unwrap());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("started: db; not started: none"), "{said}");
    assert_eq!((output.status.code(), dead.world.marker()), (Some(1), false), "{said}");
    assert_eq!(dead.world.states(), dead.before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_resumes_at_once_are_safe() {
    let dead = dead_at("AllStopped").await;
    dead.world.set_time(1_000 + 890);
    let timer = dead.world.timer().unwrap();
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| dead.guest.start_as_systemd(&timer));
        let two = scope.spawn(|| dead.guest.resume(&[]));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one.status.code(), two.status.code()), (Some(0), Some(0)), "{one:?} {two:?}");
    as_before(&dead, "two");
}
