//! Rollbacks: once, to a snapshot of ours, and fresh afterwards.

use agentd::execute::Ports;
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{BulkRule, KeepProtection, Operation, Reconfigure, RollBack, Stop};
use agentd::port::pve::TaskKind;
use agentd::port::pve::read::Power;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::world::{World, end, find, made, reported, snapshot, target, tasks, vmid};

fn back(made_by: OperationId, bulk: BulkRule) -> Operation {
    Operation::RollBack(RollBack { target: target(), snapshot: "s1".parse().unwrap(), made_by, bulk })
}

/// A guest with a snapshot of a time without protection, changed since.
async fn ground(world: &World) -> (Ports, OperationState) {
    let ports = made(world).await;
    apply(&world.sim.node, &Edit::Unset { vmid: 300, key: "protection".to_owned() }).unwrap();
    let taken = end(&ports, 1, snapshot("s1", 60)).await;
    assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
    let smaller = Reconfigure {
        name: None,
        network: None,
        filter: None,
        resolver: None,
        target: target(),
        cores: None,
        memory: Some(128.try_into().unwrap()),
        swap: None,
        limits: None,
        protection: KeepProtection::PutBack,
    };
    let changed = end(&ports, 2, Operation::Reconfigure(smaller)).await;
    assert_eq!(changed.status(), Status::Done, "{}", reported(&changed));
    (ports, taken)
}

/// What a rollback must leave: the snapshot's sizes, no bootstrap token, no tag of ours but the mark, protection.
fn check(world: &World) {
    let text = world.guests().remove("300.conf").unwrap();
    let main = text.split("\n[").next().unwrap();
    assert!(main.contains("memory: 256") && main.contains("parent: s1"), "{main}");
    assert!(main.contains("protection: 1") && main.contains("holdfast guest "), "{main}");
    assert!(!main.contains("HOLDFAST_BOOTSTRAP") && !main.contains("rolling-"), "{main}");
    assert_eq!(text.matches("protection: 1").count(), 1, "the snapshot itself should be without: {text}");
    assert!(
        text.contains("HOLDFAST_BOOTSTRAP"),
        "the snapshot should hold an old bootstrap token, or the test shows nothing: {text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_goes_back_once_whatever_reply_is_lost() {
    let aims =
        [("POST", "/rollback"), ("PUT", "/config"), ("POST", "/status/start"), ("POST", "/status/shutdown")];
    let faults: [fn(Aim) -> Fault; 2] = [|on| Fault::LostReply { on }, |on| Fault::LostRequest { on }];
    for (method, path) in aims {
        for fault in faults {
            let world = World::start().await;
            let (ports, taken) = ground(&world).await;
            world.sim.node.faults.arm(fault(Aim { method: method.to_owned(), path: path.to_owned() }));
            let done = end(&ports, 3, back(taken.id, BulkRule::Signed)).await;
            assert_eq!(done.status(), Status::Done, "{method} {path}: {}", reported(&done));
            assert!(world.sim.node.faults.armed().is_empty(), "{method} {path} never struck");
            assert_eq!(tasks(&world, TaskKind::RollBack).await, 1, "{method} {path}");
            check(&world);
            let power = world.pve().guest_status(vmid(300)).await.unwrap().power;
            assert_eq!(power, Power::Running, "it ran before");
        }
    }
}

/// What was written since is gone, on every volume; a guest that was stopped stays stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_stood_goes_back_and_stands() {
    let world = World::start().await;
    let (ports, taken) = ground(&world).await;
    let stopped = end(&ports, 3, Operation::Stop(Stop(target()))).await;
    assert_eq!(stopped.status(), Status::Done, "{}", reported(&stopped));
    let root = find(&world.dir.path().join("pve"), "vm-300-disk-0");
    std::fs::write(root.join("written-since"), "lost").unwrap();
    let done = end(&ports, 4, back(taken.id, BulkRule::Signed)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    check(&world);
    assert!(root.is_dir() && !root.join("written-since").exists(), "{}", root.display());
    assert_eq!(world.pve().guest_status(vmid(300)).await.unwrap().power, Power::Stopped);
}

/// A volume in no backup is rolled back as well, so an operator must have signed; nothing is touched before that is
/// checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_with_bulk_volumes_is_not_rolled_back_unsigned() {
    let world = World::start().await;
    let (ports, taken) = ground(&world).await;
    let before = world.guests();
    let refused = end(&ports, 3, back(taken.id, BulkRule::NoneThere)).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::NeedsSignature);
    let refused = end(&ports, 4, back(refused.id, BulkRule::Signed)).await;
    assert_eq!(refused.cause().unwrap().code, ErrorCode::NotFound, "{}", reported(&refused));
    assert_eq!((world.guests(), tasks(&world, TaskKind::RollBack).await), (before, 0));
}

/// A worker that dies half-way leaves volumes of two times under a lock: a person must roll back once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_done_rollback_is_parked_with_what_to_do() {
    let world = World::start().await;
    let (ports, taken) = ground(&world).await;
    world
        .sim
        .node
        .faults
        .arm(Fault::KillWorker { task: "vzrollback".to_owned(), phase: "rolling back".to_owned() });
    let parked = end(&ports, 3, back(taken.id, BulkRule::Signed)).await;
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert_eq!(parked.remedy(), Some("pct unlock 300; pct rollback 300 s1"), "{}", reported(&parked));
    assert_eq!(world.pve().guest_status(vmid(300)).await.unwrap().power, Power::Stopped, "it is not started");
}

/// A rollback whose worker dies before it does anything has not happened, however often: the tag is removed, and
/// nothing else changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_died_before_it_began_is_taken_back() {
    let world = World::start().await;
    let (ports, taken) = ground(&world).await;
    for _ in 0..2 {
        let died = Fault::KillWorker { task: "vzrollback".to_owned(), phase: "start".to_owned() };
        world.sim.node.faults.arm(died);
    }
    let undone = end(&ports, 3, back(taken.id, BulkRule::Signed)).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    let text = world.guests().remove("300.conf").unwrap();
    assert!(text.contains("memory: 128") && !text.contains("rolling-"), "{text}");
}
