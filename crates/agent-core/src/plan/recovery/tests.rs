//! Tests of recovery plans for every stop and every observation.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::report::Running;

use super::*;
use crate::model::net::ResolverText;
use crate::model::observed::{FactTimes, GuestFacts, ObservedGuest, Protection, Sight, Template};
use crate::operation::log::{AfterFailure, Entry, Event};
use crate::operation::progress::ReplayError;
use crate::operation::{Operation, Start, Target};

const UPID: &str = "UPID:pve1:0004EDC4:001D4BFD:6A60F2EB:vzstart:300:hf@pve!operate:";

fn uid() -> GuestUid {
    "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap()
}

fn vmid() -> Vmid {
    Vmid::try_from(300).unwrap()
}

fn at() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn left_open(n: u128, events: Vec<Event>) -> Result<OperationState, ReplayError> {
    let target = Target { uid: uid(), name: "web-1".parse().unwrap(), vmid: vmid() };
    let numbered = (1..).zip(events).map(|(number, event)| Entry { number, at: at(), event });
    let id = OperationId::new(uuid::Uuid::from_u128(n));
    OperationState::replay(
        OperationState::new(id, Operation::Start(Start(target)), at()),
        &numbered.collect::<Vec<_>>(),
    )
}

fn problem() -> ErrorBody {
    ErrorBody::new(ErrorCode::Unavailable, "no bridge")
}

/// One story per place: its name, and what the journal says.
fn stories() -> Vec<(&'static str, Vec<Event>)> {
    let begun = || vec![Event::Begun, Event::Intended { step: 0 }];
    let with = |more: Vec<Event>| begun().into_iter().chain(more).collect::<Vec<_>>();
    let failed = || Event::Failed { step: 0, problem: problem(), then: AfterFailure::GiveUp };
    let succeeded = |step| Event::Succeeded { step, facts: Vec::new(), note: None };
    vec![
        ("queued", vec![]),
        ("before a step", vec![Event::Begun]),
        ("during a step", begun()),
        ("during a step, its task known", with(vec![Event::Posted { step: 0, upid: UPID.to_owned() }])),
        ("a step failed", with(vec![failed()])),
        (
            "during an undo",
            with(vec![failed(), Event::UndoBegun { problem: problem() }, Event::UndoIntended { step: 0 }]),
        ),
        ("all done", with(vec![succeeded(0), Event::Intended { step: 1 }, succeeded(1)])),
    ]
}

fn host(mark: Mark) -> Observed {
    let facts = GuestFacts {
        mark,
        cores: None,
        memory_mib: 512,
        swap_mib: 0,
        cpu: crate::model::cpu::CpuFacts::default(),
        rootfs_bytes: None,
        rootfs_storage: None,
        mounts: BTreeMap::new(),
        volumes: BTreeSet::new(),
        detached: BTreeSet::new(),
        protection: Protection::On,
        name: None,
        net: None,
        resolver: ResolverText::default(),
        more_nets: BTreeSet::new(),
        template: Template::No,
        address: None,
        hardware: BTreeSet::new(),
        bridges: BTreeSet::new(),
        filter: crate::model::filter::FilterSeen::NotUsed,
        alien: None,
    };
    let guest = ObservedGuest {
        vmid: vmid(),
        name: "web-1".to_owned(),
        run: Running::Running,
        up_s: 60,
        lock: None,
        detail: Detail::Known(Box::new(facts)),
    };
    Observed {
        at: at(),
        guests: BTreeMap::from([(vmid(), guest)]),
        times: FactTimes::default(),
        vmids: BTreeMap::new(),
        storages: BTreeMap::new(),
        sight: Sight::Proved,
        node: None,
        lost: BTreeMap::new(),
        orphaned: BTreeMap::new(),
        goldens: BTreeMap::new(),
        golden_roots: BTreeMap::new(),
        listings: BTreeMap::new(),
        controllers: BTreeMap::new(),
        missing_controllers: BTreeMap::new(),
        bridge_mtu: None,
        bridge_net: crate::model::addresses::BridgeNet::default(),
    }
}

#[test]
fn each_place_a_journal_can_stop_at_in_each_world() {
    let (ours, strangers) = (host(Mark::Of(uid())), host(Mark::None));
    let found = Task::Found(UPID.to_owned());
    let worlds = [
        ("no task of ours", Some(&ours), Task::None),
        ("a task of ours", Some(&ours), found),
        ("Proxmox is away", None, Task::Unknown("connection refused".to_owned())),
        ("the number is a stranger's", Some(&strangers), Task::None),
    ];
    let mut text = String::new();
    for (world, observed, task) in worlds {
        text.push_str(&format!("# {world}\n"));
        for (n, (name, events)) in (1..).zip(stories()) {
            let open = left_open(n, events).unwrap();
            let tasks = BTreeMap::from([(open.id, task.clone())]);
            let plan =
                recovery(std::slice::from_ref(&open), StartObservation { observed, tasks: &tasks }, at());
            let line = plan.lines.first().unwrap();
            text.push_str(&format!("{name}: {line}: {}\n", line.recover));
            let kept: RecoveryPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
            assert_eq!(kept, plan, "it is kept as it was");
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_plan_as_the_log_reports_it() {
    let tasks = BTreeMap::new();
    let seen = StartObservation { observed: None, tasks: &tasks };
    let open: Vec<OperationState> =
        (1..).zip(stories()).take(2).map(|(n, (_, events))| left_open(n, events).unwrap()).collect();
    insta::assert_snapshot!(format!("{}{}", recovery(&[], seen, at()), recovery(&open, seen, at())), @r"
    recovery: nothing was left open
    recovery: 2 operations were left open
      start of web-1 (300): it waits in its lane, as before
      start of web-1 (300) at start: it goes on with this step
    ");
}

#[test]
fn a_journal_that_cannot_be_is_refused_at_its_first_wrong_entry() {
    let twice = left_open(1, vec![Event::Begun, Event::Begun]).unwrap_err();
    assert!(matches!(twice, ReplayError::Illegal { number: 2, .. }));
    let skipped = left_open(1, vec![Event::Begun, Event::Intended { step: 1 }]).unwrap_err();
    assert!(matches!(skipped, ReplayError::Illegal { number: 2, .. }));
    let parked = Event::Parked { problem: problem(), remedy: "look".to_owned() };
    let elsewhere = Event::Reopened { at: Status::Before(1), by: "root".to_owned() };
    let moved = left_open(1, vec![Event::Begun, Event::Intended { step: 0 }, parked, elsewhere]).unwrap_err();
    assert!(
        matches!(moved, ReplayError::Illegal { number: 4, .. }),
        "it goes on where it stood, nowhere else"
    );
}
