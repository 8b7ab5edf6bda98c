//! Tests of where a destroyed guest's disks return.

use std::path::PathBuf;

use agentd::execute::Ports;
use agentd::model::disks::Content;
use agentd::operation::log::Status;
use agentd::operation::{Backup, Operation};
use agentd::port::pve::volume::{Disk, InBackup};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Draft, Fingerprint, JobState, Target};
use serde_json::json;

use super::drift::{Agent, serves, start};
use super::jobs;
use super::missing_guest::{again, destroyed, is_back, lost_of, says_hello};
use super::world::{World, asked_backup, end, guest, reported, uid, vmid};

/// A hot volume, a bulk one that no backup holds, and one that the backups to `backup2` hold.
fn intended() -> DesiredGuest {
    let files = json!({ "name": "files", "mount": "/srv/files", "size_gib": 1, "kind": { "bulk": { "backup_to": "backup2" } } });
    let mut guest = guest(1);
    guest.volumes.push(serde_json::from_value(files).unwrap());
    guest
}

/// The host has a storage for bulk volumes, and the guest was made there.
async fn lives(world: &mut World) -> Agent {
    world.bulk = "shed";
    let mut agent = start(world).await;
    agent.goal(1, vec![intended()]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    assert_eq!(layout(world, 300).await, EACH_ON_ITS_OWN);
    agent
}

/// The ports without the agent's loop: the test runs its operation alone.
async fn alone(agent: Agent) -> Ports {
    let ports = agent.ports.clone();
    agent.stop().await;
    ports
}

/// The folder with a volume's data.
fn tree(world: &World, storage: &str, number: u32, disk: u8) -> PathBuf {
    let image = format!("pve/root/mnt/{storage}/images/{number}/vm-{number}-disk-{disk}/tree");
    world.dir.path().join(image)
}

const EACH_ON_ITS_OWN: [&str; 4] =
    ["tank: root", "tank: /srv/db in backups", "shed: /srv/media", "shed: /srv/files in backups"];

/// Each disk by its storage.
async fn layout(world: &World, number: u32) -> Vec<String> {
    let config = world.pve().guest_config(vmid(number)).await.unwrap();
    let mount = |disk: &Disk| {
        let flag = if disk.in_backup == InBackup::Yes { " in backups" } else { "" };
        format!("{}: {}{flag}", disk.volume().unwrap().storage(), disk.mount.as_deref().unwrap())
    };
    let root = format!("{}: root", config.rootfs.as_ref().unwrap().volume().unwrap().storage());
    std::iter::once(root).chain(config.mounts.values().map(mount)).collect()
}

/// Hot volumes are on fast storage again and bulk volumes on the bulk storage. Of the bulk volumes, the one that was in
/// the backup has its data. The other one is mounted, empty, and still left out of the backups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_comes_back_on_its_own_storage() {
    let mut world = World::start().await;
    let disks = {
        let ports = alone(lives(&mut world).await).await;
        for (storage, disk, file) in [("tank", 1, "rows"), ("shed", 0, "picture"), ("shed", 1, "letter")] {
            std::fs::write(tree(&world, storage, 300, disk).join(file), file).unwrap();
        }
        let taken = end(&ports, 9, Operation::Backup(asked_backup())).await;
        assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
        ports.store.backup_of(taken.id).await.unwrap().unwrap().disks.unwrap()
    };
    let contents: Vec<Content> = disks.mounts.iter().map(|mount| mount.content).collect();
    assert_eq!(contents, [Content::Held, Content::Empty, Content::Held]);

    destroyed(&world).await;
    let mut agent = start(&world).await;
    says_hello(&agent.ports, &world).await;
    agent.until("back under another number", is_back).await;
    assert_eq!(layout(&world, 301).await, EACH_ON_ITS_OWN);
    let read = |storage: &str, disk: u8, file: &str| {
        std::fs::read_to_string(tree(&world, storage, 301, disk).join(file)).ok()
    };
    assert_eq!(read("tank", 1, "rows").as_deref(), Some("rows"));
    assert_eq!(read("shed", 1, "letter").as_deref(), Some("letter"));
    assert_eq!(read("shed", 0, "picture"), None);
    let ports = alone(agent).await;
    let audit = ports.store.audit(200).await.unwrap();
    for said in [
        "its disks are made on tank, but /srv/media on shed, /srv/files on shed",
        "empty when it is back, since this backup does not hold them: /srv/media;",
    ] {
        assert!(audit.iter().any(|line| line.detail.contains(said)), "{said}: {audit:#?}");
    }

    // The next backup uses the current disks, and so does a guest that would be restored from it.
    let mut target = asked_backup().target;
    target.vmid = vmid(301);
    let more = end(&ports, 10, Operation::Backup(Backup { target, ..asked_backup() })).await;
    assert_eq!(more.status(), Status::Done, "{}", reported(&more));
    assert_eq!(ports.store.backup_of(more.id).await.unwrap().unwrap().disks, Some(disks));
}

