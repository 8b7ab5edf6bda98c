//! Tests of a signed destroy.

use std::collections::BTreeSet;

use agentd::execute::Ports;
use agentd::execute::run::run;
use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::{Place, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{Destroy, Operation};
use agentd::port::pve::config::Switch;
use agentd::port::pve::read::Power;
use agentd::port::store::guest::Reserved;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::JobId;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::hand::HandAt;
use super::world::{Controllers, World, guest, open, reported, uid, vmid};

/// The three volumes that provision makes for the first guest.
fn volumes() -> BTreeSet<VolumeId> {
    (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect()
}

fn signed(volumes: BTreeSet<VolumeId>) -> Operation {
    let target = SignedState { uid: guest(1).uid, vmid: vmid(300), name: guest(1).name, volumes };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(7)), Allows::DestroyGuest, target);
    Operation::Destroy(Box::new(Destroy::new(warrant).unwrap()))
}

/// The destroy of the first guest, as an operator saw it.
pub fn signed_destroy() -> Operation {
    signed(volumes())
}

async fn made(world: &World) -> Ports {
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let done = run(&ports, open(&ports, 0, world.provision(1)).await).await.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    ports
}

async fn destroy(ports: &Ports) -> OperationState {
    run(ports, open(ports, 1, signed_destroy()).await).await.unwrap()
}

async fn place(ports: &Ports) -> Place {
    ports.store.guest(uid(1)).await.unwrap().unwrap().place
}

fn set(key: &str, value: &str) -> Edit {
    Edit::Set { vmid: 300, key: key.to_owned(), value: value.to_owned() }
}

