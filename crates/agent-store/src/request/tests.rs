//! Tests of requests: once, bounded, and durable.

use std::path::Path;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::protection::Tier;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::OpenError;
use agent_core::model::policy::QuiesceBound;
use agent_core::model::records::{BackupWhy, Records};
use agent_core::operation::log::Event;
use agent_core::operation::{Backup, Begun, DuePoint, Operation, QuiescedBackup, Target};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn uid(n: u32) -> GuestUid {
    GuestUid::new(Uuid::from_u128(u128::from(n)))
}

fn id(n: u32) -> OperationId {
    OperationId::new(Uuid::from_u128(1_000_000 + u128::from(n)))
}

async fn open(folder: &Path) -> Store {
    for _ in 0..1_000 {
        match Store::open(folder, at(0)) {
            Ok(store) => return store,
            Err(OpenError::Held(_)) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the lock was not let go");
}

fn request(n: u32, guest: u32, ask: Ask) -> NewRequest {
    NewRequest { id: id(n), guest: uid(guest), ask, key: None, correlation: None, at: at(i64::from(n)) }
}

fn snapshot(name: &str) -> Ask {
    Ask::Snapshot { name: name.parse().unwrap(), keep_s: None }
}

fn backup_of(n: u32, guest: u32) -> NewOperation {
    let wanted: DesiredGuest = serde_json::from_value(json!({
        "uid": uid(guest), "name": format!("web-{guest}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 2 },
        "network": { "bridge": "vmbr0", "address": "10.66.0.9/24" }
    }))
    .unwrap();
    let vmid = Vmid::try_from(300 + guest).unwrap();
    let target = Target { uid: uid(guest), name: wanted.name, vmid };
    let backup = Backup {
        target,
        storage: "backup2".parse().unwrap(),
        why: BackupWhy::Asked,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    };
    NewOperation {
        id: id(n),
        operation: Operation::Backup(backup),
        generation: Generation::new(1),
        reason: "a test".to_owned(),
        at: at(100),
    }
}

async fn records(store: &Store) -> Records {
    store.records(Generation::new(1), at(0)).await.unwrap()
}

#[tokio::test]
async fn a_request_outlives_the_agent_and_becomes_one_operation() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let call = Some(CorrelationId::new(Uuid::from_u128(7)));
    store.ask(NewRequest { correlation: call, ..request(1, 1, Ask::Backup { tier: None }) }).await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    let queued = records(&store).await;
    assert_eq!((queued.requests.len(), queued.last_request), (1, 1));
    assert_eq!(queued.requests[0].ask, Ask::Backup { tier: None });
    assert_eq!(store.open_request(backup_of(1, 1)).await.unwrap().correlation, call);
    let again = store.open_request(backup_of(1, 1)).await;
    assert!(matches!(again, Err(OpenOperationError::Ended(_))));
    drop(store);
    let store = open(folder.path()).await;
    let opened = records(&store).await;
    assert_eq!((opened.requests.len(), opened.open.len()), (0, 1));
    assert_eq!(opened.open[0].id, id(1), "the request's id is the operation's");
    assert!(matches!(store.asked(id(1)).await.unwrap(), Some(RequestOrOperation::Operation(_))));
    assert_eq!(store.verify_audit().await.unwrap(), 2, "queued, opened");
}

/// A request whose lane is taken stays as it was: the whole transaction is rolled back.
#[tokio::test]
async fn a_request_that_cannot_be_opened_still_waits() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.open_operation(backup_of(9, 1)).await.unwrap();
    store.ask(request(1, 1, snapshot("a1"))).await.unwrap();
    let busy = store.open_request(backup_of(1, 1)).await;
    assert!(matches!(busy, Err(OpenOperationError::Busy(_))));
    assert_eq!(records(&store).await.requests.len(), 1);
}

/// Cancelled and begun in the same moment: one of the two, and the other knows.
#[tokio::test]
async fn cancelling_and_beginning_agree() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let (mut begun, mut cancelled) = (0, 0);
    for n in 1..=40 {
        store.ask(request(n, n, Ask::Backup { tier: None })).await.unwrap();
        let (opening, cancelling) =
            (store.open_request(backup_of(n, n)), store.cancel_request(uid(n), id(n), None, at(200)));
        // Alternately, one or the other reaches the store first.
        let (opened, cancel) = if n % 2 == 0 {
            tokio::join!(opening, cancelling)
        } else {
            let (cancel, opened) = tokio::join!(cancelling, opening);
            (opened, cancel)
        };
        match (opened, cancel.unwrap()) {
            (Ok(_), Cancelled::TooLate(_)) => begun += 1,
            (Err(OpenOperationError::Ended(_)), Cancelled::Ended(_)) => cancelled += 1,
            (opened, cancel) => panic!("{n}: {:?} {cancel:?}", opened.map(|progress| progress.id)),
        }
    }
    assert!(begun > 0 && cancelled > 0, "{begun} {cancelled}");
    let after = records(&store).await;
    assert_eq!((after.requests.len(), after.open.len()), (0, begun));
}

