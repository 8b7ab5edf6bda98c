//! Tests of a restore test.

use std::collections::BTreeMap;

use agentd::execute::Ports;
use agentd::model::policy::TestPlace;
use agentd::model::records::{BackupRecord, TestRecord, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::restore_test::TestedBackup;
use agentd::operation::{Operation, RestoreTest};
use agentd::plan::restore_duration::trend;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::Trend;
use pve_sim::fault::Fault;
use pve_sim::fault::admin::{Edit, apply};

use super::hand::HandAt;
use super::world::{ARCHIVE, World, asked_backup, end, find, guest, made, open, reported, snapshot};

async fn newest(ports: &Ports) -> BackupRecord {
    ports.store.backups(guest(1).uid, 1).await.unwrap().remove(0)
}

pub async fn trial(world: &World, ports: &Ports) -> Operation {
    let backup = newest(ports).await;
    Operation::RestoreTest(Box::new(RestoreTest {
        guest: guest(1).uid,
        name: guest(1).name,
        backup: TestedBackup {
            archive: backup.archive,
            taken_by: backup.taken_by,
            taken_at: backup.taken_at,
        },
        place: place(world),
    }))
}

fn place(world: &World) -> TestPlace {
    world.policy().scratch.unwrap()
}

async fn tried(world: &World, ports: &Ports, n: u8) -> OperationState {
    end(ports, n, trial(world, ports).await).await
}

pub async fn only_record(ports: &Ports) -> TestRecord {
    let mut all = ports.store.restore_tests(guest(1).uid, 8).await.unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The guest as it was, and no other guest.
async fn only_the_guest(world: &World, ports: &Ports, reported: &str) {
    assert_eq!((world.guests().len(), world.disks().len()), (1, 3), "{reported}");
    assert_eq!(ports.store.copies().await.unwrap(), Vec::new(), "{reported}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_boots_says_so_and_leaves_nothing() {
    let world = World::start().await;
    let ports = made(&world).await;
    let before = world.guests();
    let done = tried(&world, &ports, 1).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(done.view().vmid.map(|vmid| vmid.number()), Some(900));
    let record = only_record(&ports).await;
    assert_eq!((record.verdict, record.operation), (TestVerdict::BootedOnly, done.id));
    let backup = newest(&ports).await;
    assert_eq!((record.backup, record.bytes), (backup.taken_by, Some(backup.bytes)));
    assert!(record.took.whole_s().is_some(), "{record:?}");
    assert_eq!(world.guests(), before);
    only_the_guest(&world, &ports, &reported(&done)).await;
    ports.store.verify_audit().await.unwrap();
}

/// Each return is measured, and the fourth is the first that can be compared with those before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fourth_test_has_a_trend() {
    let world = World::start().await;
    let ports = made(&world).await;
    for n in 1..=4_u8 {
        let done = tried(&world, &ports, n).await;
        assert_eq!(done.status(), Status::Done, "{}", reported(&done));
        let records = ports.store.records(Generation::new(1), ports.clock.now()).await.unwrap();
        assert_eq!(records.tests.len(), usize::from(n));
        let too_few = Trend::TooFew { tests: u32::from(n), needed: 4 };
        assert_eq!(trend(records.tests.iter()) == too_few, n < 4, "{:?}", records.tests);
    }
}

/// While its backup is tried a guest can be snapshotted; and two tests are never under way at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_holds_no_guests_lane() {
    let world = World::start().await;
    let ports = made(&world).await;
    let under_way = open(&ports, 1, trial(&world, &ports).await).await;
    let taken = end(&ports, 2, snapshot("s1", 600)).await;
    assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
    let second = agentd::port::store::journal::NewOperation {
        id: holdfast_protocol::id::OperationId::new(uuid::Uuid::from_u128(3)),
        operation: trial(&world, &ports).await,
        generation: holdfast_protocol::generation::Generation::new(1),
        reason: "a second one".to_owned(),
        at: ports.clock.now(),
    };
    assert!(ports.store.open_operation(second).await.is_err(), "one at a time");
    let done = agentd::execute::run::run(&ports, under_way).await.unwrap();
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
}

/// Bytes that are damaged on the backup storage, at any position: the test fails, gives the reason, and leaves nothing.
/// With damage at its beginning, an archive cannot even be read beforehand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_with_a_flipped_byte_fails_its_test() {
    type Place = fn(usize) -> usize;
    let places: [(Place, &str); 3] = [
        (|_| 0, "judge_archive"),
        (|bytes| bytes / 2, "restore"),
        // What the compressor wrote down to compare by.
        (|bytes| bytes - 1, "restore"),
    ];
    for (place, broken_at) in places {
        let world = World::start().await;
        let ports = made(&world).await;
        let archive = newest(&ports).await.archive;
        let name = archive.as_str().rsplit('/').next().unwrap().to_owned();
        let file = find(&world.dir.path().join("pve"), &name);
        let mut bytes = std::fs::read(&file).unwrap();
        let at = place(bytes.len());
        bytes[at] ^= 0x10;
        std::fs::write(&file, bytes).unwrap();
        let done = tried(&world, &ports, 1).await;
        assert_eq!(done.status(), Status::Undone, "{}", reported(&done));
        let (step, problem) = done.broken_at().unwrap();
        assert_eq!(
            (step.name(), problem.code),
            (broken_at, ErrorCode::ArchiveUnusable),
            "{}",
            reported(&done)
        );
        let record = only_record(&ports).await;
        assert_eq!(record.verdict, TestVerdict::Failed, "{record:?}");
        assert!(record.took.is_unknown(), "{record:?}");
        only_the_guest(&world, &ports, &reported(&done)).await;
    }
}

