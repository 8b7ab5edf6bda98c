//! Tests of a restored copy.

use std::path::Path;
use std::sync::Arc;

use agentd::execute::Ports;
use agentd::execute::failpoint::{Failpoints, Killed, Moment, Point, Side};
use agentd::execute::run::run;
use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::mark::{self, Mark};
use agentd::model::records::{CopyStage, Place, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{MissingGuest, Operation, RestoreCopy, Source, Stop, Whence};
use agentd::port::pve::config::Switch;
use agentd::port::pve::read::Power;
use agentd::port::store::parked::Answer;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::JobId;
use holdfast_protocol::report::{GuestStatus, Running};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::drift::{self, serves};
use super::hand::HandAt;
use super::world::{
    ARCHIVE, FastClock, World, asked_backup, end, find, guest, made, open, reported, target, uid, vmid,
};

const STRANGER: &str = "arch: amd64\nhostname: theirs\nmemory: 512\nostype: debian\n\
    rootfs: tank:301/vm-301-disk-0.raw,size=2G\nswap: 0\nunprivileged: 1\n";

pub fn copy_of(world: &World, archive: &VolumeId) -> RestoreCopy {
    let volumes = (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect();
    let seen = SignedState { uid: guest(1).uid, vmid: vmid(300), name: guest(1).name, volumes };
    let allows = Allows::RestoreCopy { archive: archive.clone() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    RestoreCopy::new(warrant, &world.policy(), Vec::new()).unwrap()
}

async fn newest(ports: &Ports) -> VolumeId {
    ports.store.backups(guest(1).uid, 1).await.unwrap().remove(0).archive
}

async fn restore(world: &World, ports: &Ports) -> OperationState {
    let archive = newest(ports).await;
    end(ports, 1, Operation::RestoreCopy(Box::new(copy_of(world, &archive)))).await
}

fn aim(method: &str, path: &str) -> Aim {
    Aim { method: method.to_owned(), path: path.to_owned() }
}

/// What waits a quarter of an hour for a storage waits two seconds.
fn quick(ports: Ports) -> Ports {
    Ports { clock: Arc::new(FastClock::times(400)), ..ports }
}

/// The guest as it was, and no other guest.
async fn only_the_guest(world: &World, ports: &Ports, reported: &str) {
    assert_eq!((world.guests().len(), world.disks().len()), (1, 3), "{reported}");
    assert_eq!(ports.store.copies().await.unwrap(), Vec::new(), "{reported}");
    let place = ports.store.guest(uid(1)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{reported}");
    assert_eq!(ports.pve.guest_status(vmid(300)).await.unwrap().power, Power::Running, "{reported}");
}

fn by_hand(key: &str, value: &str) -> Edit {
    Edit::Set { vmid: 300, key: key.to_owned(), value: value.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_stands_isolated_next_to_its_guest() {
    let world = World::start().await;
    let ports = made(&world).await;
    // What a backup brings along, and what must not live twice.
    let net = "name=eth1,bridge=vmbr9,hwaddr=BC:24:11:AA:BB:CC,ip=10.9.0.9/24";
    [("net1", net), ("onboot", "1"), ("tags", "hf-018f3c01;holdfast;web")]
        .iter()
        .for_each(|(key, value)| apply(&world.sim.node, &by_hand(key, value)).unwrap());
    let taken = end(&ports, 2, Operation::Backup(asked_backup())).await;
    assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
    let before = world.guests();

    let done = restore(&world, &ports).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(done.view().vmid, Some(vmid(301)), "{}", reported(&done));
    assert_eq!(world.guests().get("300.conf"), before.get("300.conf"), "its guest is as it was");

    let copy = ports.pve.guest_config(vmid(301)).await.unwrap();
    let original = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!(mark::read(&copy.tags, &copy.description), Mark::Copy { of: uid(1), by: done.id });
    assert_eq!(copy.tags, mark::copy_tags(done.id).into());
    assert_eq!(copy.hostname.as_deref(), Some("web-1-copy"));
    assert_eq!((copy.protection, copy.onboot, copy.unprivileged), (Switch::On, Switch::Off, Switch::On));
    assert!(copy.env.is_none(), "its guest's bootstrap token does not live again");
    assert_eq!(copy.nets.len(), 2);
    for net in copy.nets.values() {
        assert!(
            net.contains("link_down=1") && net.contains("bridge=vmbr0") && net.contains("ip=manual"),
            "{net}"
        );
        let address = net.split(',').find(|part| part.starts_with("hwaddr=")).unwrap();
        assert!(original.nets.values().all(|theirs| !theirs.contains(address)), "{net}");
    }
    // The root disk and the one volume that backups hold.
    let paths: Vec<_> = copy.mounts.values().map(|disk| disk.mount.as_deref().unwrap()).collect();
    assert_eq!((paths, copy.volumes().len()), (vec!["/srv/db"], 2));
    assert_eq!(ports.pve.guest_status(vmid(301)).await.unwrap().power, Power::Stopped);
    let note = done.view().steps.iter().find(|step| step.name == "judge_archive").unwrap().note.clone();
    assert!(note.unwrap().ends_with("not made: /srv/media"));

    let record = ports.store.copies().await.unwrap().remove(0);
    assert_eq!((record.guest, record.vmid, record.made_by), (uid(1), vmid(301), done.id));
    assert!(matches!(record.stage, CopyStage::Made { volumes } if volumes.len() == 2));
    ports.store.verify_audit().await.unwrap();
}

/// Anything but the guest's own harmless backup is refused, and nothing is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_archive_is_refused_before_anything_is_made() {
    let edits = [
        by_hand("hookscript", "local:snippets/x.pl"),
        by_hand("features", "nesting=1,mount=nfs"),
        by_hand("net32", "name=eth32,bridge=vmbr0"),
        Edit::Unset { vmid: 300, key: "unprivileged".to_owned() },
    ];
    for edit in edits {
        let world = World::start().await;
        let ports = made(&world).await;
        apply(&world.sim.node, &edit).unwrap();
        let taken = end(&ports, 2, Operation::Backup(asked_backup())).await;
        assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
        let refused = restore(&world, &ports).await;
        assert_eq!(refused.status(), Status::Undone, "{edit:?}: {}", reported(&refused));
        assert_eq!(refused.cause().unwrap().code, ErrorCode::Forbidden, "{edit:?}: {}", reported(&refused));
        assert_eq!(world.restores(301).await, 0, "{edit:?}");
        only_the_guest(&world, &ports, &reported(&refused)).await;
    }
    let world = World::start().await;
    let ports = made(&world).await;
    let golden = Operation::RestoreCopy(Box::new(copy_of(&world, &VolumeId::new(ARCHIVE))));
    let refused = end(&ports, 1, golden).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert!(refused.cause().unwrap().message.contains("somebody else's"), "{}", reported(&refused));
    only_the_guest(&world, &ports, &reported(&refused)).await;
}

/// Puts a configuration first in an archive, in the spelling that Proxmox unpacks and does not show.
fn put_before(archive: &Path, text: &str) {
    let mut header = tar::Header::new_ustar();
    header.set_path("etc/vzdump/pct.conf").unwrap();
    header.set_mode(0o644);
    header.set_size(text.len() as u64);
    header.set_cksum();
    let mut member = header.as_bytes().to_vec();
    member.extend_from_slice(text.as_bytes());
    member.resize(member.len().next_multiple_of(512), 0);
    // Frames of zstd follow each other as members of tar do.
    let mut whole = zstd::encode_all(member.as_slice(), 1).unwrap();
    whole.extend(std::fs::read(archive).unwrap());
    std::fs::write(archive, whole).unwrap();
}

/// Proxmox unpacks nothing twice: a file that the guest itself put there is in its backup, and is not what is merged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guests_own_file_of_that_name_is_passed_over() {
    let world = World::start().await;
    let ports = made(&world).await;
    let root = find(&world.dir.path().join("pve"), "vm-300-disk-0").join("tree");
    std::fs::create_dir_all(root.join("etc/vzdump")).unwrap();
    let own = std::fs::read_to_string(find(&world.dir.path().join("pve"), "300.conf")).unwrap();
    let (own, _pending) = own.split_once("\n[").unwrap();
    std::fs::write(
        root.join("etc/vzdump/pct.conf"),
        format!("{own}dev0: /dev/sda,mode=0666\nlock: backup\n"),
    )
    .unwrap();
    assert_eq!(end(&ports, 2, Operation::Backup(asked_backup())).await.status(), Status::Done);
    let done = restore(&world, &ports).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
}

/// Proxmox merges the first configuration of an archive, and shows the first whose name is spelt in full. Anyone who
/// can write to the storage can put another one before it. A check beforehand does not see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_archive_did_not_show_is_found_in_what_it_made_and_taken_back() {
    let world = World::start().await;
    let ports = made(&world).await;
    let own = std::fs::read_to_string(find(&world.dir.path().join("pve"), "300.conf")).unwrap();
    let (own, _pending) = own.split_once("\n[").unwrap();
    let take = |n| end(&ports, n, Operation::Backup(asked_backup()));
    for (n, line) in [(2, "dev0: /dev/sda,mode=0666"), (5, "hookscript: local:snippets/x.pl")] {
        assert_eq!(take(n).await.status(), Status::Done);
        let archive = newest(&ports).await;
        let (_, name) = archive.as_str().rsplit_once('/').unwrap();
        put_before(&find(&world.dir.path().join("pve"), name), &format!("{own}{line}\n"));
        let copy = Operation::RestoreCopy(Box::new(copy_of(&world, &archive)));
        let refused = end(&ports, n + 1, copy).await;
        assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
        let cause = refused.cause().unwrap();
        assert_eq!(cause.code, ErrorCode::Forbidden, "{}", reported(&refused));
        assert!(cause.message.contains(line), "{}", reported(&refused));
        only_the_guest(&world, &ports, &reported(&refused)).await;

        // Made again in place of a lost guest, it would have been started.
        let lost = MissingGuest {
            backup: archive,
            vmid: vmid(300),
            volumes: Default::default(),
            by: refused.id,
            whence: Whence::ThisBox,
            hardware: None,
            disks: None,
        };
        let Operation::Provision(mut provision) = world.provision(1) else { unreachable!() };
        provision.source = Source::Backup(Box::new(lost));
        let refused = end(&ports, n + 2, Operation::Provision(provision)).await;
        assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
        assert!(refused.cause().unwrap().message.contains(line), "{}", reported(&refused));
        assert_eq!((world.guests().len(), world.disks().len()), (1, 3), "{}", reported(&refused));
    }
    // One that is locked from then on: no call takes it back.
    assert_eq!(take(8).await.status(), Status::Done);
    let archive = newest(&ports).await;
    let (_, name) = archive.as_str().rsplit_once('/').unwrap();
    put_before(&find(&world.dir.path().join("pve"), name), &format!("{own}lock: backup\n"));
    let copy = Operation::RestoreCopy(Box::new(copy_of(&world, &archive)));
    let refused = end(&ports, 10, copy).await;
    assert_eq!(refused.status(), Status::Parked, "{}", reported(&refused));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_makes_one_copy() {
    let posting = || aim("POST", "/nodes/pve1/lxc");
    let putting = || aim("PUT", "/lxc/301/config");
    let faults = [
        Fault::LostReply { on: posting() },
        Fault::DaemonSlow { on: posting() },
        Fault::CutBody { on: posting() },
        Fault::LostReply { on: putting() },
        Fault::DaemonSlow { on: putting() },
        Fault::LostRequest { on: putting() },
        Fault::UnknownEnd { task: "vzrestore".to_owned() },
        Fault::VanishTask { task: "vzrestore".to_owned() },
        Fault::WarnWorker { task: "vzrestore".to_owned() },
    ];
    for fault in faults {
        let world = World::start().await;
        let ports = made(&world).await;
        world.sim.node.faults.arm(fault.clone());
        let done = restore(&world, &ports).await;
        assert_eq!(done.status(), Status::Done, "{fault:?}: {}", reported(&done));
        assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
        assert_eq!((world.guests().len(), world.disks().len()), (2, 5), "{fault:?}");
        // A restore whose task has vanished is in no list.
        assert!(world.restores(301).await <= 1 && world.restores(302).await == 0, "{fault:?}");
    }
}

/// A killed restore leaves a locked remainder that no token can clear; one that fails in its task leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_restore_is_a_persons_and_its_guest_is_not_kept_from_its_work() {
    let world = World::start().await;
    let ports = made(&world).await;
    let task = || "vzrestore".to_owned();
    world.sim.node.faults.arm(Fault::KillWorker { task: task(), phase: "unpacking".to_owned() });
    let parked = restore(&world, &ports).await;
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert_eq!(parked.remedy(), Some("pct unlock 301; pct destroy 301"), "{}", reported(&parked));
    assert_eq!(ports.store.copies().await.unwrap()[0].stage, CopyStage::Making);
    let stop = end(&ports, 2, Operation::Stop(Stop(target()))).await;
    assert_eq!(stop.status(), Status::Done, "{}", reported(&stop));

    let world = World::start().await;
    let ports = made(&world).await;
    let text = "no space left on device".to_owned();
    world.sim.node.faults.arm(Fault::FailWorker { task: task(), phase: "unpacking".to_owned(), text });
    let undone = restore(&world, &ports).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    only_the_guest(&world, &ports, &reported(&undone)).await;
}

/// A restored copy that cannot be finished is taken back: this copy, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_cannot_be_tagged_is_removed() {
    let world = World::start().await;
    let ports = made(&world).await;
    // Five for its tries, and two more for the undo.
    (0..7).for_each(|_| world.sim.node.faults.arm(Fault::DaemonDown { on: aim("PUT", "/lxc/301/config") }));
    let undone = restore(&world, &quick(ports.clone())).await;
    assert_eq!(world.sim.node.faults.armed(), Vec::new());
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!(world.restores(301).await, 1, "{}", reported(&undone));
    only_the_guest(&world, &ports, &reported(&undone)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_that_is_away_leaves_nothing_behind() {
    for storage in ["backup2", "tank"] {
        let world = World::start().await;
        let ports = made(&world).await;
        apply(&world.sim.node, &Edit::StorageOffline { storage: storage.to_owned() }).unwrap();
        let ended = restore(&world, &quick(ports.clone())).await;
        assert_eq!(ended.status(), Status::Undone, "{storage}: {}", reported(&ended));
        apply(&world.sim.node, &Edit::StorageOnline { storage: storage.to_owned() }).unwrap();
        only_the_guest(&world, &ports, &reported(&ended)).await;
    }
}

/// A pool that runs full stops every guest on it, so a copy never fills one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_that_is_nearly_full_takes_no_copy() {
    let world = World::start().await;
    let ports = made(&world).await;
    let fill = |percent| Edit::StorageFill { storage: "tank".to_owned(), percent };
    apply(&world.sim.node, &fill(Some(90))).unwrap();
    let refused = restore(&world, &ports).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::StorageFull, "{}", reported(&refused));
    assert_eq!(world.restores(301).await, 0);
    only_the_guest(&world, &ports, &reported(&refused)).await;
}

/// Nor is one made that would fill it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_that_a_copy_would_fill_takes_none() {
    let world = World::start().await;
    let ports = made(&world).await;
    let large = "tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1,size=65536G".to_owned();
    apply(&world.sim.node, &Edit::Set { vmid: 300, key: "mp0".to_owned(), value: large }).unwrap();
    assert_eq!(end(&ports, 7, Operation::Backup(asked_backup())).await.status(), Status::Done);
    world.large_backups();
    let refused = restore(&world, &ports).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    let cause = refused.cause().unwrap();
    assert_eq!(cause.code, ErrorCode::StorageFull, "{cause}");
    assert!(cause.message.contains("with its disks of 65538 GiB"), "{cause}");
    only_the_guest(&world, &ports, &reported(&refused)).await;
}

/// The number is given to another owner before the restore, after it, or before the last check: that guest is not
/// touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_was_reused_by_hand_is_not_touched() {
    let stranger = || Edit::Place { vmid: 301, config: STRANGER.to_owned() };
    let copys = |key: &str| Edit::Unset { vmid: 301, key: key.to_owned() };
    let gone = || vec![copys("protection"), Edit::Destroy { vmid: 301 }, stranger()];
    let cases = [
        ("restore", vec![stranger()], Status::Undone),
        ("tag_copy", gone(), Status::Parked),
        ("read_back", gone(), Status::Parked),
    ];
    for (step, edits, wanted) in cases {
        let world = World::start().await;
        drop(made(&world).await);
        let ports = world.ports(HandAt::new(step, &world.sim.node, edits)).await;
        let ended = restore(&world, &ports).await;
        assert_eq!(ended.status(), wanted, "{step}: {}", reported(&ended));
        let theirs = world.guests().get("301.conf").cloned().unwrap();
        assert!(theirs.contains("hostname: theirs") && !theirs.contains("protection"), "{step}: {theirs}");
        assert_eq!(world.guests().len(), 2, "{step}");
    }
}