#[tokio::test]
async fn a_host_takes_so_many_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut n = 0;
    let each = u32::try_from(limits::LANE_WAITING_MAX).unwrap();
    let guests = u32::try_from(limits::HOST_WAITING_MAX).unwrap() / each;
    for guest in 1..=guests {
        for name in 0..each {
            n += 1;
            store.ask(request(n, guest, snapshot(&format!("s{name}")))).await.unwrap();
        }
    }
    let more = store.ask(request(9_000, 9_000, Ask::Backup { tier: None })).await;
    assert!(matches!(more, Err(AskError::Busy { retry_after_s: limits::BUSY_LIGHT_S })));
    assert_eq!(records(&store).await.requests.len(), limits::HOST_WAITING_MAX);
    store.cancel_request(uid(1), id(1), None, at(1)).await.unwrap();
    store.ask(request(9_000, 9_000, Ask::Backup { tier: None })).await.unwrap();
}

#[tokio::test]
async fn a_refusal_is_reported_and_old_ones_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let ended = limits::ENDED_REQUESTS_PER_GUEST + 6;
    for n in 1..=ended {
        store.ask(request(n, 1, Ask::Backup { tier: None })).await.unwrap();
        let problem = ErrorBody::new(ErrorCode::Unavailable, "no storage for backups");
        store.refuse_request(id(n), problem, at(5)).await.unwrap();
    }
    let Some(RequestOrOperation::Request(last)) = store.asked(id(ended)).await.unwrap() else {
        panic!("forgotten")
    };
    assert_eq!(last.end.unwrap().problem.code, ErrorCode::Unavailable);
    assert_eq!(store.asked(id(1)).await.unwrap(), None);
    store.ask(request(9_000, 1, Ask::Backup { tier: None })).await.unwrap();
    assert_eq!(records(&store).await.last_request, u64::from(ended) + 1, "numbers only grow");
    // An ended request cannot end again.
    store.refuse_request(id(ended), ErrorBody::new(ErrorCode::Internal, "again"), at(6)).await.unwrap();
    let Some(RequestOrOperation::Request(same)) = store.asked(id(ended)).await.unwrap() else {
        panic!("forgotten")
    };
    assert_eq!(same.end.unwrap().problem.code, ErrorCode::Unavailable);
}

#[tokio::test]
async fn what_goes_first_ends_what_waits_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.ask(request(1, 1, snapshot("a1"))).await.unwrap();
    store.ask(request(2, 1, Ask::Backup { tier: None })).await.unwrap();
    store.preempt_request(id(1), "stop", at(9)).await.unwrap();
    let Some(RequestOrOperation::Request(record)) = store.asked(id(1)).await.unwrap() else { panic!("gone") };
    let problem = record.end.unwrap().problem;
    assert_eq!(problem.code, ErrorCode::Preempted);
    assert!(problem.message.contains("stop"), "{problem}");
    assert_eq!(records(&store).await.requests.len(), 1);
}

