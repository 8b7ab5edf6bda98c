//! Each promise of the store, against a real file.

use std::path::Path;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{Desired, DesiredGuest};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::{Generation, Offer};
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use holdfast_protocol::operation::{OperationKind, OperationStatus};
use holdfast_protocol::report::Health;
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use serde_json::json;

use super::access::{Redeemed, Redemption};
use super::guest::Reserved;
use super::journal::{AppendError, NewOperation, OpenOperationError};
use super::*;
use agent_core::model::records::{Access, HelloRecord, Place, VolumeId};
use agent_core::model::token_reuse::PresentedToken;
use agent_core::operation::log::{Event, Finding};
use agent_core::operation::{Image, Operation, Provision, Source, VmidRequest};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(super) fn vmid(number: u32) -> Vmid {
    Vmid::try_from(number).unwrap()
}

pub(super) fn uid(n: u8) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(u128::from(n)))
}

pub(super) fn operation_id(n: u8) -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(1_000 + u128::from(n)))
}

fn guest(n: u8) -> DesiredGuest {
    serde_json::from_value(json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 2 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24") }
    }))
    .unwrap()
}

fn document(generation: u64, guests: &[u8]) -> Desired {
    let guests: Vec<DesiredGuest> = guests.iter().map(|n| guest(*n)).collect();
    let text = json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30, "guests": guests });
    Desired::parse(text.to_string().as_bytes()).unwrap()
}

pub(super) fn provision(n: u8) -> Operation {
    Operation::Provision(Box::new(Provision {
        volume_storages: Vec::new(),
        guest: guest(n),
        number: VmidRequest::Exactly(vmid(300)),
        source: Source::Image(Image {
            archive: VolumeId::new("local:backup/vzdump-lxc-900001-2026_11_21-05_00_00.tar.zst"),
            sha256: "ab".repeat(32).try_into().unwrap(),
            file: "/golden".into(),
        }),
        pool: "holdfast".parse().unwrap(),
        storage: "labbtrfs".parse().unwrap(),
        bulk_storage: None,
        backup_storage: None,
    }))
}

pub(super) fn new_operation(n: u8, operation: Operation) -> NewOperation {
    NewOperation {
        id: operation_id(n),
        operation,
        generation: Generation::new(1),
        reason: "test".to_owned(),
        at: at(0),
    }
}

pub(super) async fn open(folder: &Path) -> Store {
    // The thread of a store that was just dropped releases the lock a moment later.
    for _ in 0..1_000 {
        match Store::open(folder, at(0)) {
            Ok(store) => return store,
            Err(OpenError::Held(_)) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the lock was not let go");
}

#[tokio::test]
async fn a_second_agent_is_refused_and_a_newer_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).await;
    assert!(matches!(Store::open(folder.path(), at(0)), Err(OpenError::Held(_))));
    drop(first);
    drop(open(folder.path()).await);
    let raw = rusqlite::Connection::open(folder.path().join("agent.db")).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    // A newer agent that only added to the file would have left this as it was.
    raw.execute("UPDATE schema_reader SET oldest = 99", []).unwrap();
    drop(raw);
    let refused = loop {
        match Store::open(folder.path(), at(0)) {
            Err(OpenError::Held(_)) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            other => break other.err().unwrap(),
        }
    };
    assert!(matches!(refused, OpenError::Newer { found: 99, .. }), "{refused}");
}

#[tokio::test]
async fn a_damaged_file_is_quarantined_and_stays_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.db"), vec![7; 8192]).unwrap();
    let store = open(folder.path()).await;
    let Some(Refusal::Damaged { quarantined }) = store.refusal() else { panic!("no word of it") };
    assert_eq!(std::fs::read(&quarantined).unwrap(), vec![7; 8192]);
    drop(store);
    let again = open(folder.path()).await.refusal();
    assert_eq!(again, Some(Refusal::Damaged { quarantined }), "until a person has looked");
}

#[tokio::test]
async fn documents_follow_the_rules_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut changes = store.changes();
    assert_eq!(store.offer_desired(document(3, &[1]), at(1)).await.unwrap(), Offer::Newer);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.offer_desired(document(3, &[1]), at(2)).await.unwrap(), Offer::Held);
    for bad in [document(2, &[1]), document(3, &[2]), document(2_000, &[1])] {
        assert!(store.offer_desired(bad, at(3)).await.is_err());
    }
    assert_eq!(store.desired().await.unwrap().unwrap(), document(3, &[1]));
    assert_eq!(store.desired_section().await.unwrap().held, Generation::new(3));
}