fn unset(key: &str) -> Edit {
    Edit::Unset { vmid: 300, key: key.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_guest_goes_whole_and_its_number_is_never_given_again() {
    let world = World::start().await;
    let ports = made(&world).await;
    let done = destroy(&ports).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert!(world.guests().is_empty() && world.disks().is_empty(), "{:?}", world.disks());
    assert_eq!(place(&ports).await, Place::Gone { by: done.id });
    assert_eq!(ports.store.reserve_vmid(uid(2), vmid(300)).await.unwrap(), Reserved::Anothers);
}

/// F29, F30 and every hand edit before it begins: nothing is done at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_changed_since_it_was_signed_saves_the_guest() {
    let stranger = "arch: amd64\nhostname: web-1\nmemory: 512\nostype: debian\n\
        rootfs: tank:300/vm-300-disk-0.raw,size=2G\nswap: 0\nunprivileged: 1\n";
    let reused = Edit::Place { vmid: 300, config: stranger.to_owned() };
    let by_hand = || vec![Edit::Stop { vmid: 300 }, Edit::Destroy { vmid: 300 }];
    let cases = [
        vec![unset("tags")],
        vec![set("description", "somebody's")],
        vec![set("hostname", "web-9")],
        vec![set("mp7", "tank:300/vm-300-disk-9.raw,mp=/by-hand,size=1G")],
        vec![set("unused0", "tank:300/vm-300-disk-9.raw")],
        vec![set("mp7", "/srv/theirs,mp=/theirs")],
        vec![unset("mp1")],
        by_hand(),
        [by_hand(), vec![reused]].concat(),
    ];
    for edits in cases {
        let world = World::start().await;
        let ports = made(&world).await;
        edits.iter().for_each(|edit| apply(&world.sim.node, edit).unwrap());
        let power = || async { ports.pve.guest_status(vmid(300)).await.ok().map(|status| status.power) };
        let (before, was) = (world.guests(), power().await);
        let parked = destroy(&ports).await;
        assert_eq!(parked.status(), Status::Parked, "{edits:?}: {}", reported(&parked));
        assert_eq!(
            parked.cause().unwrap().code,
            ErrorCode::TargetChanged,
            "{edits:?}: {}",
            reported(&parked)
        );
        assert_eq!((world.guests(), power().await), (before, was), "{edits:?}");
    }
}

/// A volume is attached by hand during the guest's shutdown, or after protection was lifted: it is not destroyed with
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_at_the_last_moment_saves_the_guest() {
    for step in ["shut_down", "lift_protection", "destroy_guest"] {
        let world = World::start().await;
        drop(made(&world).await);
        let edits = vec![set("unused0", "tank:300/vm-300-disk-9.raw")];
        let ports = world.ports(HandAt::new(step, &world.sim.node, edits)).await;
        let parked = destroy(&ports).await;
        assert_eq!(parked.status(), Status::Parked, "{step}: {}", reported(&parked));
        assert_eq!(parked.cause().unwrap().code, ErrorCode::TargetChanged, "{step}: {}", reported(&parked));
        let config = ports.pve.guest_config(vmid(300)).await.unwrap();
        assert_eq!((config.volumes().len(), world.disks().len()), (4, 3), "{step}");
        assert!(matches!(place(&ports).await, Place::Made { .. }), "{step}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_destroys_once() {
    let aim = |method: &str, path: &str| Aim { method: method.to_owned(), path: path.to_owned() };
    let deleting = || aim("DELETE", "/lxc/300");
    let faults = [
        Fault::LostReply { on: deleting() },
        Fault::DaemonSlow { on: deleting() },
        Fault::CutBody { on: deleting() },
        Fault::LostRequest { on: deleting() },
        Fault::LostReply { on: aim("POST", "/status/shutdown") },
        Fault::LostReply { on: aim("PUT", "/config") },
    ];
    for fault in faults {
        let world = World::start().await;
        let ports = made(&world).await;
        world.sim.node.faults.arm(fault.clone());
        let done = destroy(&ports).await;
        assert_eq!(done.status(), Status::Done, "{fault:?}: {}", reported(&done));
        assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
        assert!(world.guests().is_empty() && world.disks().is_empty(), "{fault:?}");
    }
}

/// The worker dies after its first volume. Only what is true at the end is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_destroy_is_never_called_done() {
    let world = World::start().await;
    let ports = made(&world).await;
    world.sim.node.faults.arm(Fault::KillWorker { task: "vzdestroy".to_owned(), phase: "freed".to_owned() });
    let parked = destroy(&ports).await;
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert!(parked.cause().unwrap().message.contains("by half"), "{}", reported(&parked));
    assert_eq!(parked.remedy(), Some("pct destroy 300"));
    assert!(matches!(place(&ports).await, Place::Made { .. }));
    assert_eq!(world.guests().len(), 1);
}

/// A destroy that cannot begin leaves the guest whole and protected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destroy_that_frees_nothing_is_taken_back() {
    let world = World::start().await;
    let ports = made(&world).await;
    let aim = Aim { method: "DELETE".to_owned(), path: "/lxc/300".to_owned() };
    (0..40).for_each(|_| world.sim.node.faults.arm(Fault::DaemonDown { on: aim.clone() }));
    let ended = destroy(&ports).await;
    assert_ne!(ended.status(), Status::Done, "{}", reported(&ended));
    assert_eq!((world.guests().len(), world.disks().len()), (1, 3), "{}", reported(&ended));
    let config = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!(config.protection, Switch::On, "{}", reported(&ended));
    assert_eq!(ports.pve.guest_status(vmid(300)).await.unwrap().power, Power::Stopped);
}

/// Proxmox leaves a volume that another number owns, and says OK: the operation does not say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ok_with_leftovers_is_reported_as_what_it_is() {
    let world = World::start().await;
    let ports = made(&world).await;
    let extra = "tank:999/vm-999-disk-0.raw";
    let donor =
        format!("arch: amd64\nmemory: 512\nostype: debian\nrootfs: {extra},size=1G\nunprivileged: 1\n");
    apply(&world.sim.node, &Edit::Place { vmid: 999, config: donor }).unwrap();
    apply(&world.sim.node, &set("mp7", &format!("{extra},mp=/old,size=1G"))).unwrap();
    let mut signed_for = volumes();
    signed_for.insert(VolumeId::new(extra));
    let parked = run(&ports, open(&ports, 1, signed(signed_for)).await).await.unwrap();
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert!(parked.cause().unwrap().message.contains(extra), "{}", reported(&parked));
    assert_eq!(parked.remedy(), Some("pvesm free tank:999/vm-999-disk-0.raw"));
    assert_eq!(place(&ports).await, Place::Gone { by: parked.id }, "the guest itself is gone");
}
