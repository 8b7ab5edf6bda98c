//! Tests of a maintenance of the host.

use agentd::plan::host_maintenance::{HostInventory, next};
use holdfast_protocol::report::{GuestStatus, Running};
use jiff::{SignedDuration, Timestamp};

use super::drift::start;
use super::world::{World, guest, uid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_begun_until_it_ends_and_then_all_is() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.until("the host was observed", |view| view.seen_at.is_some()).await;
    let (store, clock) = (agent.ports.store.clone(), agent.ports.clock.clone());
    let announce = async |until: Option<Timestamp>| {
        let kept = store.host_maintenance().await.unwrap();
        let known = HostInventory { guests: &[], targets: &[] };
        let changed = next(kept.as_ref(), until, clock.now(), known).unwrap();
        store.keep_host_maintenance(changed, clock.now()).await.unwrap();
    };
    announce(Some(clock.now() + SignedDuration::from_hours(2))).await;
    agent.goal(1, vec![guest(1)]).await;
    // Two whole observations after the document was taken: it is wanted, and nothing is opened for it.
    for _ in 0..2 {
        let before = agent.view.borrow().seen_at;
        agent
            .until("another observation with the guest", |view| {
                view.seen_at > before && view.guests.iter().any(|guest| guest.status == GuestStatus::Absent)
            })
            .await;
    }
    assert_eq!(store.operation_views(9).await.unwrap(), []);
    announce(None).await;
    agent
        .until("the guest is made", |view| {
            view.guests.iter().any(|guest| guest.uid == Some(uid(1)) && guest.run == Running::Running)
        })
        .await;
    agent.stop().await;
}