#[tokio::test]
async fn a_document_that_kills_three_starts_gives_way_to_the_last_good_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.offer_desired(document(1, &[1]), at(1)).await.unwrap();
    store.begin_run().await.unwrap();
    store.mark_good(Generation::new(1), at(2)).await.unwrap();
    store.offer_desired(document(2, &[2]), at(3)).await.unwrap();
    for _ in 0..3 {
        store.begin_run().await.unwrap();
        assert_eq!(store.desired().await.unwrap().unwrap(), document(2, &[2]));
    }
    store.begin_run().await.unwrap();
    assert_eq!(store.desired().await.unwrap().unwrap(), document(1, &[1]));
}

#[tokio::test]
async fn one_operation_per_guest_and_a_journal_that_replays() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let opened = store.open_operation(new_operation(1, provision(1))).await.unwrap();
    let busy = store.open_operation(new_operation(2, provision(1))).await;
    assert!(matches!(busy, Err(OpenOperationError::Busy(_))));
    let begun = store.append(&opened, Event::Begun, at(1)).await.unwrap();
    let unlawful = store.append(&begun, Event::Finished, at(1)).await;
    assert!(matches!(unlawful, Err(AppendError::Rules(_))));
    let stale = store.append(&opened, Event::Begun, at(1)).await;
    assert!(matches!(stale, Err(AppendError::Store(_))), "two writers of one operation");
    let intended = store.append(&begun, Event::Intended { step: 0 }, at(2)).await.unwrap();
    let chosen = Event::Succeeded { step: 0, facts: vec![Finding::Vmid(vmid(300))], note: None };
    let chosen = store.append(&intended, chosen, at(3)).await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.open_operations().await.unwrap(), vec![chosen.clone()]);
    let record = store.guest(uid(1)).await.unwrap().unwrap();
    assert_eq!(record.place, Place::Making { by: operation_id(1), vmid: Some(vmid(300)) });
    let problem = ErrorBody::new(ErrorCode::Unavailable, "no archive");
    let parked = Event::Parked { problem, remedy: "look".to_owned() };
    let parked = store.append(&chosen, parked, at(4)).await.unwrap();
    assert_eq!(parked.view().status, OperationStatus::Parked);
    assert!(store.open_operations().await.unwrap().is_empty());
    let records = store.records(Generation::new(1), at(5)).await.unwrap();
    assert_eq!((records.parked.len(), records.open.len(), records.guests.len()), (1, 0, 1));
    assert_eq!(store.operation_views(10).await.unwrap(), vec![parked.view()]);
    assert_eq!(store.verify_audit().await.unwrap(), 4, "opened, intended, succeeded, parked");
}

#[tokio::test]
async fn failures_in_a_row_are_counted_under_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for n in 1..=2 {
        let mut progress = store.open_operation(new_operation(n, provision(1))).await.unwrap();
        let problem = ErrorBody::new(ErrorCode::Unavailable, "no archive");
        for event in [
            Event::Begun,
            Event::Intended { step: 0 },
            Event::Failed {
                step: 0,
                problem: problem.clone(),
                then: agent_core::operation::log::AfterFailure::GiveUp,
            },
            Event::UndoBegun { problem },
            Event::UndoIntended { step: 0 },
            Event::UndoSucceeded { step: 0, facts: Vec::new(), note: None },
            Event::TakenBack,
        ] {
            progress = store.append(&progress, event, at(i64::from(n))).await.unwrap();
        }
    }
    let records = store.records(Generation::new(1), at(9)).await.unwrap();
    let attempt = records.attempts.first().unwrap();
    assert_eq!((attempt.kind, attempt.failed, attempt.last), (OperationKind::Provision, 2, at(2)));
    assert!(store.records(Generation::new(2), at(9)).await.unwrap().attempts.is_empty());
    assert_eq!(store.guest(uid(1)).await.unwrap().unwrap().place, Place::Nowhere);
}

async fn with_claim(folder: &Path) -> (Store, TokenHash) {
    let store = open(folder).await;
    store.open_operation(new_operation(1, provision(1))).await.unwrap();
    let claim = TokenHash::of(b"claim");
    store.mint_claim(uid(1), claim, at(600), at(0)).await.unwrap();
    (store, claim)
}

fn attempt(claim: TokenHash, redeemer: Option<&[u8]>, token: &[u8]) -> Redemption {
    Redemption { claim, redeemer: redeemer.map(TokenHash::of), token: TokenHash::of(token) }
}