/// A copy that another owner took over before it was taken back stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_spares_a_copy_that_is_not_only_ours() {
    let set = |key: &str, value: &str| Edit::Set { vmid: 301, key: key.to_owned(), value: value.to_owned() };
    let edits = [
        set("description", "somebody's"),
        set("unused0", "tank:300/vm-300-disk-9.raw"),
        set("mp7", "/srv/theirs,mp=/theirs"),
        Edit::Start { vmid: 301 },
    ];
    for edit in edits {
        let world = World::start().await;
        drop(made(&world).await);
        (0..5).for_each(|_| {
            world.sim.node.faults.arm(Fault::DaemonDown { on: aim("PUT", "/lxc/301/config") });
        });
        let hand = HandAt::new("tag_copy", &world.sim.node, vec![edit.clone()]);
        let ports = quick(world.ports(hand).await);
        let parked = restore(&world, &ports).await;
        assert_eq!(parked.status(), Status::Parked, "{edit:?}: {}", reported(&parked));
        assert_eq!(world.guests().len(), 2, "{edit:?}: the copy is still there");
        assert_eq!(ports.store.copies().await.unwrap()[0].stage, CopyStage::Making, "{edit:?}");
    }
}

/// What a person answers to a copy that was parked: fixed and tried again, or kept by the person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_copy_is_finished_or_left_to_a_person() {
    let world = World::start().await;
    drop(made(&world).await);
    let hand = HandAt::new("read_back", &world.sim.node, vec![Edit::Start { vmid: 301 }]);
    let ports = world.ports(hand).await;
    let parked = restore(&world, &ports).await;
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
    assert!(parked.cause().unwrap().message.contains("somebody started it"), "{}", reported(&parked));
    let answer = |to: &OperationState| Answer {
        operation: to.id,
        entries: to.entries(),
        by: "root".to_owned(),
        at: ports.clock.now(),
    };

    apply(&world.sim.node, &Edit::Stop { vmid: 301 }).unwrap();
    apply(&world.sim.node, &Edit::Set { vmid: 301, key: "onboot".to_owned(), value: "1".to_owned() })
        .unwrap();
    let again = run(&ports, ports.store.retry_parked(answer(&parked)).await.unwrap()).await.unwrap();
    assert_eq!(again.status(), Status::Parked, "{}", reported(&again));
    assert!(again.cause().unwrap().message.contains("start with the node"), "{}", reported(&again));

    apply(&world.sim.node, &Edit::Unset { vmid: 301, key: "onboot".to_owned() }).unwrap();
    let done = run(&ports, ports.store.retry_parked(answer(&again)).await.unwrap()).await.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(world.restores(301).await, 1, "and nothing was done twice");
    assert!(matches!(ports.store.copies().await.unwrap()[0].stage, CopyStage::Made { .. }));

    // Another one, which a person takes over as it is.
    let fault = Fault::KillWorker { task: "vzrestore".to_owned(), phase: "unpacking".to_owned() };
    world.sim.node.faults.arm(fault);
    let archive = newest(&ports).await;
    let parked = end(&ports, 2, Operation::RestoreCopy(Box::new(copy_of(&world, &archive)))).await;
    assert_eq!((parked.status(), parked.vmid()), (Status::Parked, Some(vmid(302))), "{}", reported(&parked));
    ports.store.forget_parked(answer(&parked), "I look at it".to_owned()).await.unwrap();
    let left: Vec<_> = ports.store.copies().await.unwrap().iter().map(|copy| copy.vmid).collect();
    assert_eq!((left, world.guests().len()), (vec![vmid(301)], 3), "what is left of it is theirs");
}

