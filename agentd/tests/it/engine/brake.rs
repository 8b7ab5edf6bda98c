//! Tests of the change limit over a restart.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::report::Running;

use super::drift::{report, serves, start};
use super::world::{World, guest};

/// Three guests, of which the first so many should be stopped.
fn goal(stopped: u8) -> Vec<DesiredGuest> {
    (1..=3)
        .map(|n| DesiredGuest {
            run: if n <= stopped { RunState::Stopped } else { RunState::Running },
            ..guest(n)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_documents_get_no_further_than_one_large_one() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, goal(0)).await;
    agent.until("three guests that serve", |view| (1..=3).all(|n| serves(view, n))).await;
    let stands = |n: u8| {
        move |view: &agentd::model::view::HostSnapshot| {
            report(view, n).is_some_and(|report| report.run == Running::Stopped)
        }
    };
    agent.goal(2, goal(1)).await;
    agent.until("the first stands still", stands(1)).await;
    agent.stop().await;

    let mut agent = start(&world).await;
    agent.goal(3, goal(2)).await;
    agent.until("the second stands still", stands(2)).await;
    agent.goal(4, goal(3)).await;
    let held = |view: &agentd::model::view::HostSnapshot| {
        report(view, 3).is_some_and(|report| {
            report.conditions.iter().any(|condition| condition.code == ErrorCode::BulkChangeHeld)
        })
    };
    let view = agent.until("the third is held", held).await;
    assert_eq!(report(&view, 3).unwrap().run, Running::Running);
    let waiting: Vec<_> = view.waiting.iter().filter(|held| held.payload.contains("release_brake")).collect();
    assert_eq!(waiting.len(), 1, "{view:#?}");
    assert!(waiting[0].payload.contains(&guest(3).uid.to_string()), "{:?}", waiting[0]);
    // A change that takes nothing away continues.
    agent.goal(5, goal(0)).await;
    agent.until("all three serve again", |view| (1..=3).all(|n| serves(view, n))).await;
    agent.stop().await;
}
