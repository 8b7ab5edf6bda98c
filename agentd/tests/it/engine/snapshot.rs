//! Tests of snapshots.

use agentd::execute::Ports;
use agentd::model::view::ProgressLine;
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{ExpireSnapshot, ExpiryWhy, Operation};
use agentd::port::pve::change::Description;
use agentd::port::pve::{NewSnapshot, TaskKind};
use holdfast_protocol::code::ErrorCode;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::world::{World, end, guest, made, reported, snapshot, target, tasks, vmid};

/// The removal of what operation `n` made.
fn expiry(name: &str, made_by: &OperationState, why: ExpiryWhy) -> Operation {
    Operation::ExpireSnapshot(ExpireSnapshot {
        target: target(),
        name: name.parse().unwrap(),
        made_by: made_by.id,
        why,
    })
}

async fn taken(ports: &Ports, n: u8, name: &str, lives_s: i64) -> OperationState {
    let done = end(ports, n, snapshot(name, lives_s)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    done
}

/// A snapshot that is taken by hand.
async fn by_hand(world: &World, name: &str) {
    let line = Description::try_from("before I try something".to_owned()).unwrap();
    let new = NewSnapshot { name: name.parse().unwrap(), line };
    world.pve().snapshot(vmid(300), &new).await.unwrap();
    while world.pve().snapshots(vmid(300)).await.unwrap().iter().all(|s| s.name != name || s.half.is_some()) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

async fn listed(world: &World) -> Vec<String> {
    world.pve().snapshots(vmid(300)).await.unwrap().into_iter().map(|snapshot| snapshot.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_snapshot_and_one_removal_whatever_reply_is_lost() {
    let faults: [fn(Aim) -> Fault; 3] =
        [|on| Fault::LostReply { on }, |on| Fault::DaemonSlow { on }, |on| Fault::LostRequest { on }];
    for fault in faults {
        let world = World::start().await;
        let ports = made(&world).await;
        world.sim.node.faults.arm(fault(Aim { method: "POST".to_owned(), path: "/snapshot".to_owned() }));
        let done = taken(&ports, 1, "s1", -1).await;
        let records = ports.store.snapshots(guest(1).uid).await.unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].made_by, records[0].name.as_str()), (done.id, "s1"));
        world
            .sim
            .node
            .faults
            .arm(fault(Aim { method: "DELETE".to_owned(), path: "/snapshot/s1".to_owned() }));
        let gone = end(&ports, 2, expiry("s1", &done, ExpiryWhy::PastItsTime)).await;
        assert_eq!(gone.status(), Status::Done, "{}", reported(&gone));
        assert!(world.sim.node.faults.armed().is_empty());
        assert_eq!(
            (tasks(&world, TaskKind::Snapshot).await, tasks(&world, TaskKind::RemoveSnapshot).await),
            (1, 1)
        );
        assert!(listed(&world).await.is_empty());
        assert!(ports.store.snapshots(guest(1).uid).await.unwrap().is_empty());
    }
}

/// A worker that dies during a snapshot leaves a lock that no token can remove, and a guest that may be frozen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_made_snapshot_is_parked_with_what_to_do() {
    let world = World::start().await;
    let ports = made(&world).await;
    world
        .sim
        .node
        .faults
        .arm(Fault::KillWorker { task: "vzsnapshot".to_owned(), phase: "snapshotting".to_owned() });
    let parked = end(&ports, 1, snapshot("s1", 60)).await;
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert_eq!(
        parked.remedy(),
        Some("pct unlock 300; pct delsnapshot 300 s1 --force; lxc-unfreeze -n 300"),
        "{}",
        reported(&parked)
    );
    assert!(parked.cause().unwrap().message.contains("frozen"), "{}", reported(&parked));
    assert!(ports.store.snapshots(guest(1).uid).await.unwrap().is_empty(), "it is none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_removed_snapshot_is_parked_too() {
    let world = World::start().await;
    let ports = made(&world).await;
    let done = taken(&ports, 1, "s1", -1).await;
    world
        .sim
        .node
        .faults
        .arm(Fault::KillWorker { task: "vzdelsnapshot".to_owned(), phase: "deleting".to_owned() });
    let parked = end(&ports, 2, expiry("s1", &done, ExpiryWhy::PastItsTime)).await;
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert_eq!(
        parked.remedy(),
        Some("pct unlock 300; pct delsnapshot 300 s1 --force"),
        "{}",
        reported(&parked)
    );
    assert_eq!(
        ports.store.snapshots(guest(1).uid).await.unwrap().len(),
        1,
        "its record stays until it is gone"
    );
}

/// Each refusal names its reason, leaves nothing, and begins no task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_snapshotted_is_refused_with_the_reason() {
    let world = World::start().await;
    let ports = made(&world).await;
    by_hand(&world, "theirs").await;
    let begun = tasks(&world, TaskKind::Snapshot).await;
    let refused = end(&ports, 1, snapshot("theirs", 60)).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::NameTaken);
    assert_eq!(tasks(&world, TaskKind::Snapshot).await, begun);
    for n in 0..8 {
        taken(&ports, 10 + n, &format!("own{n}"), 60).await;
    }
    let refused = end(&ports, 2, snapshot("ninth", 60)).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::Quota, "{}", reported(&refused));
    assert_eq!(listed(&world).await.len(), 9, "theirs, and eight of ours");
}