/// The loop reports a copy, leaves it alone, manages its guest as before, and forgets the copy when a person destroyed
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loop_reports_of_a_copy_and_never_touches_it() {
    let world = World::start().await;
    let mut agent = drift::start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    let archive = newest(&agent.ports).await;
    let operation = Operation::RestoreCopy(Box::new(copy_of(&world, &archive)));
    let id = open(&agent.ports, 1, operation).await.id;
    let copy = |view: &agentd::model::view::HostSnapshot, status| {
        view.guests.iter().any(|report| {
            report.vmid == Some(vmid(301)) && report.status == status && report.run == Running::Stopped
        })
    };
    let reported = agent
        .until("a copy told with what to do", |view| {
            let of = |report: &&holdfast_protocol::report::GuestReport| report.vmid == Some(vmid(301));
            let ready = view.guests.iter().find(of).is_some_and(|report| !report.conditions.is_empty());
            ready && copy(view, GuestStatus::RestoredCopy) && serves(view, 1)
        })
        .await;
    let report = reported.guests.iter().find(|report| report.vmid == Some(vmid(301))).unwrap();
    assert_eq!((report.uid, report.name.as_str()), (None, "web-1-copy"));
    assert!(report.conditions[0].message.contains("--discard 301"), "{report:#?}");
    assert!(reported.problems.is_empty(), "{:#?}", reported.problems);

    // Its guest falls over: it is its guest that is started again.
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    agent.until("the guest is down", |view| !serves(view, 1)).await;
    agent.until("and up again", |view| serves(view, 1) && copy(view, GuestStatus::RestoredCopy)).await;

    for edit in [Edit::Unset { vmid: 301, key: "protection".to_owned() }, Edit::Destroy { vmid: 301 }] {
        apply(&world.sim.node, &edit).unwrap();
    }
    agent
        .until("it is forgotten", |view| view.guests.iter().all(|report| report.vmid != Some(vmid(301))))
        .await;
    let mut changes = agent.ports.store.changes();
    let forgotten = async {
        while !agent.ports.store.copies().await.unwrap().is_empty() {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), forgotten).await.expect("its record goes");
    let ended = agent.ports.store.operation(id).await.unwrap().unwrap();
    assert_eq!(ended.status(), Status::Done);
    agent.stop().await;
}

/// Killed by the agent's own death at any step, it continues from the journal with one restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_dead_agent_is_finished_by_the_next() {
    for (step, side, moment) in [
        ("restore", Side::After, Moment::Effect),
        ("restore", Side::After, Moment::Posted),
        ("tag_copy", Side::After, Moment::Effect),
        ("read_back", Side::Before, Moment::Outcome),
    ] {
        let world = World::start().await;
        drop(made(&world).await);
        let ports = world.ports(Arc::new(DieAt(Point { step, side, moment }))).await;
        let archive = newest(&ports).await;
        let operation = Operation::RestoreCopy(Box::new(copy_of(&world, &archive)));
        run(&ports, open(&ports, 1, operation).await).await.unwrap_err();
        drop(ports);
        let ports = world.sound().await;
        let open = ports.store.open_operations().await.unwrap().remove(0);
        let done = run(&ports, open).await.unwrap();
        assert_eq!(done.status(), Status::Done, "{step}: {}", reported(&done));
        assert_eq!((world.restores(301).await, world.guests().len()), (1, 2), "{step}");
    }
}

struct DieAt(Point);

impl Failpoints for DieAt {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        if point == self.0 { Err(Killed(point)) } else { Ok(()) }
    }
}
