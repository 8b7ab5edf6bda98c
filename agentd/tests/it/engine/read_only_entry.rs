//! Tests of restore tests through a read-only storage entry.

use agentd::execute::Ports;
use agentd::model::policy::TestPlace;
use agentd::model::records::{BackupRecord, TestRecord};
use agentd::operation::log::Status;
use agentd::operation::restore_test::TestedBackup;
use agentd::operation::{Operation, RestoreTest};
use holdfast_protocol::local::restore_test::TestVerdict;

use super::offsite::{KEY_FILE, Server, key, listed, taken};
use super::world::{World, end, find, guest, made, reported};

const READER: &str = "22222222-3333-4444-5555-666666666666";

/// A server whose account of this entry may only read, as its administrator makes it; and the grants of `agentd setup`
/// on a host whose storage has a twin.
fn counterpart(world: &World, server: &Server) {
    let account = server.place.join("accounts/pve@pbs!ro");
    std::fs::create_dir_all(&account).unwrap();
    std::fs::write(account.join("secret"), READER).unwrap();
    std::fs::write(account.join("role"), "DatastoreReader").unwrap();
    let print = vec!["86"; 32].join(":");
    let fields = [
        ("storage", "off1-read"),
        ("type", "pbs"),
        ("server", "10.66.0.1"),
        ("datastore", "store1"),
        ("namespace", "hf"),
        ("username", "pve@pbs!ro"),
        ("password", READER),
        ("fingerprint", &print),
        ("content", "backup"),
        ("encryption-key", KEY_FILE),
    ];
    assert_eq!(world.by_hand("POST", "/storage", &fields), 200);
    acl(world, "/storage/off1", "HfStRead", "scratch", Grant::Gone);
    acl(world, "/storage/off1-read", "HfStRead", "scratch", Grant::There);
    acl(world, "/storage/off1-read", "HfStAudit", "observe", Grant::There);
}

#[derive(PartialEq, Eq)]
enum Grant {
    There,
    Gone,
}

fn acl(world: &World, path: &str, role: &str, token: &str, grant: Grant) {
    let token = format!("hf@pve!{token}");
    let mut params = vec![("path", path), ("roles", role), ("tokens", token.as_str()), ("propagate", "0")];
    // The user keeps what another of its tokens needs there.
    params.push(if grant == Grant::There { ("users", "hf@pve") } else { ("delete", "1") });
    assert_eq!(world.by_hand("PUT", "/access/acl", &params), 200);
}

fn place(world: &World) -> TestPlace {
    let mut place = world.policy().scratch.unwrap();
    place.twins.insert("off1".parse().unwrap(), "off1-read".parse().unwrap());
    place
}

async fn tried(ports: &Ports, n: u8, backup: &BackupRecord, place: TestPlace) -> (Status, TestRecord) {
    let (archive, taken_by, taken_at) = (backup.archive.clone(), backup.taken_by, backup.taken_at);
    let backup = TestedBackup { archive, taken_by, taken_at };
    let test = RestoreTest { guest: guest(1).uid, name: guest(1).name, backup, place };
    let done = end(ports, n, Operation::RestoreTest(Box::new(test))).await;
    // By its operation: within one second there is no newest.
    let all = ports.store.restore_tests(guest(1).uid, 16).await.unwrap();
    let record = all.into_iter().find(|one| one.operation == done.id);
    (done.status(), record.unwrap_or_else(|| panic!("{}", reported(&done))))
}

