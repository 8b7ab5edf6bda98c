//! Tests of lost replies, dead workers and foreign guests.

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::run::run;
use agentd::execute::{DigestCache, Ports};
use agentd::model::mark;
use agentd::model::records::{Access, Place, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::{Image, Operation, Source, VmidRequest};
use agentd::port::pve::read::Power;
use agentd::port::store::access::Redemption;
use agentd::port::store::parked::Answer;
use holdfast_protocol::bootstrap::BootstrapToken;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::secret::{Secret, TokenHash};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::hand::HandAt;
use super::missing_guest::destroyed;
use super::world::{Controllers, FastClock, World, find, guest, open, reported, uid, vmid};

fn posting(path: &str) -> Aim {
    Aim { method: "POST".to_owned(), path: path.to_owned() }
}

/// Each kind of task ends with its own message when its node shuts down cleanly. None of them is the archive's fault,
/// and the guest is made all the same when the node is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_goes_down_in_good_order_costs_a_try() {
    for (task, phase) in [("vzrestore", "unpacking"), ("vzstart", "start"), ("vzdump", "copy")] {
        let world = World::start().await;
        let ports = world.sound().await;
        let _controllers = Controllers::start(&ports);
        let hold = Fault::HoldWorker { task: task.to_owned(), phase: phase.to_owned(), hold_ms: 600_000 };
        world.sim.node.faults.arm(hold);
        let opened = open(&ports, 1, world.provision(1)).await;
        let node = Arc::clone(&world.sim.node);
        let shut_down = async {
            // The fault is used up once the worker is there.
            while !node.faults.armed().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let node = Arc::clone(&node);
            tokio::task::spawn_blocking(move || apply(&node, &Edit::ShutDown)).await.unwrap().unwrap();
        };
        let (done, ()) = tokio::join!(run(&ports, opened), shut_down);
        let mut done = done.unwrap();
        if task == "vzrestore" {
            // A restore is taken back and begun anew, by the next plan.
            assert_eq!(done.status(), Status::Undone, "{task}: {}", reported(&done));
            assert_eq!(done.cause().unwrap().code, ErrorCode::Unavailable, "{}", reported(&done));
            assert_eq!((world.guests().len(), world.disks().len()), (0, 0), "{task}");
            done = run(&ports, open(&ports, 2, world.provision(1)).await).await.unwrap();
        }
        assert_eq!(done.status(), Status::Done, "{task}: {}", reported(&done));
        assert_eq!((world.guests().len(), world.disks().len()), (1, 3), "{task}");
    }
}

/// Each reply of each kind is lost once, with the effect done or not: one guest, by one restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_is_found_again() {
    let putting = || Aim { method: "PUT".to_owned(), path: "/config".to_owned() };
    let faults = [
        Fault::LostReply { on: posting("/nodes/pve1/lxc") },
        Fault::DaemonSlow { on: posting("/nodes/pve1/lxc") },
        Fault::CutBody { on: posting("/nodes/pve1/lxc") },
        Fault::LostReply { on: posting("/status/start") },
        Fault::DaemonSlow { on: posting("/status/start") },
        Fault::LostReply { on: posting("/vzdump") },
        Fault::LostReply { on: putting() },
        Fault::DaemonSlow { on: putting() },
        Fault::LostRequest { on: putting() },
    ];
    for fault in faults {
        let world = World::start().await;
        let ports = world.sound().await;
        let _controllers = Controllers::start(&ports);
        world.sim.node.faults.arm(fault.clone());
        let opened = open(&ports, 1, world.provision(1)).await;
        let done = run(&ports, opened).await.unwrap();
        assert_eq!(done.status(), Status::Done, "{fault:?}: {}", reported(&done));
        assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
        assert_eq!(
            (world.guests().len(), world.restores(300).await, world.disks().len()),
            (1, 1, 3),
            "{fault:?}"
        );
    }
}

/// A killed restore leaves a locked remainder outside every pool: no token can clear it, so it is parked with the
/// command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_restore_is_parked_with_what_to_do() {
    let world = World::start().await;
    let ports = world.sound().await;
    let fault = Fault::KillWorker { task: "vzrestore".to_owned(), phase: String::new() };
    world.sim.node.faults.arm(fault);
    let opened = open(&ports, 1, world.provision(1)).await;
    let parked = run(&ports, opened).await.unwrap();
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert_eq!(parked.remedy(), Some("pct unlock 300; pct destroy 300"), "{}", reported(&parked));
    assert_eq!(world.guests().len(), 1, "left untouched");
}

