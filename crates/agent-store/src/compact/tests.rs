//! Tests of operations a week and a quarter after their end.

use std::path::Path;

use holdfast_protocol::generation::Generation;
use holdfast_protocol::operation::{OperationKind, OperationStatus};
use jiff::ToSpan as _;
use uuid::Uuid;

use super::*;
use crate::journal::NewOperation;
use crate::parked::Answer;
use crate::request::RequestOrOperation;
use crate::tests::{at, open, uid, vmid};
use agent_core::model::limits;
use agent_core::operation::log::Event;
use agent_core::operation::{Operation, Start, Target};

fn id(n: u32) -> OperationId {
    OperationId::new(Uuid::from_u128(1_000 + u128::from(n)))
}

fn start(n: u32) -> NewOperation {
    let target = Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: vmid(300) };
    NewOperation {
        id: id(n),
        operation: Operation::Start(Start(target)),
        generation: Generation::new(1),
        reason: "test".to_owned(),
        at: at(i64::from(n)),
    }
}

/// One start that ended well.
async fn done(store: &Store, n: u32) {
    let new = start(n);
    let moment = new.at;
    let mut progress = store.open_operation(new).await.unwrap();
    let succeeded = |step| Event::Succeeded { step, facts: Vec::new(), note: None };
    let steps = [Event::Intended { step: 0 }, succeeded(0), Event::Intended { step: 1 }, succeeded(1)];
    for event in [Event::Begun].into_iter().chain(steps).chain([Event::Finished]) {
        progress = store.append(&progress, event, moment).await.unwrap();
    }
}

/// One that waits for a person.
async fn parked(store: &Store, n: u32) {
    let progress = store.open_operation(start(n)).await.unwrap();
    let problem = ErrorBody::new(ErrorCode::Locked, "held");
    store
        .append(&progress, Event::Parked { problem, remedy: "look".to_owned() }, at(i64::from(n)))
        .await
        .unwrap();
}

fn rows(folder: &Path, table: &str) -> i64 {
    let raw = Connection::open(folder.join("agent.db")).unwrap();
    raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Everything that is due at a time.
async fn tidy(store: &Store, now: Timestamp) {
    while store.compact_operations(now).await.unwrap() == Upkeep::More {}
    while store.forget_operations(now).await.unwrap() == Upkeep::More {}
}

fn later(by: SignedDuration) -> Timestamp {
    at(1_000).checked_add(by).unwrap()
}

#[tokio::test]
async fn an_operation_is_reported_a_week_after_its_end_as_it_was_and_without_its_steps() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for n in 1..=120 {
        done(&store, n).await;
    }
    let before = store.operation_view(id(7)).await.unwrap().unwrap();
    assert_eq!((before.steps.len(), rows(folder.path(), "event")), (2, 120 * 6));
    tidy(&store, at(120).checked_add(limits::EVENTS_KEPT).unwrap()).await;
    assert_eq!(rows(folder.path(), "event"), 6, "the last one ended just now");
    tidy(&store, later(limits::EVENTS_KEPT)).await;
    assert_eq!(rows(folder.path(), "event"), 0);
    let after = store.operation_view(id(7)).await.unwrap().unwrap();
    assert_eq!(after, OperationView { steps: Vec::new(), ..before.clone() });
    // The API finds it, the report shows it, it cannot be cancelled, and a start counts it.
    assert_eq!(store.asked(id(7)).await.unwrap(), Some(RequestOrOperation::Kept(Box::new(after))));
    let reported = store.operation_views(20).await.unwrap();
    assert_eq!((reported.len(), reported[19].id, reported[19].status), (20, id(120), OperationStatus::Done));
    let records = store.records(Generation::new(1), at(2_000)).await.unwrap();
    let starts = records.attempts.iter().find(|tried| tried.kind == OperationKind::Start);
    assert_eq!(starts.map(|starts| starts.failed), Some(120));
    // The audit has each step still, and a later start of the program reads all of it.
    assert_eq!(store.verify_audit().await.unwrap(), 120 * 6);
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.operation_views(20).await.unwrap().len(), 20);
    tidy(&store, later(limits::OPERATIONS_KEPT)).await;
    assert_eq!((rows(folder.path(), "operation"), rows(folder.path(), "operation_hold")), (0, 0));
    assert_eq!(store.asked(id(7)).await.unwrap(), None);
}

#[tokio::test]
async fn what_waits_for_a_person_is_under_way_or_is_named_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    done(&store, 1).await;
    parked(&store, 2).await;
    let answer = Answer { operation: id(2), entries: 1, by: "uid 0".to_owned(), at: at(3) };
    store.forget_parked(answer, "seen to".to_owned()).await.unwrap();
    parked(&store, 3).await;
    store.open_operation(start(4)).await.unwrap();
    let raw = Connection::open(folder.path().join("agent.db")).unwrap();
    raw.execute(
        "INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by) VALUES (?1, 'web-9', 'acme', 'g', 'made', 309, ?2)",
        [uid(9).to_string(), id(1).to_string()],
    )
    .unwrap();
    tidy(&store, later(limits::OPERATIONS_KEPT)).await;
    let there = async |n| store.operation_view(id(n)).await.unwrap();
    assert_eq!(there(1).await.map(|view| view.status), Some(OperationStatus::Done), "a guest was made by it");
    assert_eq!(there(2).await, None, "a person ended it long ago");
    let kept = store.operation(id(3)).await.unwrap().unwrap();
    assert_eq!(kept.view().status, OperationStatus::Parked, "whole, so that it can be tried again");
    assert_eq!(store.open_operations().await.unwrap().len(), 1);
    assert_eq!(rows(folder.path(), "forgotten"), 0);
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for n in 1..=60 {
        done(&store, n).await;
    }
    let raw = Connection::open(folder.path().join("agent.db")).unwrap();
    raw.execute("UPDATE operation SET version = 1000 WHERE serial <= 3", []).unwrap();
    tidy(&store, later(limits::EVENTS_KEPT)).await;
    tidy(&store, later(limits::EVENTS_KEPT)).await;
    assert_eq!(rows(folder.path(), "event"), 3 * 6, "what a newer agent wrote is its own to read");
}

#[tokio::test]
async fn records_that_grow_too_large_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert!((4_096..10_000_000).contains(&store.measure().await.unwrap()));
    assert_eq!(store.large(), None);
    store.bytes.store(limits::RECORDS_REPORTED_BYTES + 1, Ordering::Relaxed);
    assert_eq!(store.large().map(|problem| problem.code), Some(ErrorCode::RecordsLarge));
}

#[test]
fn a_quarter_is_longer_than_the_brake_looks_back() {
    let brake = i64::from(agent_core::model::policy::BrakeRule::WINDOW_MAX_H).hours();
    assert!(limits::EVENTS_KEPT >= SignedDuration::try_from(brake).unwrap());
    assert!(limits::OPERATIONS_KEPT > limits::EVENTS_KEPT);
}
