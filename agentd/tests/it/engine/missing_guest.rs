//! Tests of a guest destroyed by hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agent_admin::setup::plan::Places;
use agentd::execute::Ports;
use agentd::model::hardware::HardwareAddress;
use agentd::model::mark;
use agentd::model::net::ResolverText;
use agentd::model::records::{BackupRecord, BackupWhy, Place, VolumeId};
use agentd::model::view::HostSnapshot;
use agentd::operation::log::Status;
use agentd::operation::progress::OperationState;
use agentd::operation::{Backup, MissingGuest, Operation, Provision, Source, Target, VmidRequest, Whence};
use agentd::port::pve::read::Power;
use agentd::port::pve::restore::{Address, BootstrapEnv, NetSpec, Placing};
use agentd::port::pve::undo::{Evidence, Made, UndoProof};
use agentd::port::pve::{RestoreRequest, Role, VmidUse};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{OperationId, StorageName};
use holdfast_protocol::protection::{BackupPolicy, Tier};
use holdfast_protocol::report::{GuestStatus, Health, Running};
use holdfast_protocol::secret::{Secret, TokenHash};
use jiff::Timestamp;
use pve_sim::fault::admin::{Edit, apply};
use serde_json::json;

use super::drift::{Agent, report, serves, start};
use super::hand::HandAt;
use super::world::{ARCHIVE, FastClock, World, end, find, guest, made, reported, uid, vmid};

