//! Tests of work orders: taken once, bounded, ended with their operation.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, SnapshotName};
use holdfast_protocol::operation::StepStatus;
use holdfast_protocol::work_order::{DiagnosticName, OrderCall, OrderText, RestartTiming};
use jiff::SignedDuration;
use uuid::Uuid;

use super::*;
use crate::journal::NewOperation;
use crate::request::{Cancelled, NewRequest};
use crate::tests::{at, open, operation_id, uid, vmid};
use agent_core::model::limits;
use agent_core::model::records::TakenBy;
use agent_core::model::request::Ask;
use agent_core::operation::log::Event;
use agent_core::operation::{Operation, Snapshot, Target};

fn id(n: u8) -> WorkOrderId {
    WorkOrderId::new(operation_id(n).uuid())
}

fn name(n: u8) -> SnapshotName {
    format!("s-{n}").parse().unwrap()
}

fn order(n: u8, act: OrderAct) -> QueuedOrder {
    let text = OrderText { act, expires_at: at(3_600) };
    let text = serde_json::to_string(&text).unwrap();
    QueuedOrder { id: id(n), call: OrderCall::CarryOut, text, correlation_id: None }
}

fn snapshot(n: u8, guest: GuestUid) -> QueuedOrder {
    order(n, OrderAct::Snapshot { guest, name: name(n), keep_s: None })
}

fn cancel(n: u8) -> QueuedOrder {
    QueuedOrder { call: OrderCall::Cancel, ..snapshot(n, uid(1)) }
}

fn operation(n: u8) -> NewOperation {
    let target = Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: vmid(301) };
    let (taken_by, expires_at) = (TakenBy::Job, Some(at(90_000)));
    NewOperation {
        id: operation_id(n),
        operation: Operation::Snapshot(Snapshot { target, name: name(n), taken_by, expires_at, due: None }),
        generation: Generation::new(1),
        reason: "a test".to_owned(),
        at: at(10),
    }
}

async fn report(store: &Store, n: u8) -> WorkOrderReport {
    let all = store.order_reports(at(20)).await.unwrap().unwrap();
    all.into_iter().find(|report| report.id == id(n)).unwrap()
}

async fn queued(store: &Store) -> usize {
    store.records(Generation::new(1), at(0)).await.unwrap().requests.len()
}

#[tokio::test]
async fn an_order_outlives_the_agent_and_becomes_one_operation() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert_eq!(store.order_reports(at(1)).await.unwrap(), None, "a host without orders says nothing of them");
    assert_eq!(store.take_order(snapshot(1, uid(1)), at(1)).await.unwrap(), OrderOutcome::Taken);
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.take_order(snapshot(1, uid(1)), at(2)).await.unwrap(), OrderOutcome::Known);
    assert_eq!((queued(&store).await, report(&store, 1).await.state), (1, HostOrderState::Claimed));
    let begun = store.open_request(operation(1)).await.unwrap();
    assert_eq!(report(&store, 1).await.state, HostOrderState::Running);
    // A late copy finds it, before its end and after.
    assert_eq!(store.take_order(snapshot(1, uid(1)), at(11)).await.unwrap(), OrderOutcome::Known);
    assert_eq!(store.take_order(cancel(1), at(11)).await.unwrap(), OrderOutcome::TooLate);
    let mut progress = store.append(&begun, Event::Begun, at(11)).await.unwrap();
    for step in 0..2 {
        progress = store.append(&progress, Event::Intended { step }, at(12)).await.unwrap();
        let event = Event::Succeeded { step, facts: Vec::new(), note: None };
        progress = store.append(&progress, event, at(15)).await.unwrap();
    }
    store.append(&progress, Event::Finished, at(16)).await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    let ended = report(&store, 1).await;
    assert_eq!(
        (ended.state, ended.operation, ended.ended_at),
        (HostOrderState::Succeeded, Some(operation_id(1)), Some(at(16)))
    );
    assert_eq!(ended.phases.len(), 2);
    assert_eq!((ended.phases[1].status, ended.phases[1].took_ms), (StepStatus::Done, Some(3_000)));
    assert!(ended.log.last().unwrap().contains("finished"), "{:?}", ended.log);
    assert_eq!(store.take_order(snapshot(1, uid(1)), at(17)).await.unwrap(), OrderOutcome::Known);
    assert_eq!(queued(&store).await, 0);
    // An hour later the hub has phases and log.
    let later = store.order_reports(at(16) + SignedDuration::from_hours(2)).await.unwrap().unwrap();
    assert!(later[0].phases.is_empty() && later[0].log.is_empty());
}