/// Another owner takes our half-made guest over: the undo must not destroy it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_spares_a_guest_that_someone_took_over() {
    let world = World::start().await;
    let edit = |key: &str, value: &str| Edit::Set { vmid: 300, key: key.to_owned(), value: value.to_owned() };
    let theirs = vec![edit("tags", "theirs"), edit("description", "somebody else's guest")];
    let ports = world.ports(HandAt::new("attach_volume", &world.sim.node, theirs)).await;
    let Operation::Provision(mut provision) = world.provision(1) else {
        unreachable!("a provision was asked for")
    };
    provision.bulk_storage = Some("nosuch".parse().unwrap());
    let opened = open(&ports, 1, Operation::Provision(provision)).await;
    let done = run(&ports, opened).await.unwrap();
    assert_eq!(done.status(), Status::Parked, "{}", reported(&done));
    assert_eq!(done.cause().unwrap().code, ErrorCode::ForeignGuest, "{}", reported(&done));
    assert_eq!(world.guests().len(), 1, "the guest is still there");

    // The owner who took it gives it back and destroys it on the node: retried, the undo finds nothing left to do.
    let set = |key: &str, value: String| Edit::Set { vmid: 300, key: key.to_owned(), value };
    for edit in [set("tags", mark::tags(uid(1)).join(";")), set("description", mark::description(uid(1)))] {
        apply(&world.sim.node, &edit).unwrap();
    }
    destroyed(&world).await;
    let (operation, entries, at) = (done.id, done.entries(), ports.clock.now());
    let answer = Answer { operation, entries, by: "root".to_owned(), at };
    let undone = run(&ports, ports.store.retry_parked(answer).await.unwrap()).await.unwrap();
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
}

/// With the guest we lose the right to see its volumes. The end of the undo's own destroy task counts. If that end is
/// unknown, a person gets the lines that show what is left, and nothing is called clean.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_is_done_only_when_its_destroy_said_so() {
    let task = || "vzdestroy".to_owned();
    let cases = [
        (None, Status::Undone),
        (
            Some(Fault::LostReply { on: Aim { method: "DELETE".to_owned(), path: "/lxc/300".to_owned() } }),
            Status::Undone,
        ),
        (Some(Fault::UnknownEnd { task: task() }), Status::Parked),
        (Some(Fault::VanishTask { task: task() }), Status::Parked),
    ];
    for (fault, wanted) in cases {
        let world = World::start().await;
        let ports = world.sound().await;
        let Operation::Provision(mut provision) = world.provision(1) else {
            unreachable!("a provision was asked for")
        };
        provision.bulk_storage = Some("nosuch".parse().unwrap());
        fault.iter().for_each(|fault| world.sim.node.faults.arm(fault.clone()));
        let opened = open(&ports, 1, Operation::Provision(provision)).await;
        let ended = run(&ports, opened).await.unwrap();
        assert_eq!(ended.status(), wanted, "{fault:?}: {}", reported(&ended));
        assert!(world.guests().is_empty() && world.sim.node.faults.armed().is_empty(), "{fault:?}");
        let reported_to = (wanted == Status::Parked).then_some("pvesm list tank --vmid 300");
        assert_eq!(ended.remedy(), reported_to, "{fault:?}: {}", reported(&ended));
    }
}

/// A number that is in use is refused and nothing changes; the next free one of a range is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn someone_elses_number_is_left_alone() {
    let world = World::start().await;
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let first = run(&ports, open(&ports, 1, world.provision(1)).await).await.unwrap();
    assert_eq!(first.status(), Status::Done, "{}", reported(&first));
    let before = world.guests();
    let Operation::Provision(mut provision) = world.provision(2) else {
        unreachable!("a provision was asked for")
    };
    provision.number = VmidRequest::Exactly(vmid(300));
    let refused = run(&ports, open(&ports, 2, Operation::Provision(provision)).await).await.unwrap();
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::VmidForeign);
    assert_eq!(world.guests(), before);
    let second = run(&ports, open(&ports, 3, world.provision(2)).await).await.unwrap();
    assert_eq!((second.status(), second.vmid()), (Status::Done, Some(vmid(301))), "{}", reported(&second));
}

