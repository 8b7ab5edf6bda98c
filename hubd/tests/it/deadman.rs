//! Liveness of hosts under a test clock.

use holdfast_protocol::operator::HostState;
use holdfast_protocol::report::Sections;
use hubd::clock::Clock as _;
use hubd::task::deadman::tick;
use jiff::Timestamp;
use reqwest::StatusCode;

use crate::world::World;

async fn alarms(world: &World) -> usize {
    world.event_kinds().await.iter().filter(|kind| *kind == "heartbeat_missed").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_late_then_an_alarm_once_then_over() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let never = world.enrol("never").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let up_since = Timestamp::MIN;
    let table = [
        (0, HostState::Online, 0),
        (60, HostState::Online, 0),
        (1, HostState::Late, 0),
        (74, HostState::Late, 0),
        // And the one that was enrolled and has never spoken.
        (1, HostState::Offline, 2),
        (1000, HostState::Offline, 2),
    ];
    for (advance, state, raised) in table {
        tick(&world.store, &world.term().await, up_since, world.clock.advance(advance)).await.unwrap();
        assert_eq!(world.view("box7").await.state, state, "after {advance}");
        assert_eq!(alarms(&world).await, raised);
    }
    host.check_in(&host.full(2, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(world.view("box7").await.state, HostState::Online);
    assert_eq!(world.view("never").await.state, HostState::NeverSeen);
    let kinds = world.event_kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "host_online").count(), 2);
    tick(&world.store, &world.term().await, up_since, world.clock.now()).await.unwrap();
    assert_eq!(alarms(&world).await, 2);
    never.check_in(&never.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(world.view("never").await.state, HostState::Online);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_hub_raises_and_forgets_no_alarm() {
    let world = World::start().await;
    let gone = world.enrol("gone").await;
    gone.check_in(&gone.full(1, 0), "0s").await.data(StatusCode::OK);
    tick(&world.store, &world.term().await, Timestamp::MIN, world.clock.advance(136)).await.unwrap();
    let quiet = world.enrol("quiet").await;
    quiet.check_in(&quiet.full(1, 0), "0s").await.data(StatusCode::OK);
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    // Down for an hour; up again for a minute; both as before.
    world.clock.advance(3600);
    let up_since = world.clock.now();
    tick(&world.store, &world.term().await, up_since, world.clock.advance(60)).await.unwrap();
    assert_eq!(world.view("quiet").await.state, HostState::Online);
    assert_eq!(world.view("gone").await.state, HostState::Offline);
    assert_eq!(alarms(&world).await, 1);
    // And after its full time, the silent one is missed.
    tick(&world.store, &world.term().await, up_since, world.clock.advance(76)).await.unwrap();
    assert_eq!(world.view("quiet").await.state, HostState::Offline);
    assert_eq!(alarms(&world).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_while_the_alarm_is_written_is_not_alarmed_for() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let now = world.clock.advance(600);
    let silent = world.store.listened_to().await.unwrap();
    host.check_in(&host.full(2, 0), "0s").await.data(StatusCode::OK);
    let worse =
        silent.into_iter().map(|silence| (silence, hubd::domain::deadman::Liveness::Offline)).collect();
    let nil = holdfast_protocol::id::CorrelationId::new(uuid::Uuid::nil());
    world.store.write_down(&world.term().await, worse, now, nil).await.unwrap();
    assert_eq!(world.view("box7").await.state, HostState::Online);
    assert_eq!(alarms(&world).await, 0);
}

/// The contact of a host that had nothing to say is in memory until the next tick, and counts all the same.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_nothing_to_say_is_heard() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    for sequence in 2..5 {
        let now = world.clock.advance(60);
        host.check_in(&host.changed(sequence, 0, Sections::default()), "0s").await.data(StatusCode::OK);
        assert_eq!(world.view("box7").await.seen_at, Some(now));
        tick(&world.store, &world.term().await, Timestamp::MIN, world.clock.advance(59)).await.unwrap();
        assert_eq!(world.view("box7").await.state, HostState::Online, "{sequence}");
    }
    // After its full time it is missed, from its last word on.
    tick(&world.store, &world.term().await, Timestamp::MIN, world.clock.advance(77)).await.unwrap();
    assert_eq!(world.view("box7").await.state, HostState::Offline);
    host.check_in(&host.changed(5, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert_eq!(world.view("box7").await.state, HostState::Online);
    assert_eq!(alarms(&world).await, 1);
}
