//! Tests of an archive that its storage lost, and that came back.

use agentd::model::tier_fault::TierFaultKind;
use agentd::model::view::HostSnapshot;
use holdfast_protocol::desired::DesiredGuest;

use super::drift::{serves, start};
use super::missing_guest::seldom;
use super::world::{World, find, guest, uid};

fn is_missing(view: &HostSnapshot) -> bool {
    let faults = view.facts.faults.get(&uid(1)).into_iter().flatten();
    faults.into_iter().any(|fault| matches!(fault.kind, TierFaultKind::Missing { .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_comes_back_is_missing_no_more() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    let policies = seldom(agent.ports.clock.now());
    agent.goal_under(1, policies, vec![DesiredGuest { policy: "usual".parse().ok(), ..guest(1) }]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    let backup = agent.ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    let name = backup.archive.as_str().rsplit('/').next().unwrap();
    let archive = find(&world.dir.path().join("pve"), name);
    let elsewhere = world.dir.path().join(name);
    std::fs::rename(&archive, &elsewhere).unwrap();
    agent.until("an archive that is missing", is_missing).await;

    // The agent starts anew meanwhile, as after a kill: what is missing is in its records.
    agent.stop().await;
    let mut agent = start(&world).await;
    agent.until("missing still", is_missing).await;
    std::fs::rename(&elsewhere, &archive).unwrap();
    agent.until("nothing missing", |view| view.seen_at.is_some() && !is_missing(view)).await;
    let listed = agent.ports.store.backups(uid(1), 9).await.unwrap();
    assert!(listed.iter().all(|backup| backup.missing_since.is_none()), "{listed:?}");
    agent.stop().await;
}
