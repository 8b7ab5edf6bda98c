//! Tests of adoption by signature.

use std::collections::BTreeMap;

use agentd::model::records::Place;
use agentd::port::pve::config::Switch;
use agentd::port::store::job_intake::Outcome;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Draft, Fingerprint, JobState, Target, Verb};
use holdfast_protocol::report::GuestStatus;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::{Aim, Fault};

use super::drift::{Agent, report, serves, start};
use super::jobs::{ended, found, lay_down, leave, order, signed, waits};
use super::world::{World, guest, uid, vmid};

/// A guest of ours on a node whose agent has lost its records; its mark is kept, or removed by hand.
async fn stranger(marked: Marked) -> (World, Agent) {
    let world = World::start().await;
    let mut before = start(&world).await;
    before.goal(1, vec![guest(1)]).await;
    before.until("a guest that serves", |view| serves(view, 1)).await;
    before.stop().await;
    std::fs::remove_dir_all(world.dir.path().join("agent")).unwrap();
    if marked == Marked::No {
        for key in ["tags", "description"] {
            apply(&world.sim.node, &Edit::Unset { vmid: 300, key: key.to_owned() }).unwrap();
        }
        set(&world, "tags", "web");
        apply(&world.sim.node, &Edit::Unset { vmid: 300, key: "protection".to_owned() }).unwrap();
    }
    let agent = start(&world).await;
    lay_down(&agent).await;
    (world, agent)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marked {
    Yes,
    No,
}

fn set(world: &World, key: &str, value: &str) {
    let edit = Edit::Set { vmid: 300, key: key.to_owned(), value: value.to_owned() };
    apply(&world.sim.node, &edit).unwrap();
}

/// The document's guest under the number that is the stranger's.
fn named(n: u8) -> DesiredGuest {
    DesiredGuest { vmid: Some(vmid(300)), ..guest(n) }
}

/// Configurations without what taking over writes.
fn rest(world: &World) -> BTreeMap<String, Vec<String>> {
    let ours = |line: &&str| !["#", "tags:", "protection:"].iter().any(|start| line.starts_with(start));
    let rest = |text: String| text.lines().filter(ours).map(str::to_owned).collect();
    world.guests().into_iter().map(|(name, text)| (name, rest(text))).collect()
}

/// Once managed, guest 2 gets the name and the address of its document, in a cycle that this test does not wait for.
fn by_document(mut configurations: BTreeMap<String, Vec<String>>, n: u8) -> BTreeMap<String, Vec<String>> {
    let follows = |line: &String| n == 2 && (line.starts_with("hostname:") || line.starts_with("net0:"));
    configurations.values_mut().for_each(|lines| lines.retain(|line| !follows(line)));
    configurations
}

async fn place(agent: &Agent, n: u8) -> Option<Place> {
    agent.ports.store.guest(uid(n)).await.unwrap().map(|record| record.place)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_is_taken_over_as_it_was_seen_and_nothing_else_of_it_changes() {
    for (marked, n) in [(Marked::Yes, 1), (Marked::No, 2)] {
        let (world, mut agent) = stranger(marked).await;
        let (before, disks) = (rest(&world), world.disks());
        agent.goal(1, vec![named(n)]).await;
        let view = agent.until("it may be taken over", waits(Verb::AdoptGuest)).await;
        assert_eq!(report(&view, n).unwrap().status, GuestStatus::Absent, "{marked:?}");
        let waiting = found(&view, Verb::AdoptGuest).unwrap().clone();
        let Target::Guest { fingerprint, .. } = Draft::parse(waiting.payload.as_bytes()).unwrap().target
        else {
            unreachable!("a guest is taken over")
        };
        assert_eq!((fingerprint.name.as_str(), fingerprint.volumes.len()), ("web-1", 3), "{marked:?}");
        let mail = signed(&agent, &waiting).await;
        for _ in 0..20 {
            assert!(matches!(leave(&agent, &mail).await, Outcome::Taken | Outcome::Known));
        }
        let end = ended(&agent, mail.id).await;
        assert_eq!(end.state, JobState::Done, "{marked:?}: {:?}", end.problem);
        let managed = |view: &agentd::model::view::HostSnapshot| {
            report(view, n).is_some_and(|report| report.status == GuestStatus::Managed)
        };
        agent.until("it is ours", |view| managed(view) && view.waiting.is_empty()).await;
        let Some(Place::Made { vmid: number, volumes, by }) = place(&agent, n).await else {
            panic!("{marked:?}: not on record")
        };
        assert_eq!((number, volumes.len(), by.uuid()), (vmid(300), 3, mail.id.uuid()), "{marked:?}");
        let config = agent.ports.pve.guest_config(vmid(300)).await.unwrap();
        let mark = agentd::model::mark::read(&config.tags, &config.description);
        assert_eq!(
            (mark, config.protection),
            (agentd::model::mark::Mark::Of(uid(n)), Switch::On),
            "{marked:?}"
        );
        assert_eq!(
            (by_document(rest(&world), n), world.disks()),
            (by_document(before, n), disks),
            "{marked:?}"
        );
        // A second one for the same guest finds it on record.
        let again = signed(&agent, &waiting).await;
        let Outcome::Away(why) = leave(&agent, &again).await else { panic!("{marked:?}: taken twice") };
        assert_eq!(why.code(), ErrorCode::TargetChanged, "{marked:?}");
        agent.stop().await;
    }
}

/// What no signature allows, and what is not as it was signed for: reported exactly, and nothing is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_taken_over_stays_as_it_is() {
    let mark = agentd::model::mark::tags(uid(9)).join(";");
    let cases: [(&str, &str, ErrorCode); 8] = [
        ("unprivileged", "0", ErrorCode::Forbidden),
        ("hookscript", "local:snippets/x.sh", ErrorCode::Forbidden),
        ("mp7", "/etc,mp=/host", ErrorCode::Forbidden),
        ("dev0", "/dev/kvm", ErrorCode::Forbidden),
        ("features", "nesting=1,fuse=1", ErrorCode::Forbidden),
        ("hostname", "web-9", ErrorCode::TargetChanged),
        ("unused0", "tank:300/vm-300-disk-9.raw", ErrorCode::TargetChanged),
        ("tags", &mark, ErrorCode::ForeignGuest),
    ];
    let (world, mut agent) = stranger(Marked::No).await;
    agent.goal(1, vec![named(2)]).await;
    let view = agent.until("it may be taken over", waits(Verb::AdoptGuest)).await;
    let waiting = found(&view, Verb::AdoptGuest).unwrap().clone();
    for (key, value, code) in cases {
        let was = world.guests();
        let old = was
            .values()
            .next()
            .unwrap()
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key}: ")).map(str::to_owned));
        set(&world, key, value);
        let before = (world.guests(), world.disks());
        let mail = signed(&agent, &waiting).await;
        assert!(matches!(leave(&agent, &mail).await, Outcome::Taken), "{key}");
        let end = ended(&agent, mail.id).await;
        assert_eq!((end.state, end.operation), (JobState::Failed, None), "{key}: no operation was opened");
        let problem = end.problem.unwrap();
        assert_eq!(problem.code, code, "{key}: {problem}");
        assert_eq!((world.guests(), world.disks()), before, "{key}");
        assert_eq!(place(&agent, 2).await, None, "{key}");
        match old {
            Some(old) => set(&world, key, &old),
            None => apply(&world.sim.node, &Edit::Unset { vmid: 300, key: key.to_owned() }).unwrap(),
        }
    }
    // As it was signed for: it is taken over.
    let mail = signed(&agent, &waiting).await;
    assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
    let end = ended(&agent, mail.id).await;
    assert_eq!(end.state, JobState::Done, "{:?}", end.problem);
    agent.stop().await;
}