#[tokio::test]
async fn a_claim_serves_once_and_a_second_redeemer_freezes_both() {
    let folder = tempfile::tempdir().unwrap();
    let (store, claim) = with_claim(folder.path()).await;
    assert_eq!(
        store.redeem_claim(attempt(TokenHash::of(b"guess"), None, b"t"), at(1)).await.unwrap(),
        Redeemed::Refused
    );
    let mut granted = Vec::new();
    let attempts = (0..20_u8).map(|n| store.redeem_claim(attempt(claim, None, &[n]), at(1)));
    for outcome in futures_of(attempts).await {
        match outcome {
            Redeemed::Granted { guest, token_generation, .. } => granted.push((guest, token_generation)),
            other => assert_eq!(other, Redeemed::Twice { guest: uid(1) }),
        }
    }
    assert_eq!(granted, [(uid(1), 1)], "exactly one");
    assert_eq!(store.guest(uid(1)).await.unwrap().unwrap().access, Access::Frozen);
    store.verify_audit().await.unwrap();
}

/// Runs them all at once.
async fn futures_of<F>(all: impl Iterator<Item = F>) -> Vec<Redeemed>
where
    F: Future<Output = Result<Redeemed, StoreError>>,
{
    let mut pending: Vec<_> = all.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        pending.retain_mut(|one| match one.as_mut().poll(context) {
            std::task::Poll::Ready(outcome) => {
                done.push(outcome.unwrap());
                false
            }
            std::task::Poll::Pending => true,
        });
        if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test]
async fn the_same_redeemer_may_repeat_a_lost_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (store, claim) = with_claim(folder.path()).await;
    store.redeem_claim(attempt(claim, Some(b"me"), b"first"), at(1)).await.unwrap();
    let again = store.redeem_claim(attempt(claim, Some(b"me"), b"second"), at(2)).await.unwrap();
    assert!(matches!(again, Redeemed::Granted { token_generation: 2, .. }));
    let holder = async |token: &[u8]| store.holder(TokenHash::of(token)).await.unwrap();
    assert_eq!(holder(b"first").await.unwrap().shown, PresentedToken::Former, "the unseen token is void");
    let second = holder(b"second").await.unwrap();
    assert_eq!((second.shown, second.record.access), (PresentedToken::Current, Access::Open));
    assert!(holder(b"made-up").await.is_none());
    let other = store.redeem_claim(attempt(claim, Some(b"thief"), b"third"), at(3)).await.unwrap();
    assert_eq!(other, Redeemed::Twice { guest: uid(1) });
}

#[tokio::test]
async fn an_old_claim_is_worth_nothing_and_harms_no_one() {
    let folder = tempfile::tempdir().unwrap();
    let (store, claim) = with_claim(folder.path()).await;
    store.redeem_claim(attempt(claim, None, b"t"), at(1)).await.unwrap();
    assert_eq!(store.redeem_claim(attempt(claim, None, b"u"), at(601)).await.unwrap(), Redeemed::Refused);
    assert_eq!(store.guest(uid(1)).await.unwrap().unwrap().access, Access::Open);
}

#[tokio::test]
async fn a_hello_is_kept_and_wakes_listeners() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = with_claim(folder.path()).await;
    let changes = store.changes();
    let hello = HelloRecord {
        reported: Default::default(),
        version: "0.1.0".to_owned(),
        health: Health::Well,
        boot_id: "b".to_owned(),
        build: None,
        at: at(5),
    };
    store.record_hello(uid(1), hello.clone()).await.unwrap();
    assert!(changes.has_changed().unwrap());
    assert_eq!(store.guest(uid(1)).await.unwrap().unwrap().hello, Some(hello));
}

#[tokio::test]
async fn a_number_is_one_guests_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert_eq!(store.reserve_vmid(uid(1), vmid(300)).await.unwrap(), Reserved::Yes);
    assert_eq!(store.reserve_vmid(uid(1), vmid(300)).await.unwrap(), Reserved::Yes);
    assert_eq!(store.reserve_vmid(uid(2), vmid(300)).await.unwrap(), Reserved::Anothers);
    assert_eq!(store.used_vmids().await.unwrap(), [(vmid(300), uid(1))]);
}

#[tokio::test]
async fn a_changed_audit_line_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = with_claim(folder.path()).await;
    assert_eq!(store.verify_audit().await.unwrap(), 2);
    let raw = rusqlite::Connection::open(folder.path().join("agent.db")).unwrap();
    raw.execute("UPDATE audit SET detail = 'nothing to see' WHERE number = 1", []).unwrap();
    let broken = store.verify_audit().await.unwrap_err();
    assert!(matches!(broken, audit::ChainError::Broken { number: 1 }));
}

