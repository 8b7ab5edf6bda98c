//! Tests of guests that are put on a newer image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentd::execute::Ports;
use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::mark::{self, Mark};
use agentd::model::net::ResolverText;
use agentd::model::records::{BackupWhy, CopyStage, Origin, Place, VolumeId};
use agentd::model::token_reuse::PresentedToken;
use agentd::operation::log::Status;
use agentd::operation::rebase_guest::{DataVolume, GuestSizes, Successor};
use agentd::operation::{Backup, DiscardCopy, Image, Operation, RebaseGuest, Stop, VmidRequest};
use agentd::port::pve::config::Switch;
use agentd::port::pve::read::Power;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{JobId, OperationId};
use holdfast_protocol::secret::TokenHash;
use pve_sim::fault::admin::{Edit, apply};

use super::hand::HandAt;
use super::world::{
    Controllers, FastClock, World, end, find, guest, made, reported, snapshot, target, uid, vmid,
};

fn disk(n: u32) -> VolumeId {
    VolumeId::new(format!("tank:300/vm-300-disk-{n}.raw"))
}

/// What operators sign: this guest, with its three volumes, on this image.
fn rebase(world: &World, backup: bool) -> Operation {
    let (target, policy) = (target(), world.policy());
    let seen = SignedState {
        uid: target.uid,
        vmid: target.vmid,
        name: target.name.clone(),
        volumes: (0..3).map(disk).collect(),
    };
    let golden = policy.goldens.values().next().unwrap();
    let sha256 = golden.sha256.clone().unwrap();
    let allows = Allows::RebaseGuest { version: "2026.12.1".parse().unwrap(), sha256: sha256.clone() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(9)), allows, seen);
    let image = Image { archive: golden.archive.clone(), sha256, file: golden.file.clone() };
    let size = guest(1).size;
    let successor = Successor {
        number: VmidRequest::AnyOf { range: policy.range, except: vec![vmid(300)] },
        pool: policy.pool,
        storage: policy.storage,
        bridge: policy.bridge,
        sizes: GuestSizes {
            memory: size.memory_mib,
            swap: size.swap_mib,
            cores: Some(size.cores),
            rootfs: size.rootfs_gib,
        },
        resolver: ResolverText { servers: Some("10.66.0.254".to_owned()), search: None },
    };
    let moves = [(0, "/srv/db", 1), (1, "/srv/media", 2)];
    let moves =
        moves.map(|(slot, path, n)| DataVolume { slot, path: path.parse().unwrap(), volume: disk(n) });
    let backup = backup.then(|| Backup {
        target,
        storage: "backup2".parse().unwrap(),
        why: BackupWhy::First,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    });
    let rebase = RebaseGuest::new(warrant, image, successor, moves.into(), backup).unwrap();
    Operation::RebaseGuest(Box::new(rebase))
}

/// A guest that runs, 300, with data of its own on each disk.
async fn with_data(world: &World) -> Ports {
    let ports = made(world).await;
    for n in 0..3 {
        let tree = find(&world.dir.path().join("pve"), &format!("vm-300-disk-{n}")).join("tree");
        std::fs::write(tree.join("state"), format!("data {n}")).unwrap();
    }
    ports
}

