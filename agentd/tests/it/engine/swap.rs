//! Tests of swaps.

use std::sync::Arc;

use agentd::execute::Ports;
use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::mark::{self, Mark};
use agentd::model::records::{BackupWhy, CopyStage, HelloRecord, Origin, Place, VolumeId};
use agentd::model::view::HostSnapshot;
use agentd::operation::log::Status;
use agentd::operation::{self, Backup, Operation, Stop, SwapGuest};
use agentd::port::pve::GuestConfig;
use agentd::port::pve::config::Switch;
use agentd::port::pve::read::Power;
use agentd::port::store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestName, JobId, OperationId, Vmid};
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Draft, Fingerprint, JobState, SeenCopy, Target};
use holdfast_protocol::report::{GuestStatus, Health, Running};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::drift::{self, serves};
use super::hand::HandAt;
use super::jobs;
use super::missing_guest::says_hello;
use super::restore_copy::copy_of;
use super::world::{FastClock, World, end, find, guest, made, reported, snapshot, target, uid, vmid};

const BULK: &str = "tank:300/vm-300-disk-2.raw";

/// One of the two as an operator sees it.
async fn seen(ports: &Ports, number: Vmid) -> SignedState {
    let config = ports.pve.guest_config(number).await.unwrap();
    let volumes = config.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect();
    let name: GuestName = config.hostname.unwrap().parse().unwrap();
    SignedState { uid: uid(1), vmid: number, name, volumes }
}

/// What operators sign: this copy for this guest, and these volumes stay behind.
async fn signed(ports: &Ports, (now, copy): (Vmid, Vmid), leaves: &[&str]) -> Warrant {
    let leaves = leaves.iter().map(|text| VolumeId::new(*text)).collect();
    let allows = Allows::SwapGuest { copy: Box::new(seen(ports, copy).await), leaves };
    Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(9)), allows, seen(ports, now).await)
}

async fn swap(world: &World, ports: &Ports, pair: (Vmid, Vmid), leaves: &[&str]) -> Operation {
    let warrant = signed(ports, pair, leaves).await;
    let copies = ports.store.copies().await.unwrap();
    let made_by = copies.iter().find(|record| record.vmid == pair.1).unwrap().made_by;
    let backup = Backup {
        target: operation::Target { vmid: pair.1, ..target() },
        storage: "backup2".parse().unwrap(),
        why: BackupWhy::First,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    };
    let swap = SwapGuest::new(warrant, made_by, world.policy().bridge, Some(backup)).unwrap();
    Operation::SwapGuest(Box::new(swap))
}

/// A guest that runs, 300, and a copy of its first backup, 301, which it has overwritten since.
async fn pair(world: &World) -> Ports {
    let ports = made(world).await;
    write(world, "vm-300-disk-0", "since the backup");
    let archive = ports.store.backups(uid(1), 1).await.unwrap().remove(0).archive;
    let copied = end(&ports, 1, Operation::RestoreCopy(Box::new(copy_of(world, &archive)))).await;
    assert_eq!(copied.status(), Status::Done, "{}", reported(&copied));
    ports
}

fn write(world: &World, disk: &str, text: &str) {
    let tree = find(&world.dir.path().join("pve"), disk).join("tree");
    std::fs::write(tree.join("state"), text).unwrap();
}

fn read(world: &World, disk: &str) -> Option<String> {
    std::fs::read_to_string(find(&world.dir.path().join("pve"), disk).join("tree/state")).ok()
}

const PAIR: fn() -> (Vmid, Vmid) = || (vmid(300), vmid(301));

/// Controllers that come up with their old token: the guest that runs in that place says hello, again and again.
struct Speaks(tokio::task::JoinHandle<()>);

