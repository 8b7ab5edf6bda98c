//! Tests of an attached volume.

use agentd::execute::Ports;
use agentd::execute::run::run;
use agentd::model::records::Place;
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{AttachVolume, Operation, Target};
use agentd::port::pve::GuestConfig;
use agentd::port::pve::config::Switch;
use agentd::port::pve::volume::InBackup;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredVolume;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};
use pve_sim::node::HotMounts;
use serde_json::json;

use super::world::{Controllers, World, guest, open, reported, vmid};

fn volume() -> DesiredVolume {
    let kind = json!({ "bulk": { "none": "fetched again" } });
    serde_json::from_value(json!({ "name": "cache", "mount": "/srv/cache", "size_gib": 1, "kind": kind }))
        .unwrap()
}

/// A third volume for the first guest.
pub fn attachment() -> Operation {
    Operation::AttachVolume(Box::new(AttachVolume {
        target: Target { uid: guest(1).uid, name: guest(1).name, vmid: vmid(300) },
        volume: volume(),
        slot: 2,
        storage: "tank".parse().unwrap(),
    }))
}

/// One guest that runs.
async fn made(world: &World) -> Ports {
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let done = run(&ports, open(&ports, 0, world.provision(1)).await).await.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    ports
}

async fn attach(ports: &Ports) -> OperationState {
    run(ports, open(ports, 1, attachment()).await).await.unwrap()
}

async fn config(ports: &Ports) -> GuestConfig {
    ports.pve.guest_config(vmid(300)).await.unwrap()
}

async fn recorded(ports: &Ports) -> usize {
    match ports.store.guest(guest(1).uid).await.unwrap().unwrap().place {
        Place::Made { volumes, .. } => volumes.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_is_attached_to_a_running_guest_and_written_down() {
    let world = World::start().await;
    let ports = made(&world).await;
    let done = attach(&ports).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    let config = config(&ports).await;
    let disk = &config.mounts[&2];
    assert_eq!((disk.mount.as_deref(), disk.in_backup), (Some("/srv/cache"), InBackup::No));
    assert_eq!((config.protection, config.volumes().len(), recorded(&ports).await), (Switch::On, 4, 4));
    assert_eq!(world.disks().len(), 4);
}

/// Each change of the configuration loses its reply once: one volume, not two, and protection on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_attaches_nothing_twice() {
    let putting = || Aim { method: "PUT".to_owned(), path: "/config".to_owned() };
    let faults = [
        Fault::LostReply { on: putting() },
        Fault::DaemonSlow { on: putting() },
        Fault::LostRequest { on: putting() },
        Fault::CutBody { on: putting() },
    ];
    for fault in faults {
        for before in 0..3 {
            let world = World::start().await;
            let ports = made(&world).await;
            // The faults are used up in order: the first ones only slow the changes before the intended one.
            (0..=before).for_each(|_| world.sim.node.faults.arm(fault.clone()));
            let done = attach(&ports).await;
            assert_eq!(done.status(), Status::Done, "{fault:?}: {}", reported(&done));
            assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
            assert_eq!((world.disks().len(), config(&ports).await.protection), (4, Switch::On), "{fault:?}");
        }
    }
}

/// The kernel of this node takes no new mount into a running guest, and a storage that is away makes none. The request
/// is withdrawn, and nothing is left of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_attached_leaves_no_goal_behind() {
    for hot_mounts in [HotMounts::NoAppArmor, HotMounts::Work] {
        let world = World::with(hot_mounts).await;
        let ports = made(&world).await;
        let before = world.guests();
        if hot_mounts == HotMounts::Work {
            apply(&world.sim.node, &Edit::StorageOffline { storage: "tank".to_owned() }).unwrap();
        }
        let undone = attach(&ports).await;
        apply(&world.sim.node, &Edit::StorageOnline { storage: "tank".to_owned() }).unwrap();
        assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
        assert_eq!(undone.cause().unwrap().code, ErrorCode::Unavailable);
        assert_eq!(world.guests(), before, "as it was, protection and all");
        assert_eq!((world.disks().len(), recorded(&ports).await), (3, 3));
    }
}

/// Another owner has the number, or the mark is gone, or a disk was exchanged: nothing is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_is_not_provably_ours_keeps_its_protection() {
    let edits = [
        Edit::Unset { vmid: 300, key: "tags".to_owned() },
        Edit::Set { vmid: 300, key: "description".to_owned(), value: "somebody's".to_owned() },
        Edit::Unset { vmid: 300, key: "mp0".to_owned() },
    ];
    for edit in edits {
        let world = World::start().await;
        let ports = made(&world).await;
        apply(&world.sim.node, &edit).unwrap();
        let before = world.guests();
        let parked = attach(&ports).await;
        assert_eq!(parked.status(), Status::Parked, "{edit:?}: {}", reported(&parked));
        assert_eq!(parked.cause().unwrap().code, ErrorCode::ForeignGuest, "{edit:?}");
        assert_eq!(world.guests(), before, "{edit:?}");
    }
}

/// The slot was taken by hand in the meantime: it is left alone, and protection is restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mount_that_someone_made_is_left_alone() {
    let world = World::start().await;
    let ports = made(&world).await;
    let by_hand = Edit::Set { vmid: 300, key: "mp2".to_owned(), value: "/srv/theirs,mp=/theirs".to_owned() };
    apply(&world.sim.node, &by_hand).unwrap();
    let before = world.guests();
    let undone = attach(&ports).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!((world.guests(), world.disks().len()), (before, 3));
}