#[tokio::test]
async fn a_failed_operation_fails_its_order_and_a_person_may_take_it_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.take_order(snapshot(1, uid(1)), at(1)).await.unwrap();
    let begun = store.open_request(operation(1)).await.unwrap();
    let progress = store.append(&begun, Event::Begun, at(11)).await.unwrap();
    let problem = ErrorBody::new(ErrorCode::Unavailable, "no answer");
    let parked = Event::Parked { problem: problem.clone(), remedy: "look".to_owned() };
    let before = progress.status();
    let progress = store.append(&progress, parked, at(12)).await.unwrap();
    let failed = report(&store, 1).await;
    assert_eq!(
        (failed.state, failed.problem.map(|problem| problem.code)),
        (HostOrderState::Failed, Some(ErrorCode::Unavailable))
    );
    store.append(&progress, Event::Reopened { at: before, by: "root".to_owned() }, at(13)).await.unwrap();
    assert_eq!(report(&store, 1).await.state, HostOrderState::Running);
}

#[tokio::test]
async fn what_was_cancelled_never_begins_even_if_it_comes_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert_eq!(store.take_order(cancel(1), at(1)).await.unwrap(), OrderOutcome::Cancelled);
    assert_eq!(store.take_order(snapshot(1, uid(1)), at(2)).await.unwrap(), OrderOutcome::Known);
    store.take_order(snapshot(2, uid(1)), at(3)).await.unwrap();
    assert_eq!(store.take_order(cancel(2), at(4)).await.unwrap(), OrderOutcome::Cancelled);
    for n in [1, 2] {
        assert_eq!(report(&store, n).await.state, HostOrderState::Cancelled);
    }
    assert_eq!(queued(&store).await, 0);
    assert!(store.open_request(operation(2)).await.is_err(), "it does not wait any more");
}

#[tokio::test]
async fn a_guest_does_not_take_back_what_the_hub_ordered_and_does_not_pay_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for n in 1..=4 {
        let backup = order(n, OrderAct::BackupNow { guest: uid(n), tier: None });
        assert_eq!(store.take_order(backup, at(1)).await.unwrap(), OrderOutcome::Taken);
    }
    let cancelled = store.cancel_request(uid(1), operation_id(1), None, at(2)).await.unwrap();
    assert_eq!(cancelled, Cancelled::NotYours);
    let records = store.records(Generation::new(1), at(3)).await.unwrap();
    assert!(records.asked_backups.is_empty(), "{:?}", records.asked_backups);
    assert_eq!(records.requests.len(), 4);
}

#[tokio::test]
async fn an_order_for_what_waits_already_follows_that() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let (correlation, key) = (None, None);
    let new = NewRequest {
        id: operation_id(9),
        guest: uid(1),
        ask: Ask::Backup { tier: None },
        key,
        correlation,
        at: at(1),
    };
    store.ask(new).await.unwrap();
    let backup = order(1, OrderAct::BackupNow { guest: uid(1), tier: None });
    assert_eq!(store.take_order(backup, at(2)).await.unwrap(), OrderOutcome::Taken);
    assert_eq!((queued(&store).await, report(&store, 1).await.operation), (1, Some(operation_id(9))));
    store.cancel_request(uid(1), operation_id(9), None, at(3)).await.unwrap();
    assert_eq!(report(&store, 1).await.state, HostOrderState::Cancelled);
}