/// Under a number that no document named for it and that is out of the range, or that belongs to no guest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_not_for_it_is_refused() {
    let (world, mut agent) = stranger(Marked::Yes).await;
    agent.goal(1, vec![named(1)]).await;
    agent.until("it may be taken over", waits(Verb::AdoptGuest)).await;
    let before = world.guests();
    for (number, code) in [(200, ErrorCode::VmidForeign), (309, ErrorCode::NotFound)] {
        let (customer, golden) = (guest(1).customer, guest(1).golden);
        let draft = Draft {
            target: Target::Guest {
                uid: uid(1),
                vmid: Some(vmid(number)),
                fingerprint: Fingerprint {
                    name: guest(1).name,
                    customer: None,
                    volumes: ["tank:1/x.raw".to_owned()].into(),
                },
            },
            act: Act::AdoptGuest(args::AdoptGuest { customer, golden }),
        };
        let mail = order(&agent, draft).await;
        assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
        let end = ended(&agent, mail.id).await;
        assert_eq!((end.state, end.problem.unwrap().code), (JobState::Failed, code), "{number}");
    }
    assert_eq!(world.guests(), before);
    agent.stop().await;
}

/// Proxmox refuses the mark, or loses its answer: the guest ends as it was, or ours, never in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_takes_no_one_over_twice() {
    for fault in [
        Fault::LostReply { on: Aim { method: "PUT".to_owned(), path: "/lxc/300/config".to_owned() } },
        Fault::LostRequest { on: Aim { method: "PUT".to_owned(), path: "/lxc/300/config".to_owned() } },
    ] {
        let (world, mut agent) = stranger(Marked::No).await;
        agent.goal(1, vec![named(2)]).await;
        let view = agent.until("it may be taken over", waits(Verb::AdoptGuest)).await;
        let mail = signed(&agent, found(&view, Verb::AdoptGuest).unwrap()).await;
        world.sim.node.faults.arm(fault.clone());
        assert!(matches!(leave(&agent, &mail).await, Outcome::Taken));
        let end = ended(&agent, mail.id).await;
        assert_eq!(end.state, JobState::Done, "{fault:?}: {:?}", end.problem);
        assert!(world.sim.node.faults.armed().is_empty(), "{fault:?} never struck");
        agent.stop().await;
    }
}
