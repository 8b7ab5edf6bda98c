//! Tests of backups with a dying worker.

use agentd::model::records::BackupWhy;
use agentd::operation::Operation;
use agentd::operation::log::Status;
use agentd::port::pve::TaskKind;
use holdfast_protocol::code::ErrorCode;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::world::{Controllers, World, asked_backup, end, guest, made, reported, tasks, vmid};

fn backup() -> Operation {
    Operation::Backup(asked_backup())
}

fn killed(phase: &str) -> Fault {
    Fault::KillWorker { task: "vzdump".to_owned(), phase: phase.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_backup_whatever_reply_is_lost_and_it_is_written_down() {
    let faults: [fn(Aim) -> Fault; 2] = [|on| Fault::LostReply { on }, |on| Fault::DaemonSlow { on }];
    for fault in faults {
        let world = World::start().await;
        let ports = made(&world).await;
        let first = ports.store.backups(guest(1).uid, 10).await.unwrap();
        assert_eq!((first.len(), first[0].why), (1, BackupWhy::First));
        assert_eq!(first[0].took, None, "the guest was made meanwhile");
        world.sim.node.faults.arm(fault(Aim { method: "POST".to_owned(), path: "/vzdump".to_owned() }));
        let done = end(&ports, 1, backup()).await;
        assert_eq!(done.status(), Status::Done, "{}", reported(&done));
        assert!(world.sim.node.faults.armed().is_empty());
        assert_eq!(tasks(&world, TaskKind::Backup).await, 2, "the first one, and this");
        let record = ports.store.backup_of(done.id).await.unwrap().unwrap();
        let seen = (record.why, record.vmid, record.storage.as_str());
        assert_eq!(seen, (BackupWhy::Asked, vmid(300), "backup2"));
        let view = ports.store.operation_view(done.id).await.unwrap().unwrap();
        let took = view.ended_at.unwrap().duration_since(view.opened_at);
        let difference = record.took.unwrap().as_millis().abs_diff(took.unsigned_abs().as_millis());
        assert!(difference <= 1, "{record:?}, {took:?}");
        assert!(record.bytes > 1_000 && record.archive != first[0].archive, "{record:?}");
    }
}

/// A request that never arrived is not sent again: the schedule decides on another backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_request_is_no_backup() {
    let world = World::start().await;
    let ports = made(&world).await;
    let on = Aim { method: "POST".to_owned(), path: "/vzdump".to_owned() };
    world.sim.node.faults.arm(Fault::LostRequest { on });
    let undone = end(&ports, 1, backup()).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!(tasks(&world, TaskKind::Backup).await, 1, "the first one");
    assert_eq!(ports.store.backup_of(undone.id).await.unwrap(), None);
}

/// Killed while it held the guest still: Proxmox says running, but the guest may be frozen. Reported at once, as an
/// alarm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_may_stand_frozen_is_parked_at_once() {
    // While its snapshot is made; and without snapshots, while its last changes are copied.
    for phase in ["snapshotting", "final sync"] {
        let world = World::start().await;
        let ports = made(&world).await;
        if phase == "final sync" {
            world.give_a_plain_volume();
        }
        world.sim.node.faults.arm(killed(phase));
        let parked = end(&ports, 1, backup()).await;
        assert_eq!(parked.status(), Status::Parked, "{phase}: {}", reported(&parked));
        assert!(world.sim.node.faults.armed().is_empty(), "{phase} was reached");
        let cause = parked.cause().unwrap();
        assert!(cause.code == ErrorCode::Locked && cause.message.contains("FROZEN"), "{phase}: {cause}");
        let remedy = parked.remedy().unwrap();
        assert!(remedy.starts_with("pct unlock 300; lxc-unfreeze -n 300; "), "{phase}: {remedy}");
        assert_eq!(ports.store.backups(guest(1).uid, 10).await.unwrap().len(), 1, "only the first one");
    }
}

/// Proxmox says OK, and there is no archive: that is no backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ok_without_an_archive_is_no_backup() {
    let world = World::start().await;
    let ports = made(&world).await;
    world.sim.node.faults.arm(Fault::NoArchive { vmid: 300 });
    let undone = end(&ports, 1, backup()).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert!(undone.cause().unwrap().message.contains("does not show it"), "{}", reported(&undone));
    assert_eq!(ports.store.backups(guest(1).uid, 10).await.unwrap().len(), 1, "only the first one");
}

/// The hour that autumn repeats: Proxmox derives the time of an archive from its name in local time, and so an hour too
/// early. The archive that the task's own log named is its archive all the same, and no older than the request for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_owner_name_says_an_hour_too_early_is_found() {
    let world = World::start().await;
    let ports = made(&world).await;
    world.sim.node.settable.set_ahead_s(-3_600);
    let before = ports.clock.now();
    let done = end(&ports, 1, backup()).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    let record = ports.store.backup_of(done.id).await.unwrap().unwrap();
    assert!(record.taken_at.as_second() >= before.as_second(), "{record:?}");
}

/// Killed in the copy: only the worker would have finished the archive. The wait ends at once, by the usual clock. The
/// guest's lock is reported together with the command that removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_owner_worker_died_is_not_waited_for() {
    for fault in [killed("copy"), Fault::OrphanBackup { vmid: 300, after_ms: 0 }] {
        let world = World::start().await;
        let ports = made(&world).await;
        world.sim.node.faults.arm(fault);
        let undone = end(&ports, 1, backup()).await;
        assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
        let cause = undone.cause().unwrap();
        assert_eq!(cause.code, ErrorCode::Locked, "{cause}");
        assert!(cause.message.contains("`pct unlock 300`"), "{cause}");
        // The lock is all that is in the way of the next one.
        world.unlock(300);
        let done = end(&ports, 2, backup()).await;
        assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    }
}

/// The first backup of a guest needs room like each one: its guest is made and reports it, and the next backup is due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_backup_is_not_begun_where_it_has_no_room() {
    let world = World::start().await;
    let fill = |percent| Edit::StorageFill { storage: "backup2".to_owned(), percent };
    apply(&world.sim.node, &fill(Some(97))).unwrap();
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let made = end(&ports, 0, world.provision(1)).await;
    assert_eq!(made.status(), Status::Done, "{}", reported(&made));
    let full = made.conditions().find(|one| one.code == ErrorCode::StorageFull).expect("it is told");
    assert!(full.message.contains("--delete-backup"), "{full:?}");
    assert_eq!(tasks(&world, TaskKind::Backup).await, 0, "nothing was begun");
    assert_eq!(ports.store.backups(guest(1).uid, 10).await.unwrap(), []);
    let refused = end(&ports, 1, backup()).await;
    assert_eq!(refused.cause().unwrap().code, ErrorCode::StorageFull, "{}", reported(&refused));
    apply(&world.sim.node, &fill(None)).unwrap();
    let done = end(&ports, 2, backup()).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
}