#[tokio::test]
async fn budgets_and_bounds_hold_against_a_hub_that_orders_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let (mut taken, mut restarts) = (0_u32, 0_u32);
    let unique = |n: u32| WorkOrderId::new(Uuid::from_u128(0x9_0000_0000 + u128::from(n)));
    for n in 0..300_u32 {
        let guest = GuestUid::new(Uuid::from_u128(u128::from(n % 100) + 1));
        let act = OrderAct::RestartGuest { guest, timing: RestartTiming::AtOnce };
        let order = QueuedOrder { id: unique(n), ..order(1, act) };
        match store.take_order(order, at(1)).await.unwrap() {
            OrderOutcome::Taken => restarts += 1,
            OrderOutcome::Refused => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        restarts,
        limits::order_budget(&OrderAct::RestartGuest { guest: uid(1), timing: RestartTiming::AtOnce })
            .per_host
    );
    for n in 1_000..1_300_u32 {
        let order = QueuedOrder { id: unique(n), ..snapshot(1, uid(7)) };
        taken += u32::from(store.take_order(order, at(2)).await.unwrap() == OrderOutcome::Taken);
    }
    assert_eq!(taken, 1, "the same name waits");
    let rows: u32 = store
        .read(|connection| {
            connection
                .query_row("SELECT count(*) FROM work_order", [], |row| row.get(0))
                .map_err(StoreError::sqlite("count"))
        })
        .await
        .unwrap();
    assert!(rows <= restarts + taken + limits::ORDERS_REFUSED_KEPT, "{rows}");
    // Refusals leave only so many lines an hour.
    assert!(store.verify_audit().await.unwrap() <= 2 * i64::from(restarts + taken) + 61);
}

#[tokio::test]
async fn what_this_version_does_not_know_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let newer = QueuedOrder {
        text: r#"{"act":{"kind":"fly"},"expires_at":"2030-01-01T00:00:00Z"}"#.to_owned(),
        ..snapshot(1, uid(1))
    };
    assert_eq!(store.take_order(newer, at(1)).await.unwrap(), OrderOutcome::Refused);
    let told = report(&store, 1).await;
    assert_eq!(
        (told.state, told.problem.map(|problem| problem.code)),
        (HostOrderState::Failed, Some(ErrorCode::Unsupported))
    );
    let late = store.take_order(snapshot(2, uid(1)), at(3_600)).await.unwrap();
    assert_eq!((late, report(&store, 2).await.state), (OrderOutcome::Refused, HostOrderState::Expired));
}

#[tokio::test]
async fn a_reading_waits_for_the_hub_until_it_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let act = OrderAct::CollectDiagnostics { name: DiagnosticName::Locks, guest: None };
    store.take_order(order(1, act), at(1)).await.unwrap();
    assert_eq!(store.open_readings().await.unwrap().len(), 1);
    let result = OrderResult::Diagnostics { name: DiagnosticName::Locks, bytes: 4 };
    store.settle_reading(id(1), Ok((result.clone(), Some("text".to_owned()))), at(2)).await.unwrap();
    // A second one changes nothing.
    store.settle_reading(id(1), Ok((result.clone(), Some("other".to_owned()))), at(3)).await.unwrap();
    assert!(store.open_readings().await.unwrap().is_empty());
    drop(store);
    let store = open(folder.path()).await;
    let waiting = store.waiting_text().await.unwrap().unwrap();
    assert_eq!((waiting.order, waiting.text.as_str(), waiting.read_at), (id(1), "text", at(2)));
    store.text_arrived(id(1)).await.unwrap();
    assert_eq!(store.waiting_text().await.unwrap(), None);
    assert_eq!(
        (report(&store, 1).await.state, report(&store, 1).await.result),
        (HostOrderState::Succeeded, Some(result))
    );
}

#[tokio::test]
async fn a_restore_test_waits_in_the_lane_of_tests_and_joins_none_of_another_guest() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for (n, guest) in [(1, 1), (2, 2), (3, 1)] {
        let test = order(n, OrderAct::RestoreTestNow { guest: uid(guest), tier: None });
        assert_eq!(store.take_order(test, at(1)).await.unwrap(), OrderOutcome::Taken);
    }
    let of = |n| report(&store, n);
    assert_eq!(of(2).await.operation, Some(operation_id(2)));
    assert_eq!(
        (of(3).await.operation, queued(&store).await),
        (Some(operation_id(1)), 2),
        "the same test waits"
    );
    let backup = order(4, OrderAct::BackupNow { guest: uid(1), tier: None });
    assert_eq!(store.take_order(backup, at(2)).await.unwrap(), OrderOutcome::Taken);
    assert_eq!(of(4).await.operation, Some(operation_id(4)));
}
