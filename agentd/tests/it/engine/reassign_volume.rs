//! Tests of a reassigned volume.

use std::collections::BTreeSet;

use agentd::execute::Ports;
use agentd::execute::run::run;
use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::{Place, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::reassign_volume::{HandOver, Mounts};
use agentd::operation::{Operation, Stop, Target};
use agentd::port::pve::config::Switch;
use agentd::port::store::journal::{NewOperation, OpenOperationError};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{JobId, OperationId};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::hand::HandAt;
use super::world::{Controllers, World, guest, open, reported, uid, vmid};

const GIVEN: &str = "tank:300/vm-300-disk-2.raw";

fn seen(n: u8, number: u32, disks: usize) -> SignedState {
    let volumes = (0..disks).map(|disk| VolumeId::new(format!("tank:{number}/vm-{number}-disk-{disk}.raw")));
    SignedState { uid: guest(n).uid, vmid: vmid(number), name: guest(n).name, volumes: volumes.collect() }
}

/// The bulk volume of the first guest for the second one.
fn signed() -> Operation {
    let allows = Allows::ReassignVolume { volume: VolumeId::new(GIVEN), to: Box::new(seen(2, 301, 2)) };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen(1, 300, 3));
    let mounts = Mounts { from: 1, to: 1, path: "/srv/media".parse().unwrap() };
    Operation::ReassignVolume(Box::new(HandOver::new(warrant, mounts).unwrap()))
}

fn stop(n: u8, number: u32) -> Operation {
    Operation::Stop(Stop(Target { uid: guest(n).uid, name: guest(n).name, vmid: vmid(number) }))
}

async fn done(ports: &Ports, n: u8, operation: Operation) {
    let done = run(ports, open(ports, n, operation).await).await.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
}

/// Two stopped guests, the second one with room for a volume and of this customer.
async fn pair(world: &World, customer: &str) -> Ports {
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    done(&ports, 10, world.provision(1)).await;
    let Operation::Provision(mut taker) = world.provision(2) else {
        unreachable!("a provision was asked for")
    };
    taker.guest.volumes.truncate(1);
    taker.guest.customer = customer.parse().unwrap();
    done(&ports, 11, Operation::Provision(taker)).await;
    done(&ports, 12, stop(1, 300)).await;
    done(&ports, 13, stop(2, 301)).await;
    ports
}

async fn hand_over(ports: &Ports) -> OperationState {
    run(ports, open(ports, 1, signed()).await).await.unwrap()
}