/// The archive that the records call a backup of the guest belongs to another owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_someone_else_fails_its_test() {
    let world = World::start().await;
    let ports = made(&world).await;
    let mut operation = trial(&world, &ports).await;
    if let Operation::RestoreTest(test) = &mut operation {
        test.backup.archive = VolumeId::new(ARCHIVE);
    }
    let done = end(&ports, 1, operation).await;
    let record = only_record(&ports).await;
    assert_eq!(record.verdict, TestVerdict::Failed, "{record:?}");
    assert!(record.why.contains("does not carry the mark"), "{record:?}");
    only_the_guest(&world, &ports, &reported(&done)).await;
}

const TAR: &str = "command 'lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- tar xpf - --zstd --totals -C /var/lib/lxc/900/rootfs --skip-old-files --anchored --exclude './dev/*'' failed: exit code 2";

fn fails(task: &str, phase: &str, text: &str) -> Fault {
    Fault::FailWorker { task: task.to_owned(), phase: phase.to_owned(), text: text.to_owned() }
}

/// The host ended the test, not the backup: a pool that ran full meanwhile (`tar` then ends as it does for damaged
/// bytes), a number that was taken, a right or a network that is missing. Each of them once left the backup unfit for a
/// lost guest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_the_hosts_fault_is_no_failed_test() {
    let fill = |percent| Edit::StorageFill { storage: "tank".to_owned(), percent: Some(percent) };
    let stranger = "arch: amd64\nhostname: else\nmemory: 128\nostype: debian\nswap: 0\nunprivileged: 1\n";
    let cases: [(&str, Vec<Edit>, Option<Fault>, &str); 6] = [
        ("restore", vec![fill(90)], Some(fails("vzrestore", "unpacking", TAR)), "is too full"),
        ("restore", vec![fill(101)], None, ""),
        (
            "restore",
            vec![Edit::Place { vmid: 900, config: stranger.to_owned() }],
            None,
            "taken by somebody else",
        ),
        (
            "restore",
            vec![],
            Some(fails(
                "vzrestore",
                "unpacking",
                "403 Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)",
            )),
            "SDN.Use",
        ),
        (
            "restore",
            vec![],
            Some(fails(
                "vzrestore",
                "recovering",
                "can't lock file '/run/lock/lxc/pve-config-900.lock' - got timeout",
            )),
            "got timeout",
        ),
        ("first_start", vec![], Some(fails("vzstart", "", "bridge 'vmbr0' does not exist")), "vmbr0"),
    ];
    for (step, edits, fault, part) in cases {
        let world = World::start().await;
        drop(made(&world).await);
        let before = world.guests();
        let ports = world.ports(HandAt::new(step, &world.sim.node, edits)).await;
        // A start is tried twice.
        fault.iter().for_each(|fault| {
            world.sim.node.faults.arm(fault.clone());
            world.sim.node.faults.arm(fault.clone());
        });
        let done = tried(&world, &ports, 1).await;
        assert_eq!(done.status(), Status::Undone, "{}", reported(&done));
        let record = only_record(&ports).await;
        assert_eq!(record.verdict, TestVerdict::NotRun, "{record:?}");
        assert!(record.why.contains(part), "{part}: {record:?}");
        let theirs = |guests: &BTreeMap<String, String>| guests.get("300.conf").cloned();
        assert_eq!(theirs(&world.guests()), theirs(&before));
    }
}

