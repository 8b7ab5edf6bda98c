//! A controller that the document wishes, by the whole agent: signed for, offered, exchanged or taken back.

use agentd::model::record::HelloRecord;
use agentd::port::pve::TaskKind;
use agentd::task::intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{ControllerWish, DesiredGuest};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::Verb;
use holdfast_protocol::local::desired::Turn;
use holdfast_protocol::operation::{OperationKind, OperationStatus};
use holdfast_protocol::report::Health;

use super::drift::{Agent, report, serves, start};
use super::jobs::{found, lay_down, leave, signed, waits};
use super::world::{World, guest, tasks};

/// Without a volume that a way back would take along and no backup holds.
fn hot() -> DesiredGuest {
    let mut hot = guest(1);
    hot.volumes.truncate(1);
    hot
}

/// A guest that serves, and whose turn it is to run the controller that was signed for.
async fn in_its_turn(world: &World) -> (Agent, ControllerWish, OperationId) {
    let mut agent = start(world).await;
    lay_down(&agent).await;
    agent.wish(1, vec![hot()]).await;
    agent.until("it serves", |view| serves(view, 1)).await;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("guestd");
    std::fs::write(&program, b"\x7fELF a newer controller").unwrap();
    let (sha256, _) = agent.ports.artifacts.take_in(&program).unwrap();
    let wish = ControllerWish {
        version: "0.2.0".to_owned().try_into().unwrap(),
        sha256: sha256.as_str().to_owned().try_into().unwrap(),
    };
    agent.wish(2, vec![DesiredGuest { controller: Some(wish.clone()), ..hot() }]).await;
    // It lies here and is wished; that is not enough.
    let view = agent.until("it waits for a signature", waits(Verb::ApproveRelease)).await;
    assert_eq!(tasks(world, TaskKind::Snapshot).await, 0);
    let mail = signed(&agent, found(&view, Verb::ApproveRelease).unwrap()).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let mut changes = agent.ports.store.changes();
    let turn = loop {
        changes.mark_unchanged();
        if let Turn::Now(turn) = agent.ports.store.turn_of(hot().uid, sha256.clone()).await.unwrap() {
            break turn;
        }
        changes.changed().await.unwrap();
    };
    assert_eq!(tasks(world, TaskKind::Snapshot).await, 1, "there is something to come back to");
    agent.ports.store.note_fetched(turn, agent.ports.clock.now()).await.unwrap();
    (agent, wish, turn)
}

async fn ended(agent: &Agent, update: OperationId) -> OperationStatus {
    let mut changes = agent.ports.store.changes();
    loop {
        changes.mark_unchanged();
        let views = agent.ports.store.operation_views(20).await.unwrap();
        let own = views.iter().find(|view| view.id == update).unwrap();
        assert_eq!(own.kind, OperationKind::UpdateController);
        if own.status.is_end() {
            return own.status;
        }
        changes.changed().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_comes_up_stays() {
    let world = World::start().await;
    let (mut agent, wish, update) = in_its_turn(&world).await;
    let hello = HelloRecord {
        told: Default::default(),
        version: "0.2.0".to_owned(),
        health: Health::Well,
        boot_id: "boot".to_owned(),
        build: Some(wish.sha256.as_str().to_owned().try_into().unwrap()),
        at: agent.ports.clock.now(),
    };
    agent.ports.store.record_hello(hot().uid, hello).await.unwrap();
    assert_eq!(ended(&agent, update).await, OperationStatus::Done);
    // Nobody is told anything, and nothing more is to be signed: it is as wished.
    agent.until("it serves", |view| serves(view, 1) && view.waiting.is_empty()).await;
    assert_eq!(tasks(&world, TaskKind::RollBack).await, 0);
    let stands = agent.ports.store.snapshots(hot().uid).await.unwrap();
    assert!(stands.len() == 1 && stands[0].expires_at.is_some(), "it goes when its time is over: {stands:?}");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_falls_silent_is_taken_back_and_offered_to_nobody_again() {
    let world = World::start().await;
    let (mut agent, wish, update) = in_its_turn(&world).await;
    assert_eq!(ended(&agent, update).await, OperationStatus::Done, "it has done what it is for");
    assert_eq!(tasks(&world, TaskKind::RollBack).await, 1);
    let bad = |view: &agentd::model::view::View| {
        report(view, 1).is_some_and(|one| one.conditions.iter().any(|c| c.code == ErrorCode::ControllerBad))
    };
    agent.until("it is told", bad).await;
    let now = agent.ports.clock.now();
    let records = agent.ports.store.records(Generation::NONE, now).await.unwrap();
    assert_eq!(records.bad_controllers[0].sha256.as_str(), wish.sha256.as_str());
    // Signed for once more, it gets another chance.
    let draft = super::approve::controller(&wish);
    let mail = super::jobs::order(&agent, draft).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    agent.until("it is bad no more", |view| !bad(view)).await;
    agent.stop().await;
}