async fn recorded(ports: &Ports, n: u8) -> BTreeSet<String> {
    match ports.store.guest(uid(n)).await.unwrap().unwrap().place {
        Place::Made { volumes, .. } => volumes.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

/// Records and configurations agree, and both guests are protected.
async fn in_order(ports: &Ports) {
    for (n, number) in [(1, 300), (2, 301)] {
        let config = ports.pve.guest_config(vmid(number)).await.unwrap();
        let volumes: BTreeSet<String> = config.volumes().iter().map(ToString::to_string).collect();
        assert_eq!((recorded(ports, n).await, config.protection), (volumes, Switch::On), "guest {number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_changes_hands_and_both_records_with_it() {
    let world = World::start().await;
    let ports = pair(&world, "acme").await;
    let done = hand_over(&ports).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    in_order(&ports).await;
    assert_eq!((recorded(&ports, 1).await.len(), recorded(&ports, 2).await.len()), (2, 3));
    let taker = ports.pve.guest_config(vmid(301)).await.unwrap();
    assert_eq!(taker.mounts[&1].mount.as_deref(), Some("/srv/media"));
    assert_eq!((world.disks().len(), done.view().other), (5, Some(uid(2))));
}

/// I6 holds for both guests, in the database, and ends for both with the operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_guests_are_held_until_it_is_done() {
    let world = World::start().await;
    let ports = pair(&world, "acme").await;
    let new = |n: u128, operation: Operation| NewOperation {
        id: OperationId::new(uuid::Uuid::from_u128(n)),
        operation,
        generation: Generation::new(1),
        reason: "a test".to_owned(),
        at: ports.clock.now(),
    };
    let opened = ports.store.open_operation(new(1, signed())).await.unwrap();
    let records = ports.store.records(Generation::new(1), ports.clock.now()).await.unwrap();
    let held: BTreeSet<_> = records.open.iter().map(|open| open.guest).collect();
    assert_eq!(held, BTreeSet::from([uid(1), uid(2)]), "the plan leaves both alone");
    for (n, number) in [(1, 300), (2, 301)] {
        let refused = ports.store.open_operation(new(2, stop(n, number))).await;
        assert!(matches!(refused, Err(OpenOperationError::Busy(guest)) if guest == uid(n)), "{number}");
    }
    let done = run(&ports, opened).await.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert!(ports.store.open_operation(new(3, stop(2, 301))).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_moves_nothing_twice() {
    let aim = |method: &str, path: &str| Aim { method: method.to_owned(), path: path.to_owned() };
    let faults = [
        Fault::LostReply { on: aim("POST", "/move_volume") },
        Fault::DaemonSlow { on: aim("POST", "/move_volume") },
        Fault::LostRequest { on: aim("POST", "/move_volume") },
        Fault::LostReply { on: aim("PUT", "/lxc/301/config") },
    ];
    for fault in faults {
        let world = World::start().await;
        let ports = pair(&world, "acme").await;
        world.sim.node.faults.arm(fault.clone());
        let done = hand_over(&ports).await;
        assert_eq!(done.status(), Status::Done, "{fault:?}: {}", reported(&done));
        assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
        in_order(&ports).await;
    }
}

/// Another customer's guest, one that runs, one that changed since it was signed for: nothing is moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_is_refused_before_anything_is_done() {
    let set =
        |vmid: u32, key: &str, value: &str| Edit::Set { vmid, key: key.to_owned(), value: value.to_owned() };
    let cases = [
        ("globex", vec![], ErrorCode::Forbidden),
        ("acme", vec![Edit::Start { vmid: 301 }], ErrorCode::Locked),
        ("acme", vec![Edit::Start { vmid: 300 }], ErrorCode::Locked),
        ("acme", vec![set(301, "hostname", "web-9")], ErrorCode::TargetChanged),
        ("acme", vec![set(300, "unused0", "tank:300/vm-300-disk-9.raw")], ErrorCode::TargetChanged),
        ("acme", vec![Edit::Unset { vmid: 301, key: "tags".to_owned() }], ErrorCode::ForeignGuest),
    ];
    for (customer, edits, code) in cases {
        let world = World::start().await;
        let ports = pair(&world, customer).await;
        edits.iter().for_each(|edit| apply(&world.sim.node, edit).unwrap());
        let before = (world.guests(), world.disks());
        let ended = hand_over(&ports).await;
        assert_ne!(ended.status(), Status::Done, "{edits:?}: {}", reported(&ended));
        assert_eq!(ended.cause().unwrap().code, code, "{edits:?}: {}", reported(&ended));
        assert_eq!((world.guests(), world.disks()), before, "{edits:?}");
    }
}

/// A wrong result after the move hands the volume back, under whatever name it then gets, and protects both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_afterwards_hands_it_back() {
    let world = World::start().await;
    drop(pair(&world, "acme").await);
    let into_backup = "tank:301/vm-301-disk-2.raw,mp=/srv/media,backup=1,size=1G";
    let edit = Edit::Set { vmid: 301, key: "mp1".to_owned(), value: into_backup.to_owned() };
    let hand = HandAt::new("confirm_reassigned", &world.sim.node, vec![edit]);
    let ports = world.ports(hand).await;
    let undone = hand_over(&ports).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    in_order(&ports).await;
    assert_eq!((recorded(&ports, 1).await.len(), recorded(&ports, 2).await.len()), (3, 2));
    assert_eq!(world.disks().len(), 5);
}
