//! Tests of stack health between windows.

use holdfast_protocol::local::hello::{UnwellStack, UnwellState};
use holdfast_protocol::report::Health;
use serde_json::Value;

use crate::fake_agent::FakeAgent;
use crate::guest::{Guest, until};
use crate::windows::{guest, stack_status};
use crate::world::{Existing, World};

/// One stack of one unit, and one of two containers.
fn sets(world: &World, more: &str) {
    world.set_stacks(&format!(
        "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstart_timeout_s = 20\n{more}\n\
         [stack.app]\ndriver = \"compose\"\ndirectory = \"/srv/app\"\nstart_timeout_s = 20\n{more}\n"
    ));
}

fn shown(guest: &Guest, stack: &str) -> Value {
    let stack_status = stack_status(guest);
    let watched = stack_status["stack_status"].as_array().cloned().unwrap_or_default();
    watched.into_iter().find(|one| one["stack"] == stack).unwrap_or_default()
}

async fn is(guest: &Guest, stack: &str, state: &str) {
    let fits = || shown(guest, stack)["state"] == state;
    until(&format!("{stack} is {state}"), fits, || stack_status(guest).to_string()).await;
}

/// Of the last hello.
fn unwell(agent: &FakeAgent) -> Vec<UnwellStack> {
    agent.read(|script| script.hellos.last().map(|hello| hello.unwell.clone()).unwrap_or_default())
}