/// A test that cannot begin says nothing about the backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_cannot_begin_is_not_run() {
    let world = World::start().await;
    let ports = made(&world).await;
    let mut operation = trial(&world, &ports).await;
    if let Operation::RestoreTest(test) = &mut operation {
        test.place.memory = 4_194_304.try_into().unwrap();
    }
    let done = end(&ports, 1, operation).await;
    assert_eq!(done.status(), Status::Undone, "{}", reported(&done));
    let record = only_record(&ports).await;
    assert_eq!(record.verdict, TestVerdict::NotRun, "{record:?}");
    assert!(record.why.contains("memory"), "{record:?}");
    only_the_guest(&world, &ports, &reported(&done)).await;
}

/// A storage that has room now and would be full afterwards stops every guest on it: nothing is tried there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_would_fill_its_storage_is_not_run() {
    let world = World::start().await;
    let ports = made(&world).await;
    let large = "tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1,size=65536G".to_owned();
    apply(&world.sim.node, &Edit::Set { vmid: 300, key: "mp0".to_owned(), value: large }).unwrap();
    assert_eq!(end(&ports, 1, Operation::Backup(asked_backup())).await.status(), Status::Done);
    world.large_backups();
    let done = tried(&world, &ports, 2).await;
    assert_eq!(done.status(), Status::Undone, "{}", reported(&done));
    assert_eq!(done.cause().unwrap().code, ErrorCode::StorageFull, "{}", reported(&done));
    let record = only_record(&ports).await;
    assert_eq!(record.verdict, TestVerdict::NotRun, "{record:?}");
    assert!(record.why.contains("with its disks of 65538 GiB"), "{record:?}");
    assert_eq!(world.restores(900).await, 0);
    only_the_guest(&world, &ports, &reported(&done)).await;
}

/// A guest that does not come up: failed, and taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_does_not_start_fails_its_test() {
    let world = World::start().await;
    let ports = made(&world).await;
    let text = "startup for container '900' failed".to_owned();
    let fault = Fault::FailWorker { task: "vzstart".to_owned(), phase: String::new(), text };
    // It is tried twice.
    world.sim.node.faults.arm(fault.clone());
    world.sim.node.faults.arm(fault);
    let done = tried(&world, &ports, 1).await;
    let record = only_record(&ports).await;
    assert_eq!(record.verdict, TestVerdict::Failed, "{}", reported(&done));
    let took = record.took;
    assert!(took.restore_s.is_some() && took.up_s.is_none(), "its restore was one: {took:?}");
    only_the_guest(&world, &ports, &reported(&done)).await;
}