/// One backup a year, on whichever of two days is not around now.
pub fn seldom(now: Timestamp) -> Vec<BackupPolicy> {
    let month = now.strftime("%m").to_string();
    let day = if matches!(month.as_str(), "05" | "06" | "07") { "12-15" } else { "06-15" };
    let schedule =
        json!({ "at": [format!("{day} 02:30")], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let local = json!({ "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 3 } }, "consistency": "crash" });
    serde_json::from_value(json!([{ "name": "usual", "tiers": { "local": local } }])).unwrap()
}

async fn one_guest(world: &World) -> Agent {
    let mut agent = start(world).await;
    agent.goal(1, vec![guest(1)]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    assert_eq!(report(&view, 1).unwrap().vmid, Some(vmid(300)));
    agent
}

/// Destroyed on the node, as a person does it: by a task that the node's list shows.
pub async fn destroyed(world: &World) {
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    apply(&world.sim.node, &Edit::Unset { vmid: 300, key: "protection".to_owned() }).unwrap();
    let pve = world.pve();
    let config = pve.guest_config(vmid(300)).await.unwrap();
    let evidence = Evidence::Mark { tags: mark::tags(uid(1)).into(), first_line: mark::first_line(uid(1)) };
    let made = Made { vmid: vmid(300), evidence, volumes: config.volumes() };
    pve.destroy(UndoProof::establish(&made, &config).unwrap()).await.unwrap();
    for _ in 0..2_000 {
        if pve.vmid_use(vmid(300)).await.unwrap() == VmidUse::Free {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it was never destroyed");
}

/// Another owner's container, made under 300 in our pool.
async fn newcomer(world: &World) {
    let request = RestoreRequest {
        vmid: vmid(300),
        archive: ARCHIVE.parse().unwrap(),
        disks: Placing::AllOn("tank".parse().unwrap()),
        pool: "holdfast".parse().unwrap(),
        net0: NetSpec {
            bridge: "vmbr0".parse().unwrap(),
            address: Address::Dhcp,
            vlan: None,
            hardware: None,
            mtu: None,
            rate: None,
            firewall: None,
        },
        resolver: ResolverText::default(),
        env: BootstrapEnv::new(Secret::new("theirs".to_owned())).unwrap(),
        hostname: "newcomer".parse().unwrap(),
        memory: 128.try_into().unwrap(),
        swap: 0.try_into().unwrap(),
        cores: 1.try_into().unwrap(),
    };
    world.pve().restore(&request).await.unwrap();
    let pve = world.pve();
    for _ in 0..2_000 {
        if pve.guest_config(vmid(300)).await.is_ok_and(|config| config.lock.is_none()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the newcomer never came");
}

/// What a controller that comes up with its old token says.
pub async fn says_hello(ports: &Ports, world: &World) {
    for _ in 0..4_000 {
        let status = world.pve().guest_status(vmid(301)).await;
        if status.is_ok_and(|status| status.power == Power::Running) {
            let hello = agentd::model::records::HelloRecord {
                reported: Default::default(),
                version: "0.1.0".to_owned(),
                health: Health::Well,
                boot_id: "second".to_owned(),
                build: None,
                at: ports.clock.now(),
            };
            return ports.store.record_hello(uid(1), hello).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it was never started again: {:#?}", ports.store.operation_views(10).await.unwrap());
}

pub fn lost_of(provision: &mut Provision) -> &mut MissingGuest {
    match &mut provision.source {
        Source::Backup(lost) => lost,
        Source::Image(_) => panic!("it is made from an image"),
    }
}

/// What the plan proposes when it was lost: made again from this backup.
pub fn again(world: &World, backup: &BackupRecord) -> Operation {
    let Operation::Provision(mut again) = world.provision(1) else { panic!("a provision") };
    let volumes = (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect();
    let by = OperationId::new(uuid::Uuid::from_u128(0));
    again.number = VmidRequest::AnyOf { range: world.policy().range, except: vec![vmid(300)] };
    let whence = Whence::ThisBox;
    let BackupRecord { archive, hardware, disks, .. } = backup.clone();
    let lost = MissingGuest { backup: archive, vmid: vmid(300), volumes, by, whence, hardware, disks };
    again.source = Source::Backup(Box::new(lost));
    Operation::Provision(again)
}

/// The seed grants the guest-making token exactly what `agentd setup` prints for such a host, line by line. So a guest
/// that comes back in this test also comes back on a real host.
#[test]
fn the_seed_grants_what_setup_prints() {
    let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<StorageName>>();
    let places = Places {
        node: "pve1".parse().unwrap(),
        pool: "holdfast".parse().unwrap(),
        scratch: None,
        guest_storages: names(&["tank", "shed"]),
        backup_storages: names(&["backup2", "off1"]),
        archive_storages: Vec::new(),
        targets: BTreeSet::new(),
        golden_vmids: vec![vmid(155), vmid(159)],
        bridge: "vmbr0".parse().unwrap(),
        vlans: Vec::new(),
    };
    let grants = places.grants(&[Role::Allocate]);
    let printed: BTreeSet<String> =
        grants.iter().map(|grant| format!("{} {}", grant.path, grant.pve_role)).collect();
    let seed = include_str!("seed/user.cfg").lines().filter_map(|line| {
        let parts: Vec<&str> = line.split(':').collect();
        match parts.as_slice() {
            ["acl", "0", path, "hf@pve,hf@pve!allocate", role, ""] => Some(format!("{path} {role}")),
            _ => None,
        }
    });
    assert_eq!(seed.collect::<BTreeSet<String>>(), printed);
}

/// The hardware address of a guest's first network.
async fn hardware(world: &World, number: u32) -> Option<HardwareAddress> {
    let config = world.pve().guest_config(vmid(number)).await.unwrap();
    HardwareAddress::of(config.nets.get(&0).unwrap())
}

/// In the middle of the night, its number free: it comes back by itself under another one, with its token and its
/// hardware address. Its backups continue in addition to those that it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_guest_comes_back_by_itself_and_its_backups_go_on() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    let first = agent.ports.store.backups(uid(1), 10).await.unwrap();
    assert_eq!(first.len(), 1);
    let had = hardware(&world, 300).await;
    assert!(had.is_some());
    assert_eq!(first[0].hardware, had, "written down with its backup");
    destroyed(&world).await;
    says_hello(&agent.ports, &world).await;
    agent.until("back under another number", is_back).await;
    assert_eq!(hardware(&world, 301).await, had, "nobody else can have it");
    let token = TokenHash::of(b"token 300");
    let holder = agent.ports.store.holder(token).await.unwrap();
    assert_eq!(holder.map(|holder| holder.record.uid), Some(uid(1)), "its token is its own");
    let target = Target { uid: uid(1), name: guest(1).name, vmid: vmid(301) };
    let storage = world.policy().backup_storage.unwrap();
    let backup =
        Backup { target, storage, why: BackupWhy::Asked, due: None, key: None, leaves_out: Vec::new() };
    // The agent is stopped, so that the test runs its operation alone.
    let ports = agent.ports.clone();
    agent.stop().await;
    let more = end(&ports, 9, Operation::Backup(backup)).await;
    assert_eq!(more.status(), Status::Done, "{}", reported(&more));
    let all = ports.store.backups(uid(1), 10).await.unwrap();
    let numbers: Vec<u32> = all.iter().map(|backup| backup.vmid.number()).collect();
    assert_eq!(numbers, [301, 300], "the newest first: {all:#?}");
    assert_eq!(all[1], first[0], "the old one is as it was");
}

/// Its calendar's next point is in the night: until then its changes since its return would be in no backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_guest_in_a_policy_is_backed_up_when_it_is_back() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    let under = vec![DesiredGuest { policy: Some("usual".parse().unwrap()), ..guest(1) }];
    agent.goal_under(1, seldom(agent.ports.clock.now()), under).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    destroyed(&world).await;
    says_hello(&agent.ports, &world).await;
    agent.until("back under another number", is_back).await;
    let is_backed_up = async {
        let mut changes = agent.ports.store.changes();
        loop {
            changes.mark_unchanged();
            let newest = agent.ports.store.backups(uid(1), 1).await.unwrap().remove(0);
            if newest.vmid == vmid(301) {
                return newest;
            }
            changes.changed().await.unwrap();
        }
    };
    let backup = tokio::time::timeout(Duration::from_secs(60), is_backed_up).await.expect("backed up");
    let returned =
        agent.ports.store.records(Generation::new(1), agent.ports.clock.now()).await.unwrap().renumbered;
    assert_eq!(
        (backup.why, backup.tier, backup.point),
        (BackupWhy::Schedule, Some(Tier::Local), returned.get(&uid(1)).map(|one| one.at))
    );
    let audit = agent.ports.store.audit(200).await.unwrap();
    assert!(audit.iter().any(|line| line.detail.contains("it came back from a loss at")), "{audit:#?}");
    agent.stop().await;
}

/// The archive could not be read beforehand, and it is not what it was: the guest made from it is removed before it is
/// marked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchanged_archive_makes_no_one() {
    let world = World::start().await;
    let ports = made(&world).await;
    let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    destroyed(&world).await;
    let file = find(&world.dir.path().join("pve"), record.archive.as_str().rsplit('/').next().unwrap());
    std::fs::copy(&world.golden, &file).unwrap();
    let before = (world.guests(), world.disks());
    let ended = end(&ports, 2, again(&world, &record)).await;
    assert_eq!(ended.status(), Status::Undone, "{}", reported(&ended));
    let cause = ended.cause().unwrap();
    assert_eq!(cause.code, ErrorCode::Forbidden, "{}", reported(&ended));
    assert!(cause.message.contains("the mark of its guest"), "{}", reported(&ended));
    assert_eq!((world.guests(), world.disks()), before, "{}", reported(&ended));
}

/// No task shows how it ended: a guest with its hardware address may still exist, so the guest comes back under another
/// one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_end_no_one_saw_comes_back_under_a_new_hardware_address() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    let had = hardware(&world, 300).await;
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    apply(&world.sim.node, &Edit::Destroy { vmid: 300 }).unwrap();
    says_hello(&agent.ports, &world).await;
    agent.until("back under another number", is_back).await;
    let has = hardware(&world, 301).await;
    assert!(has.is_some() && has != had, "{has:?}, and had {had:?}");
    agent.stop().await;
}

/// Only its configuration is gone. Its disks are newer than any backup, so no second guest is made. Once the
/// configuration is back, everything is as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_owner_disks_are_still_there_is_not_lost() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    let config = std::fs::read_to_string(find(&world.dir.path().join("pve"), "300.conf")).unwrap();
    let disks = world.disks();
    apply(&world.sim.node, &Edit::LoseConfig { vmid: 300 }).unwrap();
    let reported = |view: &HostSnapshot| {
        report(view, 1).is_some_and(|report| {
            report.status == GuestStatus::Missing
                && report.conditions.iter().any(|one| one.message.contains("gone, but not its data"))
        })
    };
    agent.until("told", reported).await;
    // Two more complete observations, after which a proof would have counted.
    for _ in 0..2 {
        let seen = agent.view.borrow().seen_at;
        agent.until("another look", |view| view.seen_at > seen).await;
    }
    let view = agent.view.borrow().clone();
    let conditions = &report(&view, 1).unwrap().conditions;
    let said = conditions.iter().find(|one| one.message.contains("gone, but not its data")).unwrap();
    for words in ["tank:300/vm-300-disk-0.raw", "/etc/pve/lxc/300.conf"] {
        assert!(said.message.contains(words), "{words}: {}", said.message);
    }
    assert!(world.guests().is_empty() && world.disks() == disks, "nothing is made, nothing is freed");
    apply(&world.sim.node, &Edit::Place { vmid: 300, config }).unwrap();
    agent.until("as it was", |view| serves(view, 1)).await;
    agent.stop().await;
}

pub fn is_back(view: &HostSnapshot) -> bool {
    report(view, 1).is_some_and(|report| {
        report.vmid == Some(vmid(301))
            && report.run == Running::Running
            && report.status == GuestStatus::Managed
    })
}

/// The newcomer is not touched, this is reported, and the guest comes back from its own backup under another number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_guest_comes_back_although_its_vmid_is_in_use() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    destroyed(&world).await;
    newcomer(&world).await;
    let theirs = world.guests().get("300.conf").cloned().unwrap();
    says_hello(&agent.ports, &world).await;
    let view = agent.until("back under another number", is_back).await;
    assert_eq!(world.guests().get("300.conf"), Some(&theirs), "the newcomer is as it was");
    assert_eq!(world.restores(300).await, 2, "ours and theirs");
    let stranger = view.guests.iter().find(|report| report.vmid == Some(vmid(300))).unwrap();
    assert_eq!(stranger.status, GuestStatus::Foreign, "and is told");
    let audit = agent.ports.store.audit(200).await.unwrap();
    assert!(audit.iter().any(|line| line.detail.contains("it is gone from VMID 300")), "{audit:#?}");
    agent.ports.store.verify_audit().await.unwrap();
    agent.stop().await;
}

/// A used number whose guest we may not see proves nothing: it may be our own guest, taken out of the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_we_may_not_see_is_not_lost() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    apply(&world.sim.node, &Edit::Stop { vmid: 300 }).unwrap();
    apply(&world.sim.node, &Edit::Destroy { vmid: 300 }).unwrap();
    let config = "arch: amd64\nhostname: theirs\nmemory: 128\nostype: debian\nrootfs: tank:300/vm-300-disk-9.raw,size=1G\nunprivileged: 1\n";
    apply(&world.sim.node, &Edit::Place { vmid: 300, config: config.to_owned() }).unwrap();
    assert_eq!(world.pve().vmid_use(vmid(300)).await.unwrap(), VmidUse::Taken);
    let before = world.guests();
    let reported = |view: &agentd::model::view::HostSnapshot| {
        report(view, 1).is_some_and(|report| {
            report.conditions.iter().any(|condition| condition.code == ErrorCode::VmidForeign)
        })
    };
    agent.until("told", reported).await;
    // Two more complete observations, after which a proof would have counted.
    for _ in 0..2 {
        let seen = agent.view.borrow().seen_at;
        agent.until("another look", |view| view.seen_at > seen).await;
    }
    assert_eq!(world.guests(), before, "nobody is touched and nothing is made");
    let place = agent.ports.store.guest(uid(1)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{place:?}");
    agent.stop().await;
}

/// That number cannot be observed now: an administrator put it back by hand, and forgot the pool.
fn put_back() -> Vec<Edit> {
    let (tags, line) = (mark::tags(uid(1)).join(";"), mark::first_line(uid(1)));
    let config = format!(
        "#{line}\narch: amd64\nhostname: web-1\nmemory: 128\nostype: debian\nrootfs: tank:300/vm-300-disk-0.raw,size=1G\ntags: {tags}\nunprivileged: 1\n"
    );
    vec![Edit::Place { vmid: 300, config }]
}

/// While its backup was restored, an administrator put the lost guest back. The restored guest is removed before it
/// ever ran, and the guest is the old one again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_back_meanwhile_is_alone() {
    for seen in [Pool::Forgotten, Pool::Kept] {
        let world = World::start().await;
        let ports = made(&world).await;
        let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
        destroyed(&world).await;
        let edits = match seen {
            Pool::Forgotten => put_back(),
            Pool::Kept => {
                newcomer(&world).await;
                let set = |key: &str, value: String| Edit::Set { vmid: 300, key: key.to_owned(), value };
                vec![set("tags", mark::tags(uid(1)).join(";")), set("description", mark::first_line(uid(1)))]
            }
        };
        let hand = HandAt::new("first_start", &world.sim.node, edits);
        let ports = Ports { failpoints: hand, ..ports };
        let ended = end(&ports, 2, again(&world, &record)).await;
        assert_eq!(ended.status(), Status::Undone, "{}", reported(&ended));
        let cause = ended.cause().unwrap();
        assert_eq!(cause.code, ErrorCode::VmidForeign, "{}", reported(&ended));
        assert_eq!(world.guests().keys().collect::<Vec<_>>(), ["300.conf"], "{}", reported(&ended));
        let place = ports.store.guest(uid(1)).await.unwrap().unwrap().place;
        assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{place:?}");
    }
}

/// Later than that it is reported, with what a person can do about it; neither of the two is touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_back_later_is_reported() {
    let world = World::start().await;
    let mut agent = one_guest(&world).await;
    destroyed(&world).await;
    newcomer(&world).await;
    says_hello(&agent.ports, &world).await;
    agent.until("back under another number", is_back).await;
    for (key, value) in [("tags", mark::tags(uid(1)).join(";")), ("description", mark::first_line(uid(1)))] {
        apply(&world.sim.node, &Edit::Set { vmid: 300, key: key.to_owned(), value }).unwrap();
    }
    let before = world.guests();
    let counterpart = |view: &HostSnapshot| {
        let stranger = view.guests.iter().find(|report| report.vmid == Some(vmid(300)));
        stranger.is_some_and(|report| {
            report.status == GuestStatus::Foreign
                && report
                    .conditions
                    .iter()
                    .any(|one| one.message.contains("which is guest 301 by our records"))
        })
    };
    agent.until("told", counterpart).await;
    assert!(is_back(&agent.view.borrow()));
    assert_eq!(world.guests(), before);
    agent.stop().await;
}

/// It waits rather than fill a storage that others use, and is still lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_would_fill_its_storage_waits() {
    let world = World::start().await;
    let ports = made(&world).await;
    let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    destroyed(&world).await;
    world.large_backups();
    let Operation::Provision(mut large) = again(&world, &record) else { panic!("a provision") };
    lost_of(&mut large).disks.as_mut().unwrap().rootfs.size = 65_536.try_into().unwrap();
    let ended = end(&ports, 2, Operation::Provision(large)).await;
    assert_eq!(ended.status(), Status::Undone, "{}", reported(&ended));
    let cause = ended.cause().unwrap();
    assert_eq!(cause.code, ErrorCode::StorageFull, "{cause}");
    assert!(cause.message.contains("with its disks of 65538 GiB"), "{cause}");
    assert_eq!(world.restores(301).await, 0);
    let place = ports.store.guest(uid(1)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(300)), "{place:?}");
}

async fn kept(ports: &Ports, ended: &OperationState) {
    assert_eq!(ended.status(), Status::Done, "{}", reported(ended));
    let place = ports.store.guest(uid(1)).await.unwrap().unwrap().place;
    assert!(matches!(place, Place::Made { vmid: at, .. } if at == vmid(301)), "{place:?}");
}

/// What is reported about it until its hello arrives.
async fn said(ports: &Ports) -> Option<String> {
    let records = ports.store.records(Generation::new(1), ports.clock.now()).await.unwrap();
    records.silent.get(&uid(1)).cloned()
}

/// It serves customers from its start on, whether its controller calls or not. It is kept, and reported by its number
/// until it says hello.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_back_silent_is_kept_and_reported() {
    for whence in [Whence::ThisBox, Whence::LostBox] {
        let world = World::start().await;
        let ports = made(&world).await;
        let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
        destroyed(&world).await;
        let ports = Ports { clock: Arc::new(FastClock::times(150)), ..ports };
        let Operation::Provision(mut lost) = again(&world, &record) else { panic!("a provision") };
        lost_of(&mut lost).whence = whence;
        let ended = end(&ports, 2, Operation::Provision(lost)).await;
        kept(&ports, &ended).await;
        let status = ports.pve.guest_status(vmid(301)).await.unwrap();
        assert_eq!(status.power, Power::Running, "{}", reported(&ended));
        assert!(
            ports.pve.guest_config(vmid(301)).await.unwrap().env.is_none(),
            "no bootstrap token is left in it"
        );
        let condition = ended.conditions().next().unwrap();
        assert_eq!(condition.code, ErrorCode::ControllerSilent, "{condition}");
        assert!(condition.message.contains("guest 301, and no hello came"), "{condition}");
        assert_eq!(
            condition.message.contains("no other is handed out"),
            whence == Whence::LostBox,
            "{condition}"
        );
        assert_eq!(said(&ports).await.as_ref(), Some(&condition.message));
        says_hello(&ports, &world).await;
        assert_eq!(said(&ports).await, None);
    }
}

/// A guest that stopped by itself before its hello ran as well: its disks are kept, and the plan decides on starting
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_back_and_falls_over_is_kept() {
    let world = World::start().await;
    let ports = made(&world).await;
    let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    destroyed(&world).await;
    let hand = HandAt::new("await_hello", &world.sim.node, vec![Edit::Stop { vmid: 301 }]);
    let ports = Ports { failpoints: hand, ..ports };
    let ended = end(&ports, 2, again(&world, &record)).await;
    kept(&ports, &ended).await;
    assert!(said(&ports).await.unwrap().contains("the guest stopped before"), "{}", reported(&ended));
    assert!(world.guests().contains_key("301.conf"));
}

/// One that never had a controller, such as an adopted guest, is not waited for, and nothing is reported about that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_never_spoke_is_back_without_a_word() {
    let world = World::start().await;
    let ports = made(&world).await;
    let record = ports.store.backups(uid(1), 1).await.unwrap().remove(0);
    destroyed(&world).await;
    world.records("UPDATE guest SET token_generation = 0, hello_at = NULL, hello_version = NULL, hello_health = NULL, hello_boot_id = NULL, hello_build = NULL");
    let ended = end(&ports, 2, again(&world, &record)).await;
    kept(&ports, &ended).await;
    assert!(reported(&ended).contains("never had a controller"), "{}", reported(&ended));
    assert_eq!((ended.conditions().count(), said(&ports).await), (0, None));
}

/// Whether the guest that came back is in our pool.
#[derive(Clone, Copy)]
enum Pool {
    Kept,
    Forgotten,
}
