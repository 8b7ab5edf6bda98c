//! Tests of guests that return on a replacement host.

use agentd::execute::Ports;
use agentd::model::records::BackupWhy;
use agentd::model::view::HostSnapshot;
use agentd::operation::log::Status;
use agentd::operation::{self, Backup, Begun, DuePoint, Operation};
use agentd::plan::inherited::{self, Taking, taking};
use agentd::port::pve::read::Power;
use agentd::port::store::inherited::TakenUp;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{Desired, DesiredGuest};
use holdfast_protocol::id::{KeyFingerprint, OperationId};
use holdfast_protocol::job::JobState;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Draft, Fingerprint, Target};
use holdfast_protocol::operation::{OperationKind, OperationStatus};
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::{GuestReport, GuestStatus};
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::storage::Approval;
use pve_sim::fault::admin::{Edit, apply};
use serde_json::json;

use super::drift::{Agent, report, start};
use super::jobs::{ended, lay_down, leave, order};
use super::offsite::{Server, key};
use super::world::{Controllers, World, end, guest, reported, uid, vmid};

/// A host with two guests, each backed up to a server elsewhere.
async fn two_guests(world: &World) -> Ports {
    Server::copy_of(world);
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    for n in [1, 2] {
        let done = end(&ports, n, world.provision(n)).await;
        assert_eq!(done.status(), Status::Done, "{}", reported(&done));
        let now = ports.clock.now();
        let backup = Backup {
            target: operation::Target { uid: uid(n), name: guest(n).name, vmid: number(n) },
            storage: "off1".parse().unwrap(),
            why: BackupWhy::Schedule,
            due: Some(DuePoint { tier: Tier::OffSite, point: now, begun: Begun::InTime, at: now }),
            key: Some(key()),
            leaves_out: Vec::new(),
        };
        let done = end(&ports, n + 10, Operation::Backup(backup)).await;
        assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    }
    ports
}

fn number(n: u8) -> holdfast_protocol::id::Vmid {
    vmid(299 + u32::from(n))
}

/// The agent's state is gone; with [`Gone::Guests`] so is everything on the node.
#[derive(PartialEq)]
enum Gone {
    Guests,
    StateAlone,
}

fn lose(world: &World, ports: Ports, gone: Gone) {
    drop(ports);
    let state = world.dir.path().join("agent");
    std::fs::rename(&state, world.dir.path().join("lost")).unwrap();
    for n in [1, 2].into_iter().filter(|_| gone == Gone::Guests) {
        let vmid = number(n).number();
        apply(&world.sim.node, &Edit::Stop { vmid }).unwrap();
        apply(&world.sim.node, &Edit::Unset { vmid, key: "protection".to_owned() }).unwrap();
        apply(&world.sim.node, &Edit::Destroy { vmid }).unwrap();
    }
}

/// What the hub last heard of a guest.
fn heard(n: u8, vmid: holdfast_protocol::id::Vmid) -> GuestReport {
    serde_json::from_value(json!({ "uid": uid(n), "name": guest(n).name, "vmid": vmid, "status": "managed",
        "run": "running", "volumes": [format!("tank:{vmid}/vm-{vmid}-disk-0.raw")] }))
    .unwrap()
}

/// A guest whose place a copy took, and whose backups on the server are all from before.
fn heard_after_a_swap(n: u8) -> GuestReport {
    let mut report = heard(n, vmid(350 + u32::from(n)));
    report.former_vmids = vec![number(n)];
    report
}

fn taken(list: &[GuestReport], wanted: &[DesiredGuest], without: &[String]) -> Taking {
    let document =
        json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 10, "guests": wanted });
    let document = Desired::parse(document.to_string().as_bytes()).unwrap();
    taking(Some(list), Some(&document), without).unwrap()
}

async fn take_up(agent: &Agent, taking: Taking) {
    let new = OperationId::new(uuid::Uuid::now_v7());
    let (by, now) = ("uid 0 at the box".to_owned(), agent.ports.clock.now());
    let done = agent.ports.store.take_up(taking, new, by, now).await.unwrap();
    assert!(matches!(done, TakenUp::Yes(_)), "{done:?}");
}

fn approval(key: &KeyFingerprint) -> Approval {
    let hash = vec!["86"; 32].join(":");
    serde_json::from_value(json!({ "name": "off1", "class": "slow", "role": "offsite-backup", "backend": { "pbs": {
        "server": "10.66.0.1", "datastore": "store1", "namespace": "hf", "fingerprint": hash, "key": key } } }))
    .unwrap()
}

async fn attach(agent: &Agent, from: Option<Approval>, to: Approval) {
    let act = Act::AttachStorage(args::AttachStorage { from: from.map(Box::new), to: Box::new(to) });
    let mail = order(agent, Draft { target: Target::Host {}, act }).await;
    leave(agent, &mail).await;
    let report = ended(agent, mail.id).await;
    assert_eq!(report.state, JobState::Done, "{report:?}");
}

