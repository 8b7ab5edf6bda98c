//! Tests of the order of documents' and guests' operations.

use holdfast_protocol::id::Vmid;
use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::model::records::{BackupWhy, OpenOperation};
use crate::model::request::Ask;
use crate::operation::{Backup, Operation, Start, Stop, Target};

fn uid(n: u32) -> GuestUid {
    GuestUid::new(Uuid::from_u128(u128::from(n)))
}

fn id(n: u64) -> OperationId {
    OperationId::new(Uuid::from_u128(u128::from(n)))
}

fn target(n: u32) -> Target {
    Target { uid: uid(n), name: format!("web-{n}").parse().unwrap(), vmid: Vmid::try_from(300 + n).unwrap() }
}

fn action(operation: Operation) -> Action {
    Action { operation, reason: "a test".to_owned(), growth: None }
}

fn backup(n: u32) -> Action {
    let storage = "backup2".parse().unwrap();
    action(Operation::Backup(Backup {
        target: target(n),
        storage,
        why: BackupWhy::Asked,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    }))
}

fn queued(serial: u64, guest: u32, ask: Ask) -> QueuedRequest {
    QueuedRequest { serial, id: id(serial), guest: uid(guest), ask, asked_at: Timestamp::UNIX_EPOCH }
}

fn asked(serial: u64, guest: u32) -> RequestDecision {
    RequestDecision { request: id(serial), answer: Answer::Begin(Box::new(backup(guest))) }
}

fn records(requests: Vec<QueuedRequest>) -> Records {
    let last_request = requests.iter().map(|request| request.serial).max().unwrap_or(0);
    Records { requests, last_request, ..Records::default() }
}

fn origins(turns: &Turns) -> Vec<Origin> {
    turns.begin.iter().map(|begin| begin.origin).collect()
}

#[test]
fn a_goal_of_the_document_waits_for_the_requests_before_it_and_no_others() {
    let mut arrivals = Arrivals::default();
    let start = || vec![action(Operation::Start(Start(target(1))))];
    // Two requests are there when the document's is first seen.
    let before =
        records(vec![queued(1, 1, Ask::Backup { tier: None }), queued(2, 1, Ask::Backup { tier: None })]);
    assert_eq!(origins(&arrivals.choose(start(), &[asked(1, 1)], &before)), [Origin::Request(id(1))]);
    // The first is under way; the plan has no request for a busy guest. More is requested.
    let open = OpenOperation { id: id(1), kind: OperationKind::Backup, guest: uid(1) };
    let mut busy =
        records(vec![queued(2, 1, Ask::Backup { tier: None }), queued(3, 1, Ask::Backup { tier: None })]);
    busy.open.push(open);
    assert_eq!(origins(&arrivals.choose(Vec::new(), &[], &busy)), []);
    let free =
        records(vec![queued(2, 1, Ask::Backup { tier: None }), queued(3, 1, Ask::Backup { tier: None })]);
    assert_eq!(origins(&arrivals.choose(start(), &[asked(2, 1)], &free)), [Origin::Request(id(2))]);
    let later =
        records(vec![queued(3, 1, Ask::Backup { tier: None }), queued(4, 1, Ask::Backup { tier: None })]);
    assert_eq!(origins(&arrivals.choose(start(), &[asked(3, 1)], &later)), [Origin::Document]);
    // Once it is not wanted any more its place is gone.
    assert_eq!(origins(&arrivals.choose(Vec::new(), &[asked(3, 1)], &later)), [Origin::Request(id(3))]);
    assert_eq!(origins(&arrivals.choose(start(), &[asked(3, 1)], &later)), [Origin::Request(id(3))]);
}

#[test]
fn a_stop_ends_queued_snapshots_and_nothing_else() {
    let snapshot = |name: &str| Ask::Snapshot { name: name.parse().unwrap(), keep_s: None };
    let records = records(vec![
        queued(1, 1, snapshot("a1")),
        queued(2, 1, Ask::Backup { tier: None }),
        queued(3, 1, snapshot("a2")),
        queued(4, 2, snapshot("a1")),
    ]);
    let stop = vec![action(Operation::Stop(Stop(target(1))))];
    let turns = Arrivals::default().choose(stop, &[asked(1, 1), asked(4, 2)], &records);
    assert_eq!(turns.preempted, [(id(1), "stop"), (id(3), "stop")]);
    assert_eq!(origins(&turns), [Origin::Request(id(4)), Origin::Document], "the ended one does not begin");
}

#[test]
fn a_goal_that_someone_asked_for_is_asked_once() {
    let records = records(vec![queued(1, 1, Ask::Backup { tier: None })]);
    let turns = Arrivals::default().choose(vec![backup(1)], &[asked(1, 1)], &records);
    assert_eq!(origins(&turns), [Origin::Request(id(1))]);
}

#[test]
fn other_guests_go_on() {
    let records = records((1..=4).map(|n| queued(u64::from(n), n, Ask::Backup { tier: None })).collect());
    let start = |n: u32| Answer::Begin(Box::new(action(Operation::Start(Start(target(n))))));
    let all: Vec<RequestDecision> =
        (1..=4).map(|n| RequestDecision { request: id(n.into()), answer: start(n) }).collect();
    let turns = Arrivals::default().choose(Vec::new(), &all, &records);
    assert_eq!(origins(&turns), [1, 2, 3, 4].map(|n| Origin::Request(id(n))));
    // Backups are taken one after another. What the document wants of a guest whose backup waits continues.
    let backups: Vec<RequestDecision> = (1..=4).map(|n| asked(u64::from(n), n)).collect();
    let start = vec![action(Operation::Start(Start(target(3))))];
    let turns = Arrivals::default().choose(start, &backups, &records);
    assert_eq!(origins(&turns), [Origin::Request(id(1)), Origin::Document]);
}
