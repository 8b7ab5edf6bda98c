//! Tests of off-site backups.

use std::path::PathBuf;
use std::sync::Arc;

use agentd::execute::Ports;
use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::{BackupRecord, BackupWhy, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::restore_test::TestedBackup;
use agentd::operation::{
    Backup, Begun, DuePoint, Operation, PruneBackup, PruneBy, RestoreCopy, RestoreTest, Target,
};
use agentd::plan::protect::Raise;
use agentd::port::pve::read::StoredVolume;
use agentd::port::pve::{ContentKind, Role};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{JobId, KeyFingerprint, StorageName};
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::{Protection, Tier};
use holdfast_seal::backup_key::BackupKey;
use pve_sim::fault::Fault;
use serde_json::json;

use super::missing_guest::{again, destroyed, says_hello};
use super::world::{FastClock, World, asked_backup, end, find, guest, made, reported, target, vmid};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";
/// Another one, as the genuine client made it.
const OTHER_KEY: &str = r#"{"kdf":null,"created":"2026-11-21T04:10:22+00:00","modified":"2026-11-21T04:10:22+00:00","data":"dbtDZWB0UHZTbhv7Vo4MFNTt3eIPQL7ZR19guRHbceE=","fingerprint":"2d:dc:8f:dc:c7:ac:d1:3b:ad:45:d0:03:36:68:04:ee:5d:2a:e3:be:d3:9d:f6:d0:77:6a:82:3a:6d:68:19:4e"}"#;
pub const KEY_FILE: &str = include_str!("../../../../seal/tests/backup-key.json");

/// The backup server of these tests, as the simulator keeps it.
pub struct Server {
    pub place: PathBuf,
}

impl Server {
    /// A server with one namespace, and its entry in Proxmox as an administrator makes it.
    pub fn copy_of(world: &World) -> Self {
        let place = world.dir.path().join("pve/run/outside/10.66.0.1");
        std::fs::create_dir_all(place.join("store1/ns/hf")).unwrap();
        let print = vec!["86"; 32].join(":");
        std::fs::write(place.join("fingerprint"), &print).unwrap();
        std::fs::write(place.join("secret"), SECRET).unwrap();
        let fields = [
            ("storage", "off1"),
            ("type", "pbs"),
            ("server", "10.66.0.1"),
            ("datastore", "store1"),
            ("namespace", "hf"),
            ("username", "pve@pbs!bk"),
            ("password", SECRET),
            ("fingerprint", &print),
            ("content", "backup"),
            ("encryption-key", KEY_FILE),
        ];
        assert_eq!(world.by_hand("POST", "/storage", &fields), 200);
        Self { place }
    }

    /// Its client forgets to encrypt from now on.
    pub fn forget_keys(&self) {
        std::fs::write(self.place.join("plain"), "").unwrap();
    }

    /// The role of the token on the server.
    pub fn role(&self, role: &str) {
        std::fs::write(self.place.join("role"), role).unwrap();
    }
}

pub fn key() -> KeyFingerprint {
    BackupKey::parse(KEY_FILE.as_bytes()).unwrap().fingerprint().clone()
}

fn storage() -> StorageName {
    "off1".parse().unwrap()
}

fn backup(ports: &Ports) -> Operation {
    let now = ports.clock.now();
    let due = DuePoint { tier: Tier::OffSite, point: now, begun: Begun::InTime, at: now };
    let why = BackupWhy::Schedule;
    Operation::Backup(Backup { storage: storage(), why, due: Some(due), key: Some(key()), ..asked_backup() })
}

/// Takes one, and gives its record.
pub async fn taken(ports: &Ports, n: u8) -> BackupRecord {
    let done = end(ports, n, backup(ports)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    ports.store.backup_of(done.id).await.unwrap().unwrap()
}

async fn tried(world: &World, ports: &Ports, n: u8, backup: &BackupRecord) -> OperationState {
    let test = RestoreTest {
        guest: guest(1).uid,
        name: guest(1).name,
        backup: TestedBackup {
            archive: backup.archive.clone(),
            taken_by: backup.taken_by,
            taken_at: backup.taken_at,
        },
        place: world.policy().scratch.unwrap(),
    };
    end(ports, n, Operation::RestoreTest(Box::new(test))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_listed_with_the_key_that_was_promised() {
    let world = World::start().await;
    Server::copy_of(&world);
    let ports = made(&world).await;
    let record = taken(&ports, 1).await;
    assert!(record.archive.as_str().starts_with("off1:backup/ct/300/"), "{record:?}");
    assert_eq!((record.sealed.clone(), record.tier), (Some(key()), Some(Tier::OffSite)));
    assert!(record.bytes > 1_000, "{record:?}");
    let list = listed(&ports).await;
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!((list[0].volid.as_str(), &list[0].sealed), (record.archive.as_str(), &Some(key())));
    assert_eq!(list[0].format, "pbs-ct");
}

/// The server stored it unencrypted, whatever the entry says: an alarm, and no protection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrived_unencrypted_is_an_alarm() {
    let world = World::start().await;
    Server::copy_of(&world).forget_keys();
    let ports = made(&world).await;
    let done = end(&ports, 1, backup(&ports)).await;
    let alarm = done.conditions().next().unwrap();
    assert_eq!(alarm.code, ErrorCode::BackupUnsealed, "{alarm}");
    let record = ports.store.backup_of(done.id).await.unwrap().unwrap();
    assert_eq!(record.sealed, None);
    // Also without any promise.
    let asked = Backup { storage: storage(), ..asked_backup() };
    let done = end(&ports, 2, Operation::Backup(asked)).await;
    assert_eq!(done.conditions().next().unwrap().code, ErrorCode::BackupUnsealed, "{}", reported(&done));
}

/// The entry lost its key or has another one: nothing is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_the_box_for_an_entry_without_the_key() {
    let world = World::start().await;
    let server = Server::copy_of(&world);
    let ports = made(&world).await;
    for (n, change) in [("encryption-key", OTHER_KEY), ("delete", "encryption-key")].iter().enumerate() {
        assert_eq!(world.by_hand("PUT", "/storage/off1", &[*change]), 200);
        let undone = end(&ports, u8::try_from(n).unwrap() + 1, backup(&ports)).await;
        assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
        assert_eq!(undone.cause().unwrap().code, ErrorCode::BackupUnsealed, "{}", reported(&undone));
    }
    assert!(!server.place.join("store1/ns/hf/ct").exists());
}

/// Proxmox says OK, and the server lists nothing: that is no backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ok_that_the_server_does_not_list_is_no_backup() {
    let world = World::start().await;
    Server::copy_of(&world);
    let ports = made(&world).await;
    world.sim.node.faults.arm(Fault::NoArchive { vmid: 300 });
    let undone = end(&ports, 1, backup(&ports)).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert!(undone.cause().unwrap().message.contains("does not show it"), "{}", reported(&undone));
    assert_eq!(ports.store.backups(guest(1).uid, 10).await.unwrap().len(), 1, "only the first one");
}

/// Killed in the copy, and the client continues without its worker. While the backup is listed as unfinished it is
/// followed; then it is kept, and the lock is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_the_client_finishes_without_its_worker_is_kept() {
    let world = World::start().await;
    Server::copy_of(&world);
    let ports = made(&world).await;
    let ports = Ports { clock: Arc::new(FastClock::times(150)), ..ports };
    world.sim.node.faults.arm(Fault::OrphanBackup { vmid: 300, after_ms: 500 });
    let done = end(&ports, 1, backup(&ports)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    let record = ports.store.backup_of(done.id).await.unwrap().unwrap();
    assert_eq!(record.sealed, Some(key()), "{record:?}");
    let condition = done.conditions().next().unwrap();
    assert_eq!(condition.code, ErrorCode::Locked, "{condition}");
    assert!(format!("{condition:?}").contains("pct unlock 300"), "{condition:?}");
}

/// Killed before its client sent anything: looked up twice, and then it is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_no_client_sends_is_over_after_a_second_look() {
    let world = World::start().await;
    Server::copy_of(&world);
    let ports = made(&world).await;
    let ports = Ports { clock: Arc::new(FastClock::times(150)), ..ports };
    world.sim.node.faults.arm(Fault::KillWorker { task: "vzdump".to_owned(), phase: "copy".to_owned() });
    let undone = end(&ports, 1, backup(&ports)).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!(undone.cause().unwrap().code, ErrorCode::Locked, "{}", reported(&undone));
}