impl Drop for Speaks {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Speaks {
    #[expect(clippy::disallowed_methods, reason = "the stand-in for programs that run beside the agent")]
    fn of(ports: &Ports, number: Vmid) -> Self {
        let ports = ports.clone();
        Self(tokio::spawn(async move {
            loop {
                let status = ports.pve.guest_status(number).await;
                if status.is_ok_and(|status| status.power == Power::Running) {
                    let hello = HelloRecord {
                        reported: Default::default(),
                        version: "0.1.0".to_owned(),
                        health: Health::Well,
                        boot_id: number.to_string(),
                        build: None,
                        at: ports.clock.now(),
                    };
                    let _ = ports.store.record_hello(uid(1), hello).await;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }))
    }
}

fn net(config: &GuestConfig) -> String {
    config.nets.get(&0).unwrap().clone()
}

fn part(config: &GuestConfig, key: &str) -> Option<String> {
    net(config).split(',').find_map(|part| part.strip_prefix(&format!("{key}="))).map(str::to_owned)
}

async fn power(ports: &Ports, number: u32) -> Power {
    ports.pve.guest_status(vmid(number)).await.unwrap().power
}

/// Both as they were, by their files, and our records as well; nothing is deleted.
async fn as_before(world: &World, ports: &Ports, before: &Before, reported: &str) {
    let now = Before::of(world);
    assert_eq!(now.disks, before.disks, "{reported}");
    for number in ["300.conf", "301.conf"] {
        assert_eq!(now.guests.get(number), before.guests.get(number), "{reported}");
    }
    let place = ports.store.guest(uid(1)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{reported}");
    let mut copies = ports.store.copies().await.unwrap();
    let copy = copies.pop().unwrap();
    assert_eq!((copies.len(), copy.vmid), (0, vmid(301)), "{reported}");
    assert!(matches!(copy.origin, Origin::Restored(_)), "{reported}");
    assert_eq!(power(ports, 300).await, Power::Running, "{reported}");
    assert_eq!(power(ports, 301).await, Power::Stopped, "{reported}");
}

/// The files of both, line by line in any order, and all disks.
struct Before {
    guests: std::collections::BTreeMap<String, std::collections::BTreeSet<String>>,
    disks: std::collections::BTreeSet<String>,
}

impl Before {
    fn of(world: &World) -> Self {
        let lines = |text: String| {
            let (own, _pending) = text.split_once("\n[").unwrap_or((&text, ""));
            // A used bootstrap token that was removed disappears when the guest is shut down.
            let plain = |line: &&str| *line != "onboot: 0" && !line.starts_with("lxc.environment");
            own.lines().filter(plain).map(str::to_owned).collect()
        };
        let guests = world.guests().into_iter().map(|(name, text)| (name, lines(text))).collect();
        Self { guests, disks: world.disks() }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_takes_the_place_of_its_guest_which_is_kept() {
    let world = World::start().await;
    let ports = pair(&world).await;
    let by_hand =
        |key: &str, value: &str| Edit::Set { vmid: 300, key: key.to_owned(), value: value.to_owned() };
    apply(&world.sim.node, &by_hand("onboot", "1")).unwrap();
    let taken = end(&ports, 2, snapshot("before", 3_600)).await;
    assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
    let (guest_was, copy_was) =
        (ports.pve.guest_config(vmid(300)).await.unwrap(), ports.pve.guest_config(vmid(301)).await.unwrap());
    let disks = world.disks();

    let speaks = Speaks::of(&ports, vmid(301));
    let operation = swap(&world, &ports, PAIR(), &[BULK]).await;
    let done = end(&ports, 3, operation).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    drop(speaks);
    assert_eq!(done.view().vmid, Some(vmid(301)), "{}", reported(&done));
    assert!(world.disks().is_superset(&disks), "nothing is deleted");

    // The copy is the guest.
    let now = ports.pve.guest_config(vmid(301)).await.unwrap();
    assert_eq!(mark::read(&now.tags, &now.description), Mark::Of(uid(1)));
    assert_eq!(
        (now.hostname.as_deref(), now.onboot, now.protection),
        (Some("web-1"), Switch::On, Switch::On)
    );
    assert_eq!(part(&now, "ip"), part(&guest_was, "ip"));
    assert_eq!(part(&now, "hwaddr"), part(&copy_was, "hwaddr"), "its own hardware address");
    assert_ne!(part(&now, "hwaddr"), part(&guest_was, "hwaddr"));
    assert_eq!((part(&now, "link_down"), power(&ports, 301).await), (None, Power::Running));
    assert_eq!(read(&world, "vm-301-disk-0"), None, "and has the state of its backup");

    // What was the guest is kept as the copy was.
    let former = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!(mark::read(&former.tags, &former.description), Mark::Copy { of: uid(1), by: done.id });
    assert_eq!((former.hostname.as_deref(), former.onboot), (Some("web-1-former"), Switch::Off));
    assert_eq!(part(&former, "link_down").as_deref(), Some("1"));
    assert_eq!((former.protection, power(&ports, 300).await), (Switch::On, Power::Stopped));
    assert_eq!(read(&world, "vm-300-disk-0").as_deref(), Some("since the backup"));

    // Our records: one transaction, and the first backup stays valid under the new number.
    let record = ports.store.guest(uid(1)).await.unwrap().unwrap();
    assert!(
        matches!(&record.place, Place::Made { vmid: at, volumes, .. } if *at == vmid(301) && volumes.len() == 2)
    );
    let copies = ports.store.copies().await.unwrap();
    assert_eq!((copies.len(), copies[0].vmid, copies[0].made_by), (1, vmid(300), done.id));
    assert_eq!(copies[0].origin, Origin::Demoted);
    assert!(matches!(&copies[0].stage, CopyStage::Made { volumes } if volumes.len() == 3));
    assert_eq!(ports.store.snapshots(uid(1)).await.unwrap(), Vec::new(), "they stay with what was the guest");
    let backups = ports.store.backups(uid(1), 10).await.unwrap();
    let numbers: std::collections::BTreeSet<Vmid> = backups.iter().map(|backup| backup.vmid).collect();
    assert_eq!((backups.len(), numbers), (2, [vmid(300), vmid(301)].into()));
    ports.store.verify_audit().await.unwrap();

    // The way back afterwards is the same verb, with the numbers exchanged.
    let _speaks = Speaks::of(&ports, vmid(300));
    let back = swap(&world, &ports, (vmid(301), vmid(300)), &[]).await;
    let done = end(&ports, 4, back).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    let again = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!((net(&again), again.hostname.as_deref()), (net(&guest_was), Some("web-1")));
    assert_eq!((power(&ports, 300).await, power(&ports, 301).await), (Power::Running, Power::Stopped));
    assert_eq!(read(&world, "vm-300-disk-0").as_deref(), Some("since the backup"));
}

/// A copy that is needed takes its place although the backup after it has no room; that backup is not begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backup_behind_a_swap_is_not_begun_where_it_has_no_room() {
    let world = World::start().await;
    let ports = pair(&world).await;
    let before = ports.store.backups(uid(1), 10).await.unwrap();
    apply(&world.sim.node, &Edit::StorageFill { storage: "backup2".to_owned(), percent: Some(97) }).unwrap();
    let _speaks = Speaks::of(&ports, vmid(301));
    let operation = swap(&world, &ports, PAIR(), &[BULK]).await;
    let done = end(&ports, 3, operation).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(done.view().vmid, Some(vmid(301)));
    assert!(done.conditions().any(|one| one.code == ErrorCode::StorageFull), "{}", reported(&done));
    assert_eq!(ports.store.backups(uid(1), 10).await.unwrap(), before);
}

/// What waits a quarter of an hour waits two seconds.
fn quick(ports: Ports) -> Ports {
    Ports { clock: Arc::new(FastClock::times(400)), ..ports }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_says_nothing_gives_the_place_back() {
    let world = World::start().await;
    let ports = quick(pair(&world).await);
    let before = Before::of(&world);
    // The guest itself says hello until it is shut down: that does not count as the copy's hello.
    let _speaks = Speaks::of(&ports, vmid(300));
    let undone = end(&ports, 3, swap(&world, &ports, PAIR(), &[BULK]).await).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert!(undone.cause().unwrap().message.contains("no hello"), "{}", reported(&undone));
    as_before(&world, &ports, &before, &reported(&undone)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_stood_still_is_not_started_on_the_way_back() {
    let world = World::start().await;
    let ports = quick(pair(&world).await);
    let stopped = end(&ports, 2, Operation::Stop(Stop(target()))).await;
    assert_eq!(stopped.status(), Status::Done, "{}", reported(&stopped));
    let undone = end(&ports, 3, swap(&world, &ports, PAIR(), &[BULK]).await).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!((power(&ports, 300).await, power(&ports, 301).await), (Power::Stopped, Power::Stopped));
}

/// A guest or copy that is not as it was signed for is refused before anything is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_as_signed_for_is_not_swapped() {
    let edits: Vec<(&str, Vec<Edit>, &[&str], ErrorCode)> = vec![
        ("a volume that nobody named stays behind", vec![], &[], ErrorCode::Forbidden),
        (
            "one is named that the copy has",
            vec![],
            &[BULK, "tank:300/vm-300-disk-1.raw"],
            ErrorCode::Forbidden,
        ),
        ("the copy runs", vec![Edit::Start { vmid: 301 }], &[BULK], ErrorCode::Locked),
        (
            "the copy lost its mark",
            vec![set(301, "description", "theirs")],
            &[BULK],
            ErrorCode::TargetChanged,
        ),
        ("the copy has the guest's", vec![copied_mark()], &[BULK], ErrorCode::TargetChanged),
        ("the guest was renamed", vec![set(300, "hostname", "web-2")], &[BULK], ErrorCode::TargetChanged),
        (
            "the copy got a hook",
            vec![set(301, "hookscript", "local:snippets/x.pl")],
            &[BULK],
            ErrorCode::Forbidden,
        ),
        ("the copy has one network more", vec![set(301, "net1", NET1)], &[BULK], ErrorCode::Forbidden),
        ("the guest is on another bridge", vec![set(300, "net0", ELSEWHERE)], &[BULK], ErrorCode::Forbidden),
    ];
    for (what, edits, leaves, code) in edits {
        let world = World::start().await;
        let ports = pair(&world).await;
        let operation = swap(&world, &ports, PAIR(), leaves).await;
        edits.iter().for_each(|edit| apply(&world.sim.node, edit).unwrap());
        let before = Before::of(&world);
        let refused = end(&ports, 3, operation).await;
        assert_eq!(refused.status(), Status::Undone, "{what}: {}", reported(&refused));
        assert_eq!(refused.cause().unwrap().code, code, "{what}: {}", reported(&refused));
        let now = Before::of(&world);
        assert_eq!((now.guests, now.disks), (before.guests, before.disks), "{what}");
        assert_eq!(power(&ports, 300).await, Power::Running, "{what}");
    }
}

const NET1: &str = "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:AA:BB:CC,ip=manual,link_down=1";
const ELSEWHERE: &str = "name=eth0,bridge=vmbr9,hwaddr=BC:24:11:AA:BB:CD,ip=10.9.0.9/24";

fn set(vmid: u32, key: &str, value: &str) -> Edit {
    Edit::Set { vmid, key: key.to_owned(), value: value.to_owned() }
}

fn copied_mark() -> Edit {
    set(301, "tags", &mark::tags(uid(1)).join(";"))
}

/// Numbers that our records assign differently: a stale signature swaps nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_numbers_swap_nothing() {
    let world = World::start().await;
    let ports = pair(&world).await;
    let before = Before::of(&world);
    let good = signed(&ports, PAIR(), &[BULK]).await;
    let made_by = ports.store.copies().await.unwrap().remove(0).made_by;
    let (copy, leaves) = good.swaps().unwrap();
    let copy_of = |vmid: Vmid| Allows::SwapGuest {
        copy: Box::new(SignedState { vmid, ..copy.clone() }),
        leaves: leaves.clone(),
    };
    let guest_at = |vmid: Vmid| SignedState { vmid, ..good.target().clone() };
    let cases: [(Allows, SignedState, OperationId); 4] = [
        (copy_of(vmid(302)), guest_at(vmid(300)), made_by),
        (copy_of(vmid(300)), guest_at(vmid(300)), made_by),
        (copy_of(vmid(301)), guest_at(vmid(302)), made_by),
        (copy_of(vmid(301)), guest_at(vmid(300)), OperationId::new(uuid::Uuid::from_u128(77))),
    ];
    for (n, (allows, target, by)) in (3..).zip(cases) {
        let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(9)), allows, target);
        let swap = SwapGuest::new(warrant, by, world.policy().bridge, None).unwrap();
        let refused = end(&ports, n, Operation::SwapGuest(Box::new(swap))).await;
        assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
        assert_eq!(refused.cause().unwrap().code, ErrorCode::TargetChanged, "{}", reported(&refused));
        as_before(&world, &ports, &before, &reported(&refused)).await;
    }
}

/// A manual edit in between: what was begun is undone, and both are as they were except for the edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_in_between_sends_everything_back() {
    let cases = [
        ("demote_original", vec![Edit::Start { vmid: 300 }], Status::Undone),
        ("promote_copy", vec![Edit::Start { vmid: 301 }], Status::Undone),
        ("promote_copy", vec![Edit::Start { vmid: 300 }], Status::Undone),
        ("promote_copy", vec![set(300, "net0", NET0_PLUGGED)], Status::Undone),
        ("start_placed", vec![set(301, "hostname", "theirs")], Status::Undone),
        ("confirm_placed", vec![Edit::Stop { vmid: 301 }], Status::Undone),
        // A copy that has another owner by then is left to that owner, unplugged.
        ("promote_copy", vec![set(301, "description", "theirs")], Status::Undone),
        // A guest that is, is a person's to clear up.
        ("start_placed", vec![set(300, "description", "theirs")], Status::Parked),
    ];
    for (step, edits, wanted) in cases {
        let world = World::start().await;
        drop(pair(&world).await);
        let ports = quick(world.ports(HandAt::new(step, &world.sim.node, edits.clone())).await);
        let before = world.disks();
        let _speaks = Speaks::of(&ports, vmid(301));
        let ended = end(&ports, 3, swap(&world, &ports, PAIR(), &[BULK]).await).await;
        assert_eq!(ended.status(), wanted, "{step} {edits:?}: {}", reported(&ended));
        assert_eq!(world.disks(), before, "{step} {edits:?}: nothing is deleted");
        assert_eq!(world.guests().len(), 2, "{step} {edits:?}");
        one_at_most_is_plugged(&ports, &format!("{step} {edits:?}: {}", reported(&ended))).await;
        let place = ports.store.guest(uid(1)).await.unwrap().unwrap().place;
        assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{step} {edits:?}");
        if wanted == Status::Undone {
            let guest = ports.pve.guest_config(vmid(300)).await.unwrap();
            assert_eq!(mark::read(&guest.tags, &guest.description), Mark::Of(uid(1)), "{step} {edits:?}");
            assert_eq!(power(&ports, 300).await, Power::Running, "{step} {edits:?}: {}", reported(&ended));
        }
    }
}

const NET0_PLUGGED: &str = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:AA:BB:CD,ip=10.66.0.1/24,gw=10.66.0.254";

/// Never may the two meet under one address.
async fn one_at_most_is_plugged(ports: &Ports, reported: &str) {
    let mut plugged = 0;
    for number in [300, 301] {
        let config = ports.pve.guest_config(vmid(number)).await.unwrap();
        plugged += usize::from(part(&config, "link_down").is_none());
    }
    assert!(plugged <= 1, "{reported}");
}

/// A copy that was destroyed in between does not keep the guest from coming back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_comes_back_although_its_copy_is_gone() {
    let world = World::start().await;
    drop(pair(&world).await);
    let gone = vec![Edit::Unset { vmid: 301, key: "protection".to_owned() }, Edit::Destroy { vmid: 301 }];
    let ports = quick(world.ports(HandAt::new("start_placed", &world.sim.node, gone)).await);
    let undone = end(&ports, 3, swap(&world, &ports, PAIR(), &[BULK]).await).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    let guest = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!(mark::read(&guest.tags, &guest.description), Mark::Of(uid(1)));
    assert_eq!((part(&guest, "link_down"), power(&ports, 300).await), (None, Power::Running));
}

fn aim(method: &str, path: &str) -> Aim {
    Aim { method: method.to_owned(), path: path.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_swaps_once() {
    let faults = [
        Fault::LostReply { on: aim("PUT", "/lxc/300/config") },
        Fault::LostRequest { on: aim("PUT", "/lxc/300/config") },
        Fault::LostReply { on: aim("PUT", "/lxc/301/config") },
        Fault::DaemonSlow { on: aim("PUT", "/lxc/301/config") },
        Fault::LostReply { on: aim("POST", "/lxc/301/status/start") },
        Fault::LostReply { on: aim("POST", "/lxc/300/status/shutdown") },
    ];
    for fault in faults {
        let world = World::start().await;
        let ports = pair(&world).await;
        let operation = swap(&world, &ports, PAIR(), &[BULK]).await;
        world.sim.node.faults.arm(fault.clone());
        let _speaks = Speaks::of(&ports, vmid(301));
        let done = end(&ports, 3, operation).await;
        assert_eq!(done.status(), Status::Done, "{fault:?}: {}", reported(&done));
        assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
        one_at_most_is_plugged(&ports, &format!("{fault:?}")).await;
    }
}

/// A step that Proxmox refuses for good takes everything before it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_cannot_be_plugged_in_or_started_gives_the_place_back() {
    for path in ["/lxc/301/config", "/lxc/301/status/start"] {
        let world = World::start().await;
        let ports = quick(pair(&world).await);
        let before = Before::of(&world);
        let operation = swap(&world, &ports, PAIR(), &[BULK]).await;
        let method = if path.ends_with("config") { "PUT" } else { "POST" };
        // As many as there are tries.
        (0..5).for_each(|_| world.sim.node.faults.arm(Fault::DaemonDown { on: aim(method, path) }));
        let ended = end(&ports, 3, operation).await;
        assert_eq!(ended.status(), Status::Undone, "{path}: {}", reported(&ended));
        as_before(&world, &ports, &before, &reported(&ended)).await;
    }
}

/// From the text that operators signed to the end: refused until what stays behind is named, done, and reported. The
/// loop continues with the guest under its new number and leaves the other alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_swap_is_done_by_the_loop_which_goes_on_with_the_copy() {
    let world = World::start().await;
    let mut agent = drift::start(&world).await;
    jobs::lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    let seen = |of: &SignedState| Fingerprint {
        name: of.name.clone(),
        customer: Some(guest(1).customer),
        volumes: of.volumes.iter().map(ToString::to_string).collect(),
    };
    let fingerprint = seen(&self::seen(&agent.ports, vmid(300)).await);
    let target = Target::Guest { uid: uid(1), vmid: Some(vmid(300)), fingerprint };
    let own = agent.ports.store.backups(uid(1), 1).await.unwrap().remove(0).archive;
    let archive = own.as_str().to_owned().try_into().unwrap();
    let restore = Draft { target: target.clone(), act: Act::Restore(args::Restore { archive }) };
    let restore = jobs::order(&agent, restore).await;
    assert!(matches!(jobs::leave(&agent, &restore).await, Outcome::Taken));
    assert_eq!(jobs::ended(&agent, restore.id).await.state, JobState::Done);
    let reported = |view: &HostSnapshot, number: u32| {
        view.guests
            .iter()
            .find(|one| one.vmid == Some(vmid(number)) && one.status == GuestStatus::RestoredCopy)
            .cloned()
    };
    let view = agent
        .until("the copy is told whole", |view| {
            reported(view, 301).is_some_and(|copy| !copy.volumes.is_empty())
        })
        .await;
    let copy = reported(&view, 301).unwrap();

    let draft = |leaves: &[&str]| Draft {
        target: target.clone(),
        act: Act::SwapGuest(args::SwapGuest {
            copy: SeenCopy {
                vmid: vmid(301),
                fingerprint: Fingerprint {
                    name: copy.name.parse().unwrap(),
                    customer: None,
                    volumes: copy.volumes.iter().cloned().collect(),
                },
            },
            leaves: leaves.iter().map(|text| (*text).to_owned().try_into().unwrap()).collect(),
        }),
    };
    let refused = jobs::order(&agent, draft(&[])).await;
    assert!(matches!(jobs::leave(&agent, &refused).await, Outcome::Taken));
    let end = jobs::ended(&agent, refused.id).await;
    assert_eq!(end.state, JobState::Failed);
    let problem = end.problem.unwrap();
    assert!(problem.code == ErrorCode::Forbidden && problem.message.contains(BULK), "{problem:?}");

    let good = jobs::order(&agent, draft(&[BULK])).await;
    assert!(matches!(jobs::leave(&agent, &good).await, Outcome::Taken));
    let (end, ()) = tokio::join!(jobs::ended(&agent, good.id), says_hello(&agent.ports, &world));
    assert_eq!(end.state, JobState::Done, "{:?}", end.problem);
    let view = agent
        .until("the guest under its new number, and the other beside it", |view| {
            let moved = drift::report(view, 1).is_some_and(|own| own.vmid == Some(vmid(301)));
            moved && serves(view, 1) && reported(view, 300).is_some_and(|was| !was.conditions.is_empty())
        })
        .await;
    let was = reported(&view, 300).unwrap();
    assert_eq!((was.uid, was.name.as_str(), was.run), (None, "web-1-former", Running::Stopped));
    assert!(was.conditions[0].message.contains("as it was before"), "{was:#?}");
    assert!(view.problems.is_empty(), "{:#?}", view.problems);
    // A stale signature over the same two swaps nothing back.
    let stale = jobs::order(&agent, draft(&[BULK])).await;
    assert!(matches!(jobs::leave(&agent, &stale).await, Outcome::Away(_)));
    agent.stop().await;
}
