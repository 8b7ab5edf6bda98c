//! Tests of guests' requests through the whole loop.

use std::time::Duration;

use agentd::model::request::Ask;
use agentd::port::store::request::NewRequest;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::work::Acceptance;
use holdfast_protocol::operation::{OperationKind, OperationStatus, OperationView};
use uuid::Uuid;

use super::drift::{Agent, serves, start};
use super::world::{World, guest, uid};

fn snapshot(name: &str) -> Ask {
    Ask::Snapshot { name: name.parse().unwrap(), keep_s: None }
}

impl Agent {
    async fn ask(&self, n: u8, ask: Ask) -> OperationId {
        let at = self.ports.clock.now();
        let id = OperationId::new(Uuid::now_v7());
        let new = NewRequest { id, guest: uid(n), ask, key: None, correlation: None, at };
        let accepted = self.ports.store.ask(new).await.unwrap();
        assert_eq!(accepted.taken, Acceptance::Queued);
        accepted.operation
    }

    /// Waits until all of these have ended, and returns them in the given order.
    async fn ended(&self, ids: &[OperationId]) -> Vec<OperationView> {
        let mut changes = self.ports.store.changes();
        let all = async {
            loop {
                changes.mark_unchanged();
                let mut views = Vec::new();
                for id in ids {
                    let view = self.ports.store.operation(*id).await.unwrap().map(|progress| progress.view());
                    views.extend(view.filter(|view| view.status.is_end()));
                }
                if views.len() == ids.len() {
                    return views;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(120), all).await {
            Ok(views) => views,
            Err(_) => panic!("never all ended: {:#?}", self.ports.store.operation_views(20).await.unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_requests_of_one_guest_run_one_by_one_and_others_at_once() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    // Bulk volumes are rolled back by a signature only.
    let plain = |n| {
        let mut guest = guest(n);
        guest.volumes.clear();
        guest
    };
    agent.goal(1, vec![plain(1), plain(2), plain(3)]).await;
    agent.until("three guests that serve", |view| (1..=3).all(|n| serves(view, n))).await;

    // Eight at once fill the lane of the first guest; the last two are sent when there is a place.
    let asks = [
        snapshot("s1"),
        Ask::Backup { tier: None },
        snapshot("s2"),
        Ask::ExpireSnapshot { name: "s2".parse().unwrap() },
        snapshot("s3"),
        snapshot("s4"),
        Ask::ExpireSnapshot { name: "s3".parse().unwrap() },
        snapshot("s5"),
    ];
    let mut ids = Vec::new();
    for ask in asks {
        ids.push(agent.ask(1, ask).await);
    }
    let others = [agent.ask(2, snapshot("s1")).await, agent.ask(3, snapshot("s1")).await];
    agent.ended(&ids[..2]).await;
    ids.push(agent.ask(1, Ask::ExpireSnapshot { name: "s5".parse().unwrap() }).await);
    agent.ended(&ids).await;
    ids.push(agent.ask(1, Ask::RollBack { snapshot: "s1".parse().unwrap() }).await);
    let own = agent.ended(&ids).await;
    for view in &own {
        assert_eq!(view.status, OperationStatus::Done, "{view:#?}");
    }
    for pair in own.windows(2) {
        let [before, after] = pair else { panic!("windows of two") };
        let (first, second) = (before.kind.as_str(), after.kind.as_str());
        assert!(before.ended_at.unwrap() <= after.opened_at, "{second} did not wait for {first}");
    }
    let side = agent.ended(&others).await;
    for view in &side {
        assert_eq!(view.status, OperationStatus::Done, "{view:#?}");
        let first_ended = own.last().unwrap().ended_at.unwrap();
        assert!(view.ended_at.unwrap() < first_ended, "it waited for another guest's lane");
    }
    let left: Vec<String> = agent
        .ports
        .store
        .snapshots_asked_by(uid(1))
        .await
        .unwrap()
        .into_iter()
        .map(|snapshot| snapshot.name.to_string())
        .collect();
    assert_eq!(left, ["s1", "s4"]);
    assert!(agent.ports.store.verify_audit().await.is_ok());
    agent.stop().await;
}

/// Dropped at any point again and again: every request is one operation, and each has one end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_outlive_an_agent_that_is_dropped() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1), guest(2)]).await;
    agent.until("two guests that serve", |view| (1..=2).all(|n| serves(view, n))).await;
    let mut ids = Vec::new();
    for n in 1..=2 {
        for name in ["s1", "s2", "s3"] {
            ids.push(agent.ask(n, snapshot(name)).await);
        }
    }
    for pause_ms in [20, 120, 300] {
        let waited = tokio::time::timeout(Duration::from_millis(pause_ms), std::future::pending::<()>());
        waited.await.unwrap_err();
        agent.task.abort();
        assert!((&mut agent.task).await.unwrap_err().is_cancelled());
        drop(agent);
        agent = start(&world).await;
    }
    for view in agent.ended(&ids).await {
        assert_eq!(view.status, OperationStatus::Done, "{view:#?}");
    }
    for n in 1..=2 {
        assert_eq!(agent.ports.store.snapshots_asked_by(uid(n)).await.unwrap().len(), 3);
    }
    agent.stop().await;
}

/// A request that cannot be served ends with a reason its guest can read, and the next one is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goal_that_needs_a_signature_ends_and_the_next_goes_on() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    let taken = agent.ask(1, snapshot("s1")).await;
    agent.ended(&[taken]).await;
    let back = agent.ask(1, Ask::RollBack { snapshot: "s1".parse().unwrap() }).await;
    let next = agent.ask(1, snapshot("s2")).await;
    agent.ended(&[next]).await;
    let refused = agent.ports.store.asked(back).await.unwrap().unwrap();
    let agentd::port::store::request::RequestOrOperation::Request(record) = refused else {
        panic!("it became an operation: {refused:?}");
    };
    assert_eq!(record.end.unwrap().problem.code, ErrorCode::NeedsSignature, "it has a bulk volume");
    let views = agent.ports.store.operation_views(20).await.unwrap();
    assert!(views.iter().all(|view| view.kind != OperationKind::RollBack), "{views:#?}");
    assert_eq!(agent.ports.store.snapshots_asked_by(uid(1)).await.unwrap().len(), 2);
    agent.stop().await;
}