/// A pool that runs full stops every guest on it, so there is no snapshot on one that is nearly full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_that_is_nearly_full_is_named_and_spared() {
    let world = World::start().await;
    let ports = made(&world).await;
    let fill = |percent| apply(&world.sim.node, &Edit::StorageFill { storage: "tank".to_owned(), percent });
    fill(Some(91)).unwrap();
    let refused = end(&ports, 1, snapshot("s1", 60)).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    let cause = refused.cause().unwrap();
    assert_eq!(cause.code, ErrorCode::StorageFull, "{cause}");
    assert!(
        cause.message.contains("tank:300/vm-300-disk-0") && cause.message.contains("90 % full"),
        "{cause}"
    );
    fill(Some(50)).unwrap();
    taken(&ports, 2, "s1", 60).await;
}

/// A guest that a task holds is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_guest_is_waited_for() {
    let world = World::start().await;
    let ports = made(&world).await;
    let (key, value) = ("lock".to_owned(), "backup".to_owned());
    apply(&world.sim.node, &Edit::Set { vmid: 300, key: key.clone(), value }).unwrap();
    let mut lines = ports.lines.subscribe();
    let free = async {
        let waits = |line: &ProgressLine| line.line.contains("guest is locked (backup)");
        lines.wait_for(|lines| lines.values().any(waits)).await.unwrap();
        apply(&world.sim.node, &Edit::Unset { vmid: 300, key }).unwrap();
    };
    let (done, ()) = tokio::join!(end(&ports, 1, snapshot("s1", 60)), free);
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(tasks(&world, TaskKind::Snapshot).await, 1, "none was begun on the locked guest");
}

/// Not expired, not in our records, not with our line: any snapshot without proof stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_our_own_snapshots_past_their_time_are_removed() {
    let world = World::start().await;
    let ports = made(&world).await;
    let young = taken(&ports, 1, "young", 3_600).await;
    let refused = end(&ports, 2, expiry("young", &young, ExpiryWhy::PastItsTime)).await;
    assert_eq!(refused.cause().unwrap().code, ErrorCode::Forbidden, "{}", reported(&refused));
    by_hand(&world, "theirs").await;
    let left = end(&ports, 3, expiry("theirs", &young, ExpiryWhy::PastItsTime)).await;
    assert_eq!(left.status(), Status::Done, "{}", reported(&left));
    assert_eq!(left.conditions().next().unwrap().code, ErrorCode::NotYours, "{}", reported(&left));
    assert_eq!(tasks(&world, TaskKind::RemoveSnapshot).await, 0);
    assert_eq!(listed(&world).await.len(), 2);
}

/// The guest that requested it may request its removal before its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_own_guest_may_have_it_removed_early() {
    let world = World::start().await;
    let ports = made(&world).await;
    let young = taken(&ports, 1, "young", 3_600).await;
    let gone = end(&ports, 2, expiry("young", &young, ExpiryWhy::Asked)).await;
    assert_eq!(gone.status(), Status::Done, "{}", reported(&gone));
    assert!(listed(&world).await.is_empty());
}