/// A golden whose bytes are not the approved ones is not restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_golden_is_refused() {
    let world = World::start().await;
    let ports = world.sound().await;
    let operation = world.provision(1);
    let mut bytes = std::fs::read(&world.golden).unwrap();
    bytes.push(0);
    std::fs::write(&world.golden, bytes).unwrap();
    let refused = run(&ports, open(&ports, 1, operation).await).await.unwrap();
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::GoldenUnapproved);
    assert!(world.guests().is_empty() && world.disks().is_empty());
}

/// A controller that never says hello: after the bound everything is taken back, a running and protected guest as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_never_says_hello_is_taken_back_whole() {
    let world = World::start().await;
    let ports = world.sound().await;
    let ports = Ports { clock: Arc::new(FastClock::times(150)), ..ports };
    let undone = run(&ports, open(&ports, 1, world.provision(1)).await).await.unwrap();
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert!(undone.cause().unwrap().message.contains("no hello"), "{}", reported(&undone));
    assert!(
        world.guests().is_empty() && world.disks().is_empty(),
        "{:?} {:?}",
        world.guests(),
        world.disks()
    );
    let record = ports.store.guest(guest(1).uid).await.unwrap().unwrap();
    assert_eq!(record.place, Place::Nowhere);
}

/// Two redeemers of one claim: it is unknown which is the guest, so it is frozen and left for a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_redeemer_freezes_the_guest_and_parks_its_making() {
    let world = World::start().await;
    let ports = world.sound().await;
    let opened = open(&ports, 1, world.provision(1)).await;
    let (parked, ()) = tokio::join!(run(&ports, opened), redeem_twice(&ports));
    let parked = parked.unwrap();
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert_eq!(parked.cause().unwrap().code, ErrorCode::ClaimTwice);
    assert_eq!(ports.store.guest(guest(1).uid).await.unwrap().unwrap().access, Access::Frozen);
    assert_eq!(world.guests().len(), 1, "kept for the person who looks");
}

/// An attacker reads the bootstrap token from the configuration and is first; the guest comes second.
async fn redeem_twice(ports: &Ports) {
    let token = loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        // Before its start a claim that was redeemed is minted anew, and the second would belong to no guest.
        let runs = ports.pve.guest_status(vmid(300)).await.is_ok_and(|status| status.power == Power::Running);
        if !runs {
            continue;
        }
        let Ok(config) = ports.pve.guest_config(vmid(300)).await else { continue };
        let Some(text) = config.env.as_ref().and_then(|env| env.expose().strip_prefix("HOLDFAST_BOOTSTRAP="))
        else {
            continue;
        };
        if let Ok(token) = BootstrapToken::open(&Secret::new(text.to_owned())) {
            break token;
        }
    };
    for who in ["thief", "guest"] {
        let attempt = Redemption {
            claim: token.claim.hash(),
            redeemer: Some(TokenHash::of(who.as_bytes())),
            token: TokenHash::of(format!("token of {who}").as_bytes()),
        };
        ports.store.redeem_claim(attempt, ports.clock.now()).await.unwrap();
    }
}

/// The genuine archive of a privileged container with a bind mount and a raw line: refused before anything is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_archive_is_refused_by_its_line() {
    let world = World::start().await;
    let ports = world.sound().await;
    let Operation::Provision(mut provision) = world.provision(1) else {
        unreachable!("a provision was asked for")
    };
    let name = "vzdump-lxc-159-2026_11_21-04_02_21.tar.zst";
    let file = find(&world.dir.path().join("pve"), name);
    let sha256 = DigestCache::default().sha256(&file).unwrap().try_into().unwrap();
    let archive = VolumeId::new(format!("backup2:backup/{name}"));
    provision.source = Source::Image(Image { archive, sha256, file });
    let refused = run(&ports, open(&ports, 1, Operation::Provision(provision)).await).await.unwrap();
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    let cause = refused.cause().unwrap();
    assert_eq!(cause.code, ErrorCode::Forbidden, "{cause}");
    assert!(cause.message.contains("lxc.") || cause.message.contains("mp0"), "{cause}");
    assert_eq!((world.guests().len(), world.restores(300).await), (0, 0));
}