fn says(view: &HostSnapshot, n: u8, code: ErrorCode, words: &str) -> bool {
    report(view, n).is_some_and(|report| {
        report.conditions.iter().any(|one| one.code == code && one.message.contains(words))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guests_of_a_lost_box_come_back_from_what_left_it() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::Guests);
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    let wanted = [guest(2), guest(1)];
    let list = [heard(1, vmid(300)), heard(2, vmid(301))];
    take_up(&agent, taken(&list, &wanted, &[])).await;
    agent.goal(1, wanted.to_vec()).await;

    // Before it is back no one is shown which of its backups can be tried, and no grant would change that.
    let fingerprint = Fingerprint { name: guest(1).name, customer: None, volumes: Default::default() };
    let target = Target::Guest { uid: uid(1), vmid: Some(vmid(300)), fingerprint };
    let mail = order(&agent, Draft { target, act: Act::RestoreTest(args::RestoreTest { tier: None }) }).await;
    leave(&agent, &mail).await;
    let refused = ended(&agent, mail.id).await.problem.unwrap();
    assert_eq!(refused.code, ErrorCode::Unavailable, "{refused}");
    assert!(refused.message.contains("web-1 is not back"), "{refused}");

    // No operator vouches for any backup yet: nothing is made, above all nothing empty. The same with another key than
    // was signed.
    let nothing = |view: &HostSnapshot| {
        (1..=2).all(|n| says(view, n, ErrorCode::Unavailable, "no backup of it was found"))
    };
    agent.until("told", nothing).await;
    let wrong = approval(&vec!["aa"; 32].join(":").parse().unwrap());
    attach(&agent, None, wrong.clone()).await;
    for _ in 0..2 {
        let seen = agent.view.borrow().seen_at;
        agent.until("another look", |view| view.seen_at > seen && nothing(view)).await;
    }
    assert!(agent.ports.store.backups(uid(1), 10).await.unwrap().is_empty());
    let way = agent.ports.store.way_back().await.unwrap().unwrap();
    assert!(inherited::reported(&way).unwrap().message.starts_with("0 of 2 guests"), "{way:?}");
    assert_eq!(world.guests().len(), 0, "{:?}", world.guests());

    attach(&agent, Some(wrong), approval(&key())).await;
    // The software in them was approved on the lost host; here an operator signs for it anew.
    let back = |view: &HostSnapshot, n| {
        report(view, n).is_some_and(|one| one.status == GuestStatus::Managed && one.controller.is_some())
    };
    let view = agent.until("both are back", |view| (1..=2).all(|n| back(view, n))).await;
    let mut numbers: Vec<u32> =
        (1..=2).filter_map(|n| report(&view, n)?.vmid).map(|vmid| vmid.number()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [302, 303], "each under a new number");
    let made = agent.ports.store.operation_views(10).await.unwrap();
    let made: Vec<_> = made.iter().filter(|one| one.kind == OperationKind::Provision).collect();
    let of: Vec<_> = made.iter().map(|one| (one.guest, one.status)).collect();
    let done = OperationStatus::Done;
    assert_eq!(of, [(uid(2), done), (uid(1), done)], "in the order of the document: {made:#?}");
    let held = agent.ports.store.holder(TokenHash::of(b"token 302")).await.unwrap();
    assert!(held.is_some(), "it has a token of this box's");
    let own = agent.ports.store.backups(uid(1), 10).await.unwrap();
    assert_eq!((own[0].vmid, own[0].sealed.clone()), (vmid(300), Some(key())), "{own:#?}");
    let way = agent.ports.store.way_back().await.unwrap().unwrap();
    assert_eq!((way.returned.len(), inherited::reported(&way)), (2, None), "{way:?}");
    agent.ports.store.verify_audit().await.unwrap();
    agent.stop().await;
}

/// As after a swap, or any return under another VMID, with the host lost before the next backup. The off-site backup is
/// stored under the VMID that the guest had before, and Proxmox refuses to show its content under that VMID.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_comes_back_from_a_backup_under_a_former_vmid() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::Guests);
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    attach(&agent, None, approval(&key())).await;
    take_up(&agent, taken(&[heard_after_a_swap(1)], &[guest(1)], &[])).await;
    agent.goal(1, vec![guest(1)]).await;
    let back = |view: &HostSnapshot| {
        report(view, 1).is_some_and(|one| one.status == GuestStatus::Managed && one.controller.is_some())
    };
    let view = agent.until("it is back", back).await;
    let now = report(&view, 1).unwrap();
    assert_ne!(now.vmid, Some(vmid(300)), "its former VMID is not used again");
    assert!(now.former_vmids.contains(&vmid(300)), "{now:?}");
    let own = agent.ports.store.backups(uid(1), 10).await.unwrap();
    assert_eq!((own[0].vmid, own[0].sealed.clone()), (vmid(300), Some(key())), "{own:#?}");
    let audit = agent.ports.store.audit(200).await.unwrap();
    let said = "web-1 had VMID 351 on the lost box, before that 300; taken up by";
    assert!(audit.iter().any(|line| line.detail.starts_with(said)), "{audit:#?}");
    agent.stop().await;
}