/// The scratch guest's token reaches no guest of a customer. The next test shows what it may do on a storage of files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_scratch_guests_reaches_no_other() {
    let world = World::unwatched().await;
    let ports = made(&world).await;
    assert_eq!(end(&ports, 1, snapshot("s1", 600)).await.status(), Status::Done);
    let token = world.token("scratch");
    let archive = newest(&ports).await.archive;
    let before = world.guests();
    let guest = "/nodes/pve1/lxc/300";
    let kept = format!("/nodes/pve1/storage/backup2/content/{archive}");
    for (method, path, params) in [
        ("GET", format!("{guest}/config"), vec![]),
        ("PUT", format!("{guest}/config"), vec![("protection", "0")]),
        ("PUT", format!("{guest}/config"), vec![("memory", "64")]),
        ("PUT", format!("{guest}/config"), vec![("delete", "mp0")]),
        ("PUT", format!("{guest}/config"), vec![("net0", "name=eth0,bridge=vmbr0,ip=manual")]),
        ("PUT", format!("{guest}/resize"), vec![("disk", "rootfs"), ("size", "3G")]),
        ("POST", format!("{guest}/status/start"), vec![]),
        ("POST", format!("{guest}/status/stop"), vec![]),
        ("POST", format!("{guest}/status/shutdown"), vec![]),
        ("POST", format!("{guest}/snapshot"), vec![("snapname", "s2")]),
        ("POST", format!("{guest}/snapshot/s1/rollback"), vec![]),
        ("DELETE", format!("{guest}/snapshot/s1"), vec![]),
        ("POST", format!("{guest}/move_volume"), vec![("volume", "mp0"), ("storage", "tank")]),
        (
            "POST",
            format!("{guest}/move_volume"),
            vec![("volume", "mp0"), ("target-vmid", "301"), ("target-volume", "mp0")],
        ),
        ("DELETE", guest.to_owned(), vec![]),
        ("DELETE", guest.to_owned(), vec![("force", "1")]),
        ("DELETE", "/nodes/pve1/storage/tank/content/tank:300/vm-300-disk-0.raw".to_owned(), vec![]),
        ("POST", "/nodes/pve1/vzdump".to_owned(), vec![("vmid", "300"), ("storage", "backup2")]),
        ("GET", "/nodes/pve1/vzdump/extractconfig".to_owned(), vec![("volume", archive.as_str())]),
        ("DELETE", kept, vec![]),
        (
            "DELETE",
            "/nodes/pve1/storage/backup2/prunebackups".to_owned(),
            vec![("prune-backups", "keep-last=1"), ("vmid", "300")],
        ),
        ("PUT", "/pools/holdfast".to_owned(), vec![("vms", "300"), ("delete", "1")]),
        ("PUT", "/access/acl".to_owned(), vec![("path", "/"), ("roles", "HfAllocate"), ("users", "hf@pve")]),
        ("PUT", "/storage/backup2".to_owned(), vec![("disable", "1")]),
        ("DELETE", "/storage/backup2".to_owned(), vec![]),
    ] {
        let said = world.said(&token, method, &path, &params);
        assert!(said.starts_with("403 Permission check failed"), "{method} {path} {params:?}: {said}");
    }
    assert_eq!(world.guests(), before);
    assert_eq!(newest(&ports).await.archive, archive);
}

/// Proxmox lets a token that may allocate in *a* pool overwrite any stopped guest with an archive. What prevents this
/// is `protection`, which we set on every guest and which this token cannot lift; without it the guest is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_restore_over_a_customers_guest_meets_its_protection() {
    let world = World::unwatched().await;
    let ports = made(&world).await;
    let archive = newest(&ports).await.archive;
    let over = [
        ("vmid", "300"),
        ("ostemplate", archive.as_str()),
        ("restore", "1"),
        ("force", "1"),
        ("storage", "tank"),
        ("pool", "holdfast-scratch"),
        ("net0", "name=eth0,bridge=vmbr0,ip=manual,link_down=1"),
    ];
    let forced = || world.said(&world.token("scratch"), "POST", "/nodes/pve1/lxc", &over);
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    let before = (world.guests(), world.disks());
    assert_eq!(forced(), "500 unable to restore CT 300 - protection mode enabled");
    assert_eq!((world.guests(), world.disks()), before);
    apply(&world.sim.node, &Edit::Unset { vmid: 300, key: "protection".to_owned() }).unwrap();
    assert_eq!(forced(), "200 OK", "it is protection alone that holds");
}

/// On a storage of files no right is narrower than a right to read that also prunes everything there. It is reported as
/// such (`docs/adr/0045`). No call of our client does it, and the token cannot delete one backup by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_files_are_backups_the_token_that_reads_them_could_prune_them() {
    let world = World::unwatched().await;
    let ports = made(&world).await;
    let first = newest(&ports).await.archive;
    let name = first.as_str().rsplit('/').next().unwrap().to_owned();
    let file = find(&world.dir.path().join("pve"), &name);
    assert_eq!(end(&ports, 1, Operation::Backup(asked_backup())).await.status(), Status::Done);
    let (token, on) = (world.token("scratch"), "/nodes/pve1/storage/backup2");
    // A mark that was set on a backup by hand does not stay either.
    let kept = format!("{on}/content/{first}");
    assert_eq!(world.by_hand("PUT", &kept, &[("protected", "1")]), 200);
    let prune = [("prune-backups", "keep-last=1")];
    let pruned = async || world.task(&token, "DELETE", &format!("{on}/prunebackups"), &prune).await;
    assert_eq!((pruned().await.as_str(), file.exists()), ("OK", true));
    assert_eq!(world.by(&token, "PUT", &kept, &[("protected", "0")]), 200);
    assert_eq!((pruned().await.as_str(), file.exists()), ("OK", false));
}
