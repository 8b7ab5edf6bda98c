//! Stacks while nothing is done to them: what fell over is told and started where that is wished, and a person's stop stands.

use holdfast_protocol::local::hello::{UnwellStack, UnwellState};
use holdfast_protocol::report::Health;
use serde_json::Value;

use crate::fake_agent::FakeAgent;
use crate::guest::{Guest, until};
use crate::windows::{guest, told};
use crate::world::{Known, World};

/// One stack of one unit, and one of two containers.
fn sets(world: &World, more: &str) {
    world.set_stacks(&format!(
        "[stack.db]\ndriver = \"systemd\"\nunits = [\"db.service\"]\nstart_timeout_s = 20\n{more}\n\
         [stack.app]\ndriver = \"compose\"\ndirectory = \"/srv/app\"\nstart_timeout_s = 20\n{more}\n"
    ));
}

fn shown(guest: &Guest, stack: &str) -> Value {
    let told = told(guest);
    let watched = told["watched"].as_array().cloned().unwrap_or_default();
    watched.into_iter().find(|one| one["stack"] == stack).unwrap_or_default()
}

async fn is(guest: &Guest, stack: &str, state: &str) {
    let fits = || shown(guest, stack)["state"] == state;
    until(&format!("{stack} is {state}"), fits, || told(guest).to_string()).await;
}

/// Of the last hello.
fn unwell(agent: &FakeAgent) -> Vec<UnwellStack> {
    agent.read(|book| book.hellos.last().map(|hello| hello.unwell.clone()).unwrap_or_default())
}

fn starts(world: &World) -> Vec<String> {
    world.acts().into_iter().filter(|act| act.contains(" start ")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fell_over_is_told_in_the_status_and_in_the_hello_and_left_as_it_is() {
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
    let health = agent.read(|book| book.hellos.last().unwrap().health);
    assert_eq!(health, Health::Well, "the controller itself is well, and can be exchanged");
    let table = String::from_utf8(guest.status("table").stdout).unwrap();
    assert!(table.contains("Unwell      app is down since"), "{table}");
    assert_eq!(starts(&world), Vec::<String>::new(), "nobody asked for that");
    // A person mends it.
    world.set_unit("db.service", "active");
    world.set_container("cache1", Some("app cache running"));
    until("it is over", || unwell(&agent).is_empty(), || told(&guest).to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fell_over_is_started_with_growing_pauses_where_that_is_wished() {
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
        until(&format!("start {fall}"), up, || told(&guest).to_string()).await;
        assert_eq!(starts(&world).len() as u64, fall);
    }
    assert_eq!(starts(&world)[0], "docker start web1", "and nothing else of it");
    world.set_unit("db.service", "failed");
    until("the unit", || starts(&world).len() == 4, || told(&guest).to_string()).await;
    assert_eq!(starts(&world)[3], "systemctl start -- db.service");
    until("it runs", || world.states()["db.service"] == "active", || told(&guest).to_string()).await;
    let table = String::from_utf8(guest.status("table").stdout).unwrap();
    assert!(table.contains("app runs again; it was started 3 times"), "{table}");
    until("told as well", || unwell(&agent).is_empty(), || format!("{:?}", unwell(&agent))).await;
}

/// By hand: a unit that was stopped, or ended as a program does that is told to; containers that were stopped, whatever they
/// ended with; and a project that was removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_stopped_is_left_alone() {
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
                world.set_stopped(id, Known::Yes);
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
        // Some more looks, and Docker has forgotten who stopped what.
        if world.path("world/stopped/web1").exists() {
            for id in ["web1", "web2", "cache1"] {
                world.set_stopped(id, Known::NoLonger);
            }
        }
        let looks = world.log().len();
        until("more looks", || world.log().len() > looks + 20, || told(&guest).to_string()).await;
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
async fn what_docker_starts_again_is_left_to_docker() {
    let (agent, guest, world, _) = guest().await;
    sets(&world, "on_failure = \"restart\"");
    world.set_policy("web1", "always");
    let _running = guest.run_watching();
    world.set_container("web1", Some("app web restarting"));
    is(&guest, "app", "restarting").await;
    until("told", || !unwell(&agent).is_empty(), || told(&guest).to_string()).await;
    assert_eq!(unwell(&agent)[0].why, "web ends again and again, and Docker starts it");
    assert!(starts(&world).is_empty(), "{:?}", starts(&world));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_whose_check_says_no_is_told() {
    let (agent, guest, world, _) = guest().await;
    let hook = world.path("bin/hook");
    sets(&world, &format!("hooks.health = [\"{}\", \"health\"]", hook.display()));
    let _running = guest.run_watching();
    is(&guest, "db", "well").await;
    world.trouble("fail", "hook-health");
    is(&guest, "db", "unhealthy").await;
    until("told", || unwell(&agent).len() == 2, || told(&guest).to_string()).await;
    assert!(unwell(&agent)[0].why.contains("says the test"), "{:?}", unwell(&agent));
    world.no_trouble("fail", "hook-health");
    is(&guest, "db", "well").await;
}

/// While stacks stand still for a backup, while packages change, while something is tried, in a scratch guest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_looks_while_somebody_else_does_something() {
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
        // Longer than a look under way when it was held could go on to act.
        let file = guest.path("run/holdfast/guestd.json");
        let hellos = || std::fs::read_to_string(&file).unwrap();
        let before = hellos();
        until("two hellos", || hellos() != before, hellos).await;
        assert!(starts(&world).is_empty(), "{:?}", starts(&world));
        drop(held);
        until("started", || starts(&world).len() == 1, || told(&guest).to_string()).await;
    }
}
