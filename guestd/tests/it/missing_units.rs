//! Tests of stopped parts that are removed or fail.

use holdfast_protocol::local::window::WindowPhase;

use crate::fake_agent::FakeAgent;
use crate::guest::{Guest, until};
use crate::windows::{guest, plan, stack_status, windows};
use crate::world::World;

/// A guest whose stacks are stopped, from which every stopped container is removed.
async fn pruned() -> (FakeAgent, Guest, World) {
    let (agent, guest, world, _) = guest().await;
    plan(&agent, |windows| windows.stays_at = Some(WindowPhase::Capturing));
    let mut running = guest.run_until("Captured");
    until(
        "capturing",
        || windows(&agent, |w| w.phase == Some(WindowPhase::Capturing)),
        || stack_status(&guest).to_string(),
    )
    .await;
    for id in ["web1", "web2", "cache1", "tool1", "idle1"] {
        world.set_container(id, None);
    }
    agent.script.lock().unwrap().windows.stays_at = None;
    assert!(running.died().await, "{}", stack_status(&guest));
    (agent, guest, world)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_part_is_down_until_recreated() {
    let (agent, guest, world) = pruned().await;
    let running = guest.run();
    let down = || stack_status(&guest)["down"][0]["why"].as_str().unwrap_or_default().to_owned();
    let why = "cache, web were removed while they were stopped";
    until("it is told", || down().contains(why), || stack_status(&guest).to_string()).await;
    assert!(down().contains("/srv/app up --detach` makes them again"), "{}", down());
    until("the rest runs", || world.states()["db.service"] == "active", || stack_status(&guest).to_string())
        .await;
    assert!(world.marker() && world.timer().is_some());
    let unwell = || {
        agent.read(|script| script.hellos.last().unwrap().health == holdfast_protocol::report::Health::Unwell)
    };
    until("unwell", unwell, || stack_status(&guest).to_string()).await;
    // One of two services is not all.
    world.set_container("web9", Some("app web running"));
    until("one is back", || down().starts_with("cache were removed"), || stack_status(&guest).to_string())
        .await;
    world.set_container("cache9", Some("app cache running"));
    until("all is back", || !world.marker() && !unwell(), || stack_status(&guest).to_string()).await;
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_part_can_be_forgotten() {
    let (_agent, guest, world) = pruned().await;
    let resumed = guest.resume(&[]);
    assert_eq!(resumed.status.code(), Some(1), "{}", text(&resumed.stderr));
    assert!(text(&resumed.stderr).contains("guestd resume --without-removed"), "{}", text(&resumed.stderr));
    assert!(world.marker());
    let let_be = guest.resume(&["--without-removed"]);
    assert_eq!(let_be.status.code(), Some(0), "{}", text(&let_be.stderr));
    assert!(text(&let_be.stdout).contains("forgotten: cache, web"), "{}", text(&let_be.stdout));
    assert!(!world.marker() && world.timer().is_none());
    assert_eq!(world.states()["db.service"], "active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_fails_after_its_start_is_not_running() {
    let (agent, guest, world, before) = guest().await;
    world.set_falls("cache1", true);
    plan(&agent, |_| {});
    let running = guest.run();
    until("released", || windows(&agent, |w| !w.released.is_empty()), || stack_status(&guest).to_string())
        .await;
    let down = || stack_status(&guest)["down"][0]["why"].as_str().unwrap_or_default().to_owned();
    until("told", || down().contains("cache failed"), || stack_status(&guest).to_string()).await;
    world.set_container("cache1", Some("app cache restarting"));
    until("told", || down().contains("cache are not running"), || stack_status(&guest).to_string()).await;
    assert!(world.marker() && world.timer().is_some());
    world.set_falls("cache1", false);
    world.set_container("cache1", Some("app cache running"));
    until("all runs", || !world.marker(), || stack_status(&guest).to_string()).await;
    assert_eq!(world.states(), before);
    // A part that failed before it was stopped delays nothing.
    world.set_container("cache1", Some("app cache restarting"));
    drop(running);
    let mut hand = guest.start_until("AllStopped", "backup");
    assert!(hand.died().await);
    world.set_falls("cache1", true);
    let output = guest.resume(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!world.marker());
}