/// The namespace is not checked when the entry is made: the error shows with the first backup, as a failure and not as
/// a backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_not_there_takes_no_backup() {
    let world = World::start().await;
    let server = Server::copy_of(&world);
    let ports = made(&world).await;
    std::fs::remove_dir_all(server.place.join("store1/ns")).unwrap();
    let undone = end(&ports, 1, backup(&ports)).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_and_a_test_are_made_of_it() {
    let world = World::start().await;
    Server::copy_of(&world);
    let ports = made(&world).await;
    let record = taken(&ports, 1).await;
    let test = tried(&world, &ports, 2, &record).await;
    assert_eq!(test.status(), Status::Done, "{}", reported(&test));
    let verdict = ports.store.restore_tests(guest(1).uid, 1).await.unwrap().remove(0);
    assert_eq!((verdict.verdict, &verdict.archive), (TestVerdict::BootedOnly, &record.archive));

    let volumes = (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect();
    let seen = SignedState { uid: guest(1).uid, vmid: vmid(300), name: guest(1).name, volumes };
    let allows = Allows::RestoreCopy { archive: record.archive.clone() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    let copy = RestoreCopy::new(warrant, &world.policy(), Vec::new()).unwrap();
    let copied = end(&ports, 3, Operation::RestoreCopy(Box::new(copy))).await;
    assert_eq!(copied.status(), Status::Done, "{}", reported(&copied));
}

/// The server still lists it, but it cannot be read: the key that opens it is lost, and that is an alarm. A server that
/// does not answer says nothing about the backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_key_fails_the_test_and_a_server_that_is_away_does_not() {
    let world = World::start().await;
    let server = Server::copy_of(&world);
    let ports = made(&world).await;
    let record = taken(&ports, 1).await;
    let entry =
        |key: &str, value: &str| assert_eq!(world.by_hand("PUT", "/storage/off1", &[(key, value)]), 200);
    let before = (world.guests(), world.disks());
    let mut n = 1;
    let mut verdict = async |part: &str| {
        n += 1;
        let test = tried(&world, &ports, n, &record).await;
        assert_eq!(test.status(), Status::Undone, "{}", reported(&test));
        assert!(test.cause().unwrap().message.contains(part), "{part}: {}", reported(&test));
        assert_eq!((world.guests(), world.disks()), before);
        // Read by its operation: within one second there is no newest.
        let tests = ports.store.restore_tests(guest(1).uid, 9).await.unwrap();
        tests.into_iter().find(|one| one.operation == test.id).unwrap().verdict
    };
    entry("encryption-key", OTHER_KEY);
    assert_eq!(verdict("wrong key").await, TestVerdict::Failed);
    entry("delete", "encryption-key");
    assert_eq!(verdict("missing key").await, TestVerdict::Failed);
    entry("encryption-key", KEY_FILE);
    std::fs::remove_file(find(&world.dir.path().join("pve"), "off1.enc")).unwrap();
    assert_eq!(verdict("no encryption key file found").await, TestVerdict::Failed);
    entry("encryption-key", KEY_FILE);
    std::fs::rename(server.place.join("store1"), server.place.join("elsewhere")).unwrap();
    assert_eq!(verdict("permission check failed").await, TestVerdict::NotRun);
    std::fs::rename(&server.place, server.place.with_extension("away")).unwrap();
    assert_eq!(verdict("tcp connect error").await, TestVerdict::NotRun);
}

/// The guest is lost with its volumes, and only backups outside the host are left. It comes back by the rights that
/// setup granted, from a backup that could not be read beforehand. On a host where setup was not run again nothing is
/// made, and this is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_guest_comes_back_from_the_server() {
    let world = World::start().await;
    Server::copy_of(&world);
    let ports = made(&world).await;
    let record = taken(&ports, 1).await;
    destroyed(&world).await;
    let grant = [
        ("path", "/storage/off1"),
        ("roles", "HfStRead"),
        ("users", "hf@pve"),
        ("tokens", "hf@pve!allocate"),
        ("propagate", "0"),
    ];
    let mut taken_away = grant.to_vec();
    taken_away.push(("delete", "1"));
    assert_eq!(world.by_hand("PUT", "/access/acl", &taken_away), 200);
    let before = (world.guests(), world.disks());
    let undone = end(&ports, 2, again(&world, &record)).await;
    let cause = undone.cause().unwrap();
    assert_eq!(
        (undone.status(), cause.code),
        (Status::Undone, ErrorCode::Forbidden),
        "{}",
        reported(&undone)
    );
    assert!(cause.message.contains("/vms/300") && cause.message.contains("agentd doctor"), "{cause}");
    assert_eq!((world.guests(), world.disks()), before);

    assert_eq!(world.by_hand("PUT", "/access/acl", &grant), 200);
    let (done, ()) = tokio::join!(end(&ports, 3, again(&world, &record)), says_hello(&ports, &world));
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert_eq!(done.view().vmid, Some(vmid(301)), "{}", reported(&done));
    assert!(reported(&done).contains("judged once it is restored"), "{}", reported(&done));
    // The backup that it came back from cannot be read under its new number: no test of it, and no grant that would fix
    // it.
    let test = tried(&world, &ports, 5, &record).await;
    let all = ports.store.restore_tests(guest(1).uid, 9).await.unwrap();
    assert_eq!(
        all.iter().map(|one| one.verdict).collect::<Vec<_>>(),
        [TestVerdict::NotRun],
        "{}",
        reported(&test)
    );
    assert!(all[0].why.contains("had the number 300") && !all[0].why.contains("agentd doctor"), "{all:?}");
    // And its backups continue, in addition to those that it had under its former number.
    let Operation::Backup(due) = backup(&ports) else { panic!("a backup") };
    let target = Target { vmid: vmid(301), ..due.target };
    let more = end(&ports, 4, Operation::Backup(Backup { target, ..due })).await;
    assert_eq!(more.status(), Status::Done, "{}", reported(&more));
    let next = ports.store.backup_of(more.id).await.unwrap().unwrap();
    assert!(next.archive.as_str().starts_with("off1:backup/ct/301/"), "{next:?}");
    assert_eq!((next.guest, next.sealed), (record.guest, record.sealed));
}