/// The data by the path of its mount; that of the root disk by `/`.
async fn data(world: &World, ports: &Ports, number: u32) -> BTreeMap<String, String> {
    let config = ports.pve.guest_config(vmid(number)).await.unwrap();
    let mounts = config.mounts.values().map(|disk| (disk.mount.clone().unwrap(), disk));
    let all = mounts.chain(config.rootfs.iter().map(|disk| ("/".to_owned(), disk)));
    let read = |(path, disk): (String, &agentd::port::pve::volume::Disk)| {
        let id = disk.volume()?.to_string();
        let name = id.rsplit('/').next()?.trim_end_matches(".raw").to_owned();
        let file = find(&world.dir.path().join("pve"), &name).join("tree/state");
        Some((path, std::fs::read_to_string(file).ok()?))
    };
    all.filter_map(read).collect()
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

const ALL: [(&str, &str); 3] = [("/", "data 0"), ("/srv/db", "data 1"), ("/srv/media", "data 2")];

async fn power(ports: &Ports, number: u32) -> Power {
    ports.pve.guest_status(vmid(number)).await.unwrap().power
}

async fn shown(ports: &Ports, number: u32) -> Option<PresentedToken> {
    let token = TokenHash::of(format!("token {number}").as_bytes());
    ports.store.holder(token).await.unwrap().map(|holder| holder.shown)
}

/// What waits a quarter of an hour waits two seconds.
fn quick(ports: Ports) -> Ports {
    Ports { clock: Arc::new(FastClock::times(400)), ..ports }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_comes_to_a_newer_image_with_its_volumes_and_the_former_is_kept() {
    let world = World::start().await;
    let ports = with_data(&world).await;
    let was = ports.pve.guest_config(vmid(300)).await.unwrap();
    let controllers = Controllers::start(&ports);
    let done = end(&ports, 3, rebase(&world, true)).await;
    drop(controllers);
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));

    // The new container is the guest: identity, sizes, volumes with what is in them.
    let now = ports.pve.guest_config(vmid(301)).await.unwrap();
    assert_eq!(mark::read(&now.tags, &now.description), Mark::Of(uid(1)));
    assert_eq!((now.hostname.as_deref(), now.protection), (Some("web-1"), Switch::On));
    assert_eq!((now.memory_mib, now.swap_mib, now.cores), (256, 64, Some(2)));
    assert_eq!(now.resolver().servers.as_deref(), Some("10.66.0.254"));
    assert!(now.env.is_none(), "the used claim is out");
    assert_eq!(power(&ports, 301).await, Power::Running);
    assert_eq!(data(&world, &ports, 301).await, texts(&ALL[1..]), "its root disk is the image's");
    let backs = |config: &agentd::port::pve::GuestConfig| {
        let backs = config.mounts.iter().map(|(slot, disk)| (*slot, disk.in_backup));
        backs.collect::<Vec<_>>()
    };
    assert_eq!(backs(&now), backs(&was), "what backups take stays so");

    // What was the guest is kept with its root disk, unplugged.
    let former = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!(mark::read(&former.tags, &former.description), Mark::Copy { of: uid(1), by: done.id });
    assert_eq!((former.hostname.as_deref(), former.protection), (Some("web-1-former"), Switch::On));
    assert!(former.nets[&0].contains("link_down=1") && former.mounts.is_empty());
    assert_eq!(power(&ports, 300).await, Power::Stopped);
    assert_eq!(data(&world, &ports, 300).await, texts(&ALL[..1]));

    // Our records: number, image, volumes, copy, token, and a backup of before and of after.
    let record = ports.store.guest(uid(1)).await.unwrap().unwrap();
    let volumes: BTreeSet<String> = now.volumes().iter().map(ToString::to_string).collect();
    let Place::Made { vmid: at, volumes: ours, .. } = &record.place else { panic!("{record:?}") };
    assert_eq!((*at, ours.iter().map(ToString::to_string).collect()), (vmid(301), volumes));
    assert_eq!(record.golden.as_str(), "2026.12.1");
    let copies = ports.store.copies().await.unwrap();
    assert_eq!((copies.len(), copies[0].vmid, &copies[0].origin), (1, vmid(300), &Origin::Rebased));
    assert!(matches!(&copies[0].stage, CopyStage::Made { volumes } if *volumes == [disk(0)].into()));
    assert_eq!(
        shown(&ports, 300).await,
        Some(PresentedToken::Former),
        "plugged in, it would freeze the guest"
    );
    assert_eq!(shown(&ports, 301).await, Some(PresentedToken::Current));
    let numbers: Vec<u32> =
        ports.store.backups(uid(1), 10).await.unwrap().iter().map(|backup| backup.vmid.number()).collect();
    assert_eq!(numbers.iter().filter(|number| **number == 300).count(), 2, "{numbers:?}");
    assert_eq!(numbers.iter().filter(|number| **number == 301).count(), 1, "{numbers:?}");
    ports.store.verify_audit().await.unwrap();
}