/// A backup from before disks were recorded: their sizes are unknown, so Proxmox makes what the archive names, all on
/// the one storage, and this is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_backup_comes_back_on_one_storage_and_says_so() {
    let mut world = World::start().await;
    drop(alone(lives(&mut world).await).await);
    world.records("UPDATE backup SET disks = NULL, mounts = NULL");
    destroyed(&world).await;
    let mut agent = start(&world).await;
    says_hello(&agent.ports, &world).await;
    agent.until("back under another number", is_back).await;
    let on_one =
        ["tank: root", "tank: /srv/db in backups", "tank: /srv/media", "tank: /srv/files in backups"];
    assert_eq!(layout(&world, 301).await, on_one);
    let audit = agent.ports.store.audit(200).await.unwrap();
    let said =
        "all of them are made on tank, /srv/media, /srv/files as well, and stay there until root moves them";
    assert!(audit.iter().any(|line| line.detail.contains(said)), "{audit:#?}");
    // Its content was not known beforehand; its own list of disks shows it once it is restored.
    assert!(!audit.iter().any(|line| line.detail.contains("empty")), "{audit:#?}");
    let views = agent.ports.store.operation_views(20).await.unwrap();
    let notes: Vec<&str> =
        views.iter().flat_map(|view| &view.steps).filter_map(|step| step.note.as_deref()).collect();
    let empty = "leaves them out: /srv/media; should an old volume be left";
    assert!(notes.iter().any(|note| note.contains(empty)), "{notes:#?}");
    agent.stop().await;
}

/// The storage of bulk volumes must not be filled up either, like that of root disks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_storage_is_asked_for_what_will_lie_there() {
    let mut world = World::start().await;
    let ports = alone(lives(&mut world).await).await;
    let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    destroyed(&world).await;
    world.large_backups();
    let Operation::Provision(mut large) = again(&world, &record) else { panic!("a provision") };
    let disks = lost_of(&mut large).disks.as_mut().unwrap();
    disks.mounts[2].size = 65_536.try_into().unwrap();
    let ended = end(&ports, 2, Operation::Provision(large)).await;
    assert_eq!(ended.status(), Status::Undone, "{}", reported(&ended));
    let cause = ended.cause().unwrap();
    assert_eq!(cause.code, ErrorCode::StorageFull, "{cause}");
    for words in ["disks of it would lie on shed", "with its disks of 65537 GiB"] {
        assert!(cause.message.contains(words), "{words}: {cause}");
    }
    assert_eq!(world.restores(301).await, 0);
}

/// A copy of a guest has no disk on fast storage that belongs elsewhere; a swap leaves each disk where it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_has_its_disks_where_they_belong() {
    let mut world = World::start().await;
    let agent = lives(&mut world).await;
    jobs::lay_down(&agent).await;
    let archive = agent.ports.store.backups(uid(1), 1).await.unwrap().remove(0).archive;
    let volumes = world.pve().guest_config(vmid(300)).await.unwrap().volumes();
    let volumes = volumes.iter().map(ToString::to_string).collect();
    let fingerprint = Fingerprint { name: guest(1).name, customer: Some(guest(1).customer), volumes };
    let target = Target::Guest { uid: uid(1), vmid: Some(vmid(300)), fingerprint };
    let act = Act::Restore(args::Restore { archive: archive.as_str().to_owned().try_into().unwrap() });
    let mail = jobs::order(&agent, Draft { target, act }).await;
    jobs::leave(&agent, &mail).await;
    let done = jobs::ended(&agent, mail.id).await;
    assert_eq!(done.state, JobState::Done, "{done:?}");
    let placed = ["tank: root", "tank: /srv/db in backups", "shed: /srv/files in backups"];
    assert_eq!(layout(&world, 301).await, placed);
    agent.stop().await;
}