/// The answer under a key is there if and only if the request is.
#[tokio::test]
async fn a_key_and_its_request_are_one_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let keyed = |n, hash: u8, ask| {
        let key = RequestKey { key: "k-1".parse().unwrap(), request_sha256: [hash; 32] };
        NewRequest { key: Some(key), ..request(n, 1, ask) }
    };
    let back = Ask::RollBack { snapshot: "gone".parse().unwrap() };
    assert!(matches!(store.ask(keyed(1, 1, back)).await, Err(AskError::NoSuchSnapshot(_))));
    let first = store.ask(keyed(2, 2, Ask::Backup { tier: None })).await.unwrap();
    assert_eq!(first.operation, id(2), "the refusal before used no key up");
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.ask(keyed(3, 2, Ask::Backup { tier: None })).await.unwrap(), first);
    assert!(matches!(store.ask(keyed(4, 4, Ask::Backup { tier: None })).await, Err(AskError::Mismatch)));
    // The answer stays the same when the work is long over.
    let mut progress = store.open_request(backup_of(2, 1)).await.unwrap();
    for event in [
        Event::Begun,
        Event::Parked { problem: ErrorBody::new(ErrorCode::Parked, "x"), remedy: "y".to_owned() },
    ] {
        progress = store.append(&progress, event, at(7)).await.unwrap();
    }
    assert_eq!(store.ask(keyed(5, 2, Ask::Backup { tier: None })).await.unwrap(), first);
    assert_eq!(records(&store).await.requests, []);
}

/// A guest that asks repeatedly gets a fixed number a day. Cancelled requests, backups that were due, and other
/// requests in between do not change that.
#[tokio::test]
async fn a_guest_has_so_many_backups_a_day_for_the_asking() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let ask = async |n: u32, second: i64| {
        store.ask(NewRequest { at: at(second), ..request(n, 1, Ask::Backup { tier: None }) }).await
    };
    let begin = async |n: u32, due: Option<DuePoint>| {
        let mut new = backup_of(n, 1);
        if let Operation::Backup(mut backup) = new.operation.clone() {
            backup.due = due;
            // With a window, or without.
            new.operation = match n % 2 {
                0 => Operation::Backup(backup),
                _ => Operation::QuiescedBackup(QuiescedBackup { backup, bound: QuiesceBound::usual() }),
            };
        }
        let progress = store.open_request(new).await.unwrap();
        let parked =
            Event::Parked { problem: ErrorBody::new(ErrorCode::Locked, "held"), remedy: "look".to_owned() };
        store.append(&progress, parked, at(100)).await.unwrap();
    };
    let due = DuePoint { tier: Tier::Local, point: at(0), begun: Begun::InTime, at: at(0) };
    for n in 0..10 {
        ask(n, 10).await.unwrap();
        begin(n, Some(due)).await;
        ask(100 + n, 10).await.unwrap();
        store.cancel_request(uid(1), id(100 + n), None, at(11)).await.unwrap();
    }
    assert_eq!(records(&store).await.asked_backups, std::collections::BTreeMap::new());
    for n in 0..limits::ASKED_BACKUPS_PER_DAY {
        ask(200 + n, 20).await.unwrap();
        begin(200 + n, None).await;
    }
    for n in 0..limits::ENDED_REQUESTS_PER_GUEST {
        // Half of one kind and half of another, both with a daily limit.
        let other = match n % 2 {
            0 => snapshot("s1"),
            _ => Ask::QuiescedBackup { tier: None, bound: QuiesceBound::usual() },
        };
        store.ask(request(400 + n, 1, other)).await.unwrap();
        store.cancel_request(uid(1), id(400 + n), None, at(21)).await.unwrap();
    }
    let day = limits::ASKED_BACKUPS_S;
    assert!(matches!(ask(300, 19 + day).await, Err(AskError::Backups(_))));
    assert!(
        store.ask(request(301, 2, Ask::Backup { tier: None })).await.is_ok(),
        "another guest's are its own"
    );
    assert!(ask(302, 21 + day).await.is_ok(), "the day is over");
    assert!(ask(303, -3_600).await.is_ok(), "the others were asked for by a clock that was ahead");
}