/// The lost guests were not taken up. A guest that got the VMID of one would write into the group that holds its last
/// backups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_guest_gets_no_vmid_under_which_backups_lie() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::Guests);
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let done = end(&ports, 30, world.provision(3)).await;
    assert_eq!((done.status(), done.view().vmid), (Status::Done, Some(vmid(302))), "{}", reported(&done));
}

/// The document names the VMID of a guest that was not taken up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vmid_that_the_document_names_is_asked_for_backups_too() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::Guests);
    let mut agent = start(&world).await;
    let named = |number| DesiredGuest { vmid: Some(vmid(number)), ..guest(3) };
    agent.goal(1, vec![named(301)]).await;
    let refused =
        |view: &HostSnapshot| says(view, 3, ErrorCode::Unavailable, "backups lie under VMID 301 on");
    agent.until("it is not made", refused).await;
    assert_eq!(world.guests().len(), 0, "{:?}", world.guests());
    agent.goal(2, vec![named(302)]).await;
    let made = |view: &HostSnapshot| report(view, 3).is_some_and(|one| one.status == GuestStatus::Managed);
    let view = agent.until("another VMID is free", made).await;
    assert_eq!(report(&view, 3).unwrap().vmid, Some(vmid(302)));
    agent.stop().await;
}

/// While the server that operators attached cannot be read, its content is unknown: a new guest waits, and this is
/// reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_guest_waits_for_the_list_of_a_backup_server() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::Guests);
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    attach(&agent, None, approval(&key())).await;
    let place = world.dir.path().join("pve/run/outside/10.66.0.1");
    std::fs::rename(&place, place.with_extension("away")).unwrap();
    agent.goal(1, vec![guest(3)]).await;
    let waits =
        |view: &HostSnapshot| says(view, 3, ErrorCode::Unavailable, "backup server off1 cannot be read");
    agent.until("it waits", waits).await;
    assert_eq!(world.guests().len(), 0, "{:?}", world.guests());
    agent.stop().await;
}

/// The hub, or another user of the server, names a number whose archives are another guest's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_of_another_guest_makes_no_one() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::Guests);
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    attach(&agent, None, approval(&key())).await;
    take_up(&agent, taken(&[heard(3, vmid(300))], &[guest(3)], &[])).await;
    agent.goal(1, vec![guest(3)]).await;
    // It carries the mark of another guest, whose data is not destroyed, either. It is left to a person.
    let refused = |view: &HostSnapshot| says(view, 3, ErrorCode::Parked, "does not carry the mark");
    agent.until("left for a person", refused).await;
    let guests = world.guests();
    // Not 301: other backups are stored under that.
    let owner = guests.get("302.conf").unwrap();
    assert!(owner.contains(&uid(1).to_string()) && !owner.contains(&uid(3).to_string()), "{owner}");
    assert_eq!(world.pve().guest_status(vmid(302)).await.unwrap().power, Power::Stopped, "it never ran");
    let way = agent.ports.store.way_back().await.unwrap().unwrap();
    assert!(inherited::reported(&way).unwrap().message.starts_with("0 of 1 guests"), "{way:?}");
    agent.stop().await;
}

/// The guests exist there after all: a hand-over does not make them ours, and they are not made twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_handed_over_as_lost_and_stands_here_is_touched_by_no_one() {
    let world = World::start().await;
    let ports = two_guests(&world).await;
    lose(&world, ports, Gone::StateAlone);
    let before = world.guests();
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    attach(&agent, None, approval(&key())).await;
    let wanted = [guest(1), guest(2)];
    let list = [heard(1, vmid(300)), heard(2, vmid(301))];
    take_up(&agent, taken(&list, &wanted, &[])).await;
    agent.goal(1, wanted.to_vec()).await;
    let foreign = |view: &HostSnapshot| {
        (1..=2).all(|n| says(view, n, ErrorCode::ForeignGuest, "handed over as lost"))
            && report(view, 1).is_some_and(|one| one.status == GuestStatus::Foreign)
    };
    let view = agent.until("told", foreign).await;
    // One piece of advice for each, and none that would destroy what exists here.
    let said: Vec<&str> =
        view.guests.iter().flat_map(|one| &one.conditions).map(|one| one.message.as_str()).collect();
    assert_eq!(said.iter().filter(|text| text.contains("--take-up --without")).count(), 2, "{said:#?}");
    assert!(said.iter().all(|text| !text.contains("destroy")), "{said:#?}");
    for _ in 0..2 {
        let seen = agent.view.borrow().seen_at;
        agent.until("another look", |view| view.seen_at > seen).await;
    }
    assert_eq!(world.guests(), before);
    // A person decides that this guest is not lost: from then on an operator may adopt it.
    take_up(&agent, taken(&list, &wanted, &[guest(1).name.to_string()])).await;
    agent
        .until("adopted by a signature", |view| says(view, 1, ErrorCode::ForeignGuest, "must adopt it"))
        .await;
    agent.until("the other is as it was", |view| says(view, 2, ErrorCode::ForeignGuest, "handed over")).await;
    assert_eq!(world.guests(), before);
    assert!(agent.ports.store.operation_views(10).await.unwrap().is_empty());
    agent.ports.store.verify_audit().await.unwrap();
    agent.stop().await;
}