/// Every report carries the head, so that a truncated audit is noticed.
#[tokio::test]
async fn the_head_of_the_audit_is_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let empty = open(folder.path()).await;
    assert_eq!(empty.read(audit::head).await.unwrap(), (0, Vec::new()));
    drop(empty);
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = with_claim(folder.path()).await;
    let raw = rusqlite::Connection::open(folder.path().join("agent.db")).unwrap();
    let last: Vec<u8> =
        raw.query_row("SELECT chain FROM audit WHERE number = 2", [], |row| row.get(0)).unwrap();
    assert_eq!(last.len(), 32);
    assert_eq!(store.read(audit::head).await.unwrap(), (2, last));
}

fn snapshot_of(n: u8) -> Operation {
    Operation::Snapshot(agent_core::operation::Snapshot {
        target: agent_core::operation::Target { uid: uid(n), name: guest(n).name, vmid: vmid(300) },
        name: "s1".parse().unwrap(),
        taken_by: agent_core::model::records::TakenBy::Guest,
        expires_at: Some(at(60)),
        due: None,
    })
}

/// A finding of a step and the record of it are one transaction.
#[tokio::test]
async fn a_snapshot_is_known_from_its_outcome_on_until_its_removal() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let name = || "s1".parse().unwrap();
    let mut progress = store.open_operation(new_operation(1, snapshot_of(1))).await.unwrap();
    let succeeded = |step, facts| Event::Succeeded { step, facts, note: None };
    for event in [
        Event::Begun,
        Event::Intended { step: 0 },
        succeeded(0, Vec::new()),
        Event::Intended { step: 1 },
        succeeded(1, vec![Finding::SnapshotTaken { at: at(5) }]),
        Event::Finished,
    ] {
        assert!(store.snapshot(uid(1), name()).await.unwrap().is_none());
        progress = store.append(&progress, event, at(1)).await.unwrap();
        if progress.did(agent_core::operation::step::Step::TakeSnapshot) {
            break;
        }
    }
    store.append(&progress, Event::Finished, at(2)).await.unwrap();
    let record = store.snapshot(uid(1), name()).await.unwrap().unwrap();
    assert_eq!((record.made_by, record.taken_at, record.expires_at), (operation_id(1), at(5), Some(at(60))));
    assert_eq!(
        store.records(Generation::new(1), at(9)).await.unwrap().snapshots.as_slice(),
        std::slice::from_ref(&record)
    );
    assert!(store.snapshot(uid(2), name()).await.unwrap().is_none(), "another guest's");
    let expiry = Operation::ExpireSnapshot(agent_core::operation::ExpireSnapshot {
        target: agent_core::operation::Target { uid: uid(1), name: guest(1).name, vmid: vmid(300) },
        name: name(),
        made_by: record.made_by,
        why: agent_core::operation::ExpiryWhy::PastItsTime,
    });
    let mut progress = store.open_operation(new_operation(2, expiry)).await.unwrap();
    for event in [Event::Begun, Event::Intended { step: 0 }, succeeded(0, vec![Finding::SnapshotGone])] {
        progress = store.append(&progress, event, at(61)).await.unwrap();
    }
    assert!(store.snapshots(uid(1)).await.unwrap().is_empty());
}

/// A list of the last twenty would have shown one cause and nothing else, with a count that ends at twenty.
#[tokio::test]
async fn tries_that_failed_alike_are_one_view_with_their_count() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let fail = async |n: u8, of: u8, code: ErrorCode| {
        let mut progress = store.open_operation(new_operation(n, provision(of))).await.unwrap();
        // Free space and the like differ each time.
        let problem = ErrorBody::new(code, format!("{n} bytes are left"));
        let taken_back = [
            Event::Begun,
            Event::Intended { step: 0 },
            Event::Failed {
                step: 0,
                problem: problem.clone(),
                then: agent_core::operation::log::AfterFailure::GiveUp,
            },
            Event::UndoBegun { problem },
            Event::UndoIntended { step: 0 },
            Event::UndoSucceeded { step: 0, facts: Vec::new(), note: None },
            Event::TakenBack,
        ];
        for event in taken_back {
            progress = store.append(&progress, event, at(i64::from(n))).await.unwrap();
        }
    };
    fail(1, 2, ErrorCode::Unavailable).await;
    fail(2, 1, ErrorCode::Locked).await;
    for n in 3..=33 {
        fail(n, 1, ErrorCode::StorageFull).await;
    }
    let views = store.operation_views(20).await.unwrap();
    let reported: Vec<_> = views.iter().map(|view| (view.id, view.alike.map(|alike| alike.count))).collect();
    assert_eq!(reported, [(operation_id(1), None), (operation_id(2), None), (operation_id(33), Some(31))]);
    let first = store.operation(operation_id(3)).await.unwrap().unwrap().view().opened_at;
    assert_eq!(views[2].alike.unwrap().first_at, first);
    assert_eq!(store.operation_views(1).await.unwrap(), views[2..], "the newest");
}