/// The end of what was kept, as an operator saw it.
fn discard(made_by: OperationId) -> Operation {
    let state = |number: u32, name: &str, volumes: BTreeSet<VolumeId>| SignedState {
        uid: uid(1),
        vmid: vmid(number),
        name: name.parse().unwrap(),
        volumes,
    };
    let copy = Box::new(state(300, "web-1-former", [disk(0)].into()));
    let guest = state(301, "web-1", BTreeSet::new());
    let warrant =
        Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(10)), Allows::DiscardCopy { copy }, guest);
    Operation::DiscardCopy(Box::new(DiscardCopy::new(warrant, made_by).unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_ends_by_its_own_signature_and_the_guest_stays() {
    let world = World::start().await;
    let ports = with_data(&world).await;
    let controllers = Controllers::start(&ports);
    let rebased = end(&ports, 3, rebase(&world, false)).await;
    drop(controllers);
    assert_eq!(rebased.status(), Status::Done, "{}", reported(&rebased));
    let place = || async { ports.store.guest(uid(1)).await.unwrap().unwrap().place };
    let (was, kept) = (place().await, ports.pve.guest_config(vmid(300)).await.unwrap());

    // By another operation's mark, and while somebody runs it: nothing is done, and nobody has to look at the guest.
    let others = end(&ports, 4, discard(OperationId::new(uuid::Uuid::from_u128(99)))).await;
    assert_eq!(others.status(), Status::Undone, "{}", reported(&others));
    apply(&world.sim.node, &Edit::Start { vmid: 300 }).unwrap();
    let runs = end(&ports, 5, discard(rebased.id)).await;
    assert_eq!(runs.status(), Status::Undone, "{}", reported(&runs));
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    assert_eq!(ports.pve.guest_config(vmid(300)).await.unwrap().digest, kept.digest);

    let done = end(&ports, 6, discard(rebased.id)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    assert!(!world.guests().contains_key("300.conf"), "{:?}", world.guests());
    assert_eq!(world.disks().iter().filter(|disk| disk.contains("-300-")).count(), 0);
    assert_eq!(place().await, was, "the guest is where it was");
    assert_eq!(ports.store.copies().await.unwrap(), []);
    assert_eq!(
        (data(&world, &ports, 301).await, power(&ports, 301).await),
        (texts(&ALL[1..]), Power::Running)
    );
    ports.store.verify_audit().await.unwrap();
}

/// All is as before: data, power, records, the token; and nothing is left of the new container.
async fn as_before(world: &World, ports: &Ports, runs: Power, said: &str) {
    let config = ports.pve.guest_config(vmid(300)).await.unwrap();
    assert_eq!(mark::read(&config.tags, &config.description), Mark::Of(uid(1)), "{said}");
    assert_eq!((config.hostname.as_deref(), config.protection), (Some("web-1"), Switch::On), "{said}");
    assert!(config.nets.values().all(|net| !net.contains("link_down")), "{said}");
    assert_eq!(data(world, ports, 300).await, texts(&ALL), "{said}");
    assert_eq!(power(ports, 300).await, runs, "{said}");
    assert!(!world.guests().contains_key("301.conf"), "{said}");
    assert_eq!(world.disks().iter().filter(|disk| disk.contains("-301-")).count(), 0, "{said}");
    let record = ports.store.guest(uid(1)).await.unwrap().unwrap();
    let volumes: BTreeSet<String> = config.volumes().iter().map(ToString::to_string).collect();
    let Place::Made { vmid: at, volumes: ours, .. } = &record.place else { panic!("{record:?}") };
    assert_eq!((*at, ours.iter().map(ToString::to_string).collect()), (vmid(300), volumes), "{said}");
    assert_eq!(
        (record.golden.as_str(), ports.store.copies().await.unwrap().len()),
        ("2026.11.1", 0),
        "{said}"
    );
    assert_eq!(shown(ports, 300).await, Some(PresentedToken::Current), "{said}");
    ports.store.verify_audit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_container_that_says_nothing_gives_all_of_it_back() {
    for (stopped, runs) in [(false, Power::Running), (true, Power::Stopped)] {
        let world = World::start().await;
        let ports = quick(with_data(&world).await);
        if stopped {
            let stopped = end(&ports, 2, Operation::Stop(Stop(target()))).await;
            assert_eq!(stopped.status(), Status::Done, "{}", reported(&stopped));
        }
        let undone = end(&ports, 3, rebase(&world, false)).await;
        assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
        assert!(undone.cause().unwrap().message.contains("no hello"), "{}", reported(&undone));
        as_before(&world, &ports, runs, &reported(&undone)).await;
    }
}

/// Its controller spoke and traded its claim, and then it fell over: the guest's own token is its token again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_ended_is_given_back_with_everything_else() {
    let world = World::start().await;
    drop(with_data(&world).await);
    let hand = HandAt::new("confirm_placed", &world.sim.node, vec![Edit::Stop { vmid: 301 }]);
    let ports = world.ports(hand).await;
    let controllers = Controllers::start(&ports);
    let undone = end(&ports, 3, rebase(&world, false)).await;
    drop(controllers);
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!(shown(&ports, 301).await, Some(PresentedToken::Former), "{}", reported(&undone));
    as_before(&world, &ports, Power::Running, &reported(&undone)).await;
}

/// What is not as it was signed for is refused before anything is made, or as soon as it is seen; the guest runs on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_as_signed_for_changes_nothing() {
    let set = |key: &str, value: &str| Edit::Set { vmid: 300, key: key.to_owned(), value: value.to_owned() };
    for step in ["choose_vmid", "verify_rebase"] {
        let (edit, code) = (set("hostname", "web-2"), ErrorCode::TargetChanged);
        let world = World::start().await;
        drop(with_data(&world).await);
        let ports = world.ports(HandAt::new(step, &world.sim.node, vec![edit])).await;
        let refused = end(&ports, 3, rebase(&world, false)).await;
        assert_eq!(refused.status(), Status::Undone, "{step}: {}", reported(&refused));
        assert_eq!(refused.cause().unwrap().code, code, "{step}: {}", reported(&refused));
        assert_eq!(data(&world, &ports, 300).await, texts(&ALL), "{step}");
        assert_eq!(power(&ports, 300).await, Power::Running, "{step}");
        assert!(!world.guests().contains_key("301.conf"), "{step}");
    }
    let world = World::start().await;
    let ports = with_data(&world).await;
    let taken = end(&ports, 2, snapshot("before", 3_600)).await;
    assert_eq!(taken.status(), Status::Done, "{}", reported(&taken));
    let refused = end(&ports, 3, rebase(&world, false)).await;
    assert_eq!(refused.status(), Status::Undone, "{}", reported(&refused));
    assert_eq!(refused.cause().unwrap().code, ErrorCode::Locked, "{}", reported(&refused));
    assert_eq!((world.restores(301).await, power(&ports, 300).await), (0, Power::Running));
}

/// Somebody protects the new container before its volumes came, so that it takes none: what moved goes back, and a volume that
/// did not stays where it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moved_goes_back_when_the_next_one_cannot() {
    let world = World::start().await;
    drop(with_data(&world).await);
    let node = Arc::clone(&world.sim.node);
    let hand = HandAt::doing("move_volume", move || {
        let key = "protection".to_owned();
        apply(&node, &Edit::Set { vmid: 301, key, value: "1".to_owned() }).unwrap();
    });
    let ports = world.ports(hand).await;
    let undone = end(&ports, 3, rebase(&world, false)).await;
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    as_before(&world, &ports, Power::Running, &reported(&undone)).await;
}