/// Usually our token may not remove anything: then the failure quotes the server's answer, and nothing is removed. With
/// the permission, the backup is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_prunes_is_said_by_the_role_on_the_server() {
    let world = World::start().await;
    let server = Server::copy_of(&world);
    let ports = made(&world).await;
    let (old, new) = (taken(&ports, 1).await, taken(&ports, 2).await);
    assert_ne!(old.archive, new.archive);
    promise(&ports, 1).await;
    let going = |judged_at| {
        Operation::PruneBackup(PruneBackup {
            target: target(),
            archive: old.archive.clone(),
            storage: storage(),
            tier: Tier::OffSite,
            taken_by: old.taken_by,
            successor: new.archive.clone(),
            judged_at,
            by: PruneBy::Retention,
        })
    };
    let kept = end(&ports, 3, going(ports.clock.now())).await;
    assert_eq!(kept.status(), Status::Undone, "{}", reported(&kept));
    assert!(
        kept.cause().unwrap().message.contains("missing Datastore.Modify|Datastore.Prune"),
        "{}",
        reported(&kept)
    );
    assert_eq!(listed(&ports).await.len(), 2);

    server.role("DatastorePowerUser");
    let gone = end(&ports, 4, going(ports.clock.now())).await;
    assert_eq!(gone.status(), Status::Done, "{}", reported(&gone));
    let left = listed(&ports).await;
    assert_eq!((left.len(), left[0].volid.as_str()), (1, new.archive.as_str()));
}

pub async fn listed(ports: &Ports) -> Vec<StoredVolume> {
    let (pve, guest) = (&ports.pve, Some(vmid(300)));
    pve.storage_content(Role::Operate, &storage(), ContentKind::Backup, guest).await.unwrap()
}

/// Promises the guest an off-site tier that keeps so many.
async fn promise(ports: &Ports, last: u32) {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let backup = json!({ "target": "off1", "schedule": schedule, "retention": { "keep": { "last": last } },
        "consistency": "crash" });
    let tiers = json!({ "off_site": { "key": key(), "backup": backup } });
    let to: Protection = serde_json::from_value(json!({ "tiers": tiers, "volumes": [] })).unwrap();
    let raise = Raise { guest: guest(1).uid, from: None, to, what: "a test".to_owned() };
    ports.store.raise_protection(raise, ports.clock.now()).await.unwrap();
}