fn starts(world: &World) -> Vec<String> {
    world.acts().into_iter().filter(|act| act.contains(" start ")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_stack_is_reported_and_not_started() {
    let (agent, guest, world, _) = guest().await;
    sets(&world, "");
    let _running = guest.run_watching();
    is(&guest, "app", "runs").await;
    is(&guest, "db", "runs").await;
    world.set_unit("db.service", "failed");
    world.set_container("cache1", Some("app cache crashed"));
    is(&guest, "db", "down").await;
    is(&guest, "app", "down").await;
    let heard = || unwell(&agent).len() == 2;
    until("the agent hears it", heard, || format!("{:?}", unwell(&agent))).await;
    let said = unwell(&agent);
    assert_eq!((said[0].stack.as_str(), said[0].state), ("app", UnwellState::Down));
    assert_eq!((said[0].why.as_str(), said[0].restarts), ("cache ended by itself", 0));
    assert_eq!(said[1].why, "db.service ended by itself");
    let health = agent.read(|script| script.hellos.last().unwrap().health);
    assert_eq!(health, Health::Well, "the controller itself is well, and can be exchanged");
    let table = String::from_utf8(guest.status("table").stdout).unwrap();
    assert!(table.contains("Unwell      app is down since"), "{table}");
    assert_eq!(starts(&world), Vec::<String>::new(), "nobody asked for that");
    // A person repairs it.
    world.set_unit("db.service", "active");
    world.set_container("cache1", Some("app cache running"));
    until("it is over", || unwell(&agent).is_empty(), || stack_status(&guest).to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_stack_is_restarted_with_growing_pauses_where_configured() {
    let (agent, guest, world, _) = guest().await;
    sets(&world, "on_failure = \"restart\"");
    let _running = guest.run_watching();
    is(&guest, "app", "runs").await;
    for (fall, still, over) in [(1_u64, 1_000_u64, 1_000_u64), (2, 1_059, 1_060), (3, 1_179, 1_180)] {
        world.set_time(still);
        world.set_container("web1", Some("app web crashed"));
        if still < over {
            is(&guest, "app", "down").await;
            assert_eq!(starts(&world).len() as u64, fall - 1, "its pause is not over");
            world.set_time(over);
        }
        let up = || shown(&guest, "app")["restarts"] == fall && shown(&guest, "app")["state"] == "runs";
        until(&format!("start {fall}"), up, || stack_status(&guest).to_string()).await;
        assert_eq!(starts(&world).len() as u64, fall);
    }
    assert_eq!(starts(&world)[0], "docker start web1", "and nothing else of it");
    world.set_unit("db.service", "failed");
    until("the unit", || starts(&world).len() == 4, || stack_status(&guest).to_string()).await;
    assert_eq!(starts(&world)[3], "systemctl start -- db.service");
    until("it runs", || world.states()["db.service"] == "active", || stack_status(&guest).to_string()).await;
    let table = String::from_utf8(guest.status("table").stdout).unwrap();
    assert!(table.contains("app runs again; restarted 3 times"), "{table}");
    until("told as well", || unwell(&agent).is_empty(), || format!("{:?}", unwell(&agent))).await;
}

/// By hand: a unit that was stopped, or that exited as a program does on SIGTERM; containers that were stopped, with
/// any exit code; and a project that was removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manually_stopped_stack_is_left_alone() {
    type Stop = fn(&World);
    let stops: [(&str, Stop); 6] = [
        ("db", |world| world.set_unit("db.service", "inactive")),
        ("db", |world| {
            world.set_status("db.service", 143);
            world.set_unit("db.service", "failed");
        }),
        ("app", |world| all(world, "exited")),
        ("app", |world| {
            for id in ["web1", "web2", "cache1"] {
                world.set_stopped(id, Existing::Yes);
            }
            all(world, "crashed");
        }),
        ("app", |world| {
            for id in ["web1", "web2", "cache1"] {
                world.set_policy(id, "unless-stopped");
            }
            all(world, "crashed");
        }),
        ("app", |world| {
            for id in ["web1", "web2", "cache1", "tool1"] {
                world.set_container(id, None);
            }
        }),
    ];
    for (stack, stop) in stops {
        let (agent, guest, world, _) = guest().await;
        sets(&world, "on_failure = \"restart\"");
        let running = guest.run_watching();
        is(&guest, stack, "runs").await;
        stop(&world);
        is(&guest, stack, "stopped").await;
        // After some more checks, Docker has forgotten the manual stops.
        if world.path("world/stopped/web1").exists() {
            for id in ["web1", "web2", "cache1"] {
                world.set_stopped(id, Existing::NoLonger);
            }
        }
        let looks = world.log().len();
        until("more looks", || world.log().len() > looks + 20, || stack_status(&guest).to_string()).await;
        assert_eq!(shown(&guest, stack)["state"], "stopped");
        assert_eq!((starts(&world), unwell(&agent)), (Vec::new(), Vec::new()));
        drop(running);
    }
}

fn all(world: &World, state: &str) {
    for (id, service) in [("web1", "web"), ("web2", "web"), ("cache1", "cache")] {
        world.set_container(id, Some(&format!("app {service} {state}")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn docker_restarts_are_left_to_docker() {
    let (agent, guest, world, _) = guest().await;
    sets(&world, "on_failure = \"restart\"");
    world.set_policy("web1", "always");
    let _running = guest.run_watching();
    world.set_container("web1", Some("app web restarting"));
    is(&guest, "app", "restarting").await;
    until("told", || !unwell(&agent).is_empty(), || stack_status(&guest).to_string()).await;
    assert_eq!(unwell(&agent)[0].why, "web fails repeatedly, and Docker restarts it");
    assert!(starts(&world).is_empty(), "{:?}", starts(&world));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_health_check_is_reported() {
    let (agent, guest, world, _) = guest().await;
    let hook = world.path("bin/hook");
    sets(&world, &format!("hooks.health = [\"{}\", \"health\"]", hook.display()));
    let _running = guest.run_watching();
    is(&guest, "db", "well").await;
    world.fault("fail", "hook-health");
    is(&guest, "db", "unhealthy").await;
    until("told", || unwell(&agent).len() == 2, || stack_status(&guest).to_string()).await;
    assert!(unwell(&agent)[0].why.contains("says the test"), "{:?}", unwell(&agent));
    world.no_trouble("fail", "hook-health");
    is(&guest, "db", "well").await;
}

/// While stacks are stopped for a backup, while packages change, during `guestd try`, in a scratch guest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_polling_while_other_work_runs() {
    type Hold = fn(&Guest, &World) -> Option<std::fs::File>;
    let holds: [Hold; 3] = [
        |_, world| Some(world.changes_packages()),
        |guest, _| {
            let file = std::fs::File::create(guest.path("run/holdfast/try.lock")).unwrap();
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).unwrap();
            Some(file)
        },
        |guest, _| {
            let file = std::fs::File::create(guest.path("run/holdfast/quiesce.lock")).unwrap();
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
            Some(file)
        },
    ];
    for hold in holds {
        let (_agent, guest, world, _) = guest().await;
        sets(&world, "on_failure = \"restart\"");
        let _running = guest.run_watching();
        is(&guest, "db", "runs").await;
        let held = hold(&guest, &world);
        world.set_unit("db.service", "failed");
        // This waits longer than a check that was under way when the lock was taken could still act.
        let file = guest.path("run/holdfast/guestd.json");
        let hellos = || std::fs::read_to_string(&file).unwrap();
        let before = hellos();
        until("two hellos", || hellos() != before, hellos).await;
        assert!(starts(&world).is_empty(), "{:?}", starts(&world));
        drop(held);
        until("started", || starts(&world).len() == 1, || stack_status(&guest).to_string()).await;
    }
}