/// Tried, and recorded under the backup's original name. The token reaches nothing on the storage itself, and through
/// the twin it can only read: what Proxmox lets through, the server refuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_tried_by_a_token_that_has_nothing_where_it_lies() {
    let world = World::unwatched().await;
    let server = Server::copy_of(&world);
    let ports = made(&world).await;
    let (first, second) = (taken(&ports, 1).await, taken(&ports, 2).await);
    counterpart(&world, &server);
    let (status, record) = tried(&ports, 3, &second, place(&world)).await;
    assert_eq!((status, record.verdict), (Status::Done, TestVerdict::BootedOnly), "{record:?}");
    assert_eq!((&record.archive, record.backup), (&second.archive, second.taken_by));

    // By its own entry it could not have been: so it was the twin.
    let (_, record) = tried(&ports, 4, &second, world.policy().scratch.unwrap()).await;
    assert_eq!(record.verdict, TestVerdict::NotRun, "{record:?}");
    assert!(record.why.contains("VM.Backup") || record.why.contains("/storage/off1"), "{record:?}");

    let name = first.archive.as_str().split_once(':').unwrap().1;
    let whole = "prunebackups";
    for (method, entry, path, params, wanted) in [
        ("GET", "off1", "content", vec![], "403 Permission check failed (/storage/off1, "),
        (
            "DELETE",
            "off1",
            whole,
            vec![("prune-backups", "keep-last=1")],
            "403 Permission check failed (/storage/off1, Datastore.Allocate)",
        ),
        (
            "DELETE",
            "off1",
            whole,
            vec![("prune-backups", "keep-last=1"), ("vmid", "300")],
            "403 Permission check failed (/storage/off1, Datastore.AllocateSpace)",
        ),
        (
            "DELETE",
            "off1",
            "content/{}",
            vec![],
            "403 Permission check failed (/storage/off1, Datastore.AllocateSpace)",
        ),
        ("PUT", "off1", "content/{}", vec![("notes", "x")], "403 Permission check failed (/storage/off1, "),
        ("GET", "off1-read", "content", vec![], "200 OK"),
        (
            "DELETE",
            "off1-read",
            whole,
            vec![("prune-backups", "keep-last=1"), ("vmid", "300")],
            "403 Permission check failed (/storage/off1-read, Datastore.AllocateSpace)",
        ),
        (
            "DELETE",
            "off1-read",
            "content/{}",
            vec![],
            "403 Permission check failed (/storage/off1-read, Datastore.AllocateSpace)",
        ),
        (
            "PUT",
            "off1-read",
            "content/{}",
            vec![("notes", "x")],
            "500 proxmox-backup-client failed: Error: permission check failed - missing Datastore.Modify|Datastore.Backup on /datastore/store1/hf",
        ),
        (
            "PUT",
            "off1-read",
            "content/{}",
            vec![("protected", "0")],
            // Not from the client but from a call of the node's own, which reports no more than the status.
            "500 403 Forbidden",
        ),
    ] {
        let path = format!("/nodes/pve1/storage/{entry}/{}", path.replace("{}", &format!("{entry}:{name}")));
        let said = world.said(&world.token("scratch"), method, &path, &params);
        assert!(said.starts_with(wanted), "{method} {path}: {said}");
    }
    // Without a guest's number Proxmox demands no more than the token has. The server does.
    let pruned = world
        .task(
            &world.token("scratch"),
            "DELETE",
            "/nodes/pve1/storage/off1-read/prunebackups",
            &[("prune-backups", "keep-last=1")],
        )
        .await;
    // The server's answer is in the task's log.
    assert_eq!(pruned, "error pruning backups - check log");
    let left: Vec<String> = listed(&ports).await.into_iter().map(|row| row.volid).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// A twin that shows other backups, is gone, or lost its key: the backup is not tried, and never called bad because of
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_counterpart_says_nothing_of_the_backup() {
    let world = World::start().await;
    let server = Server::copy_of(&world);
    let ports = made(&world).await;
    let record = taken(&ports, 1).await;
    counterpart(&world, &server);
    let before = (world.guests(), world.disks());
    let mut n = 1;
    let mut reported = async |part: &str| {
        n += 1;
        let (status, test) = tried(&ports, n, &record, place(&world)).await;
        assert_eq!((status, test.verdict), (Status::Undone, TestVerdict::NotRun), "{test:?}");
        assert!(test.why.contains(part), "{part}: {test:?}");
        assert_eq!((world.guests(), world.disks()), before);
    };
    let entry = |change: (&str, &str)| {
        assert_eq!(world.by_hand("PUT", "/storage/off1-read", &[change]), 200);
    };
    entry(("namespace", "else"));
    reported("the namespace of off1-read is else, and that of off1 hf").await;
    entry(("namespace", "hf"));
    entry(("username", "pve@pbs!bk"));
    reported("which writes there").await;
    entry(("username", "pve@pbs!ro"));
    let other = KEY_FILE.replace(&key().to_string(), &vec!["aa"; 32].join(":"));
    entry(("encryption-key", &other));
    reported("the encryption-key of off1-read is").await;
    entry(("encryption-key", KEY_FILE));
    // As the entry shows it all is well: only the file is gone.
    std::fs::remove_file(find(&world.dir.path().join("pve"), "off1-read.enc")).unwrap();
    reported("the key of off1 opens it").await;
    entry(("encryption-key", KEY_FILE));
    assert_eq!(world.by_hand("DELETE", "/storage/off1-read", &[]), 200);
    reported("root runs `pvesm add pbs off1-read").await;
}
