//! Tests of answers to parked operations.

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operation::OperationStatus;

use super::*;
use crate::journal::OpenOperationError;
use crate::tests::{at, new_operation, open, operation_id, provision, uid, vmid};
use agent_core::model::parked::Way;
use agent_core::model::records::Place;
use agent_core::operation::log::{Finding, Status};

async fn parked_provision(store: &Store) -> OperationState {
    let mut progress = store.open_operation(new_operation(1, provision(1))).await.unwrap();
    let problem = ErrorBody::new(ErrorCode::Locked, "half-made");
    for event in [
        Event::Begun,
        Event::Intended { step: 0 },
        Event::Succeeded { step: 0, facts: vec![Finding::Vmid(vmid(300))], note: None },
        Event::Intended { step: 1 },
        Event::Parked { problem, remedy: "pct unlock 300".to_owned() },
    ] {
        progress = store.append(&progress, event, at(2)).await.unwrap();
    }
    progress
}

fn answer(entries: u32) -> Answer {
    Answer { operation: operation_id(1), entries, by: "uid 0 at the box".to_owned(), at: at(9) }
}

#[tokio::test]
async fn what_is_retried_goes_on_where_it_stood() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    parked_provision(&store).await;
    let shown = store.parked().await.unwrap();
    let [entry] = shown.as_slice() else { panic!("{shown:?}") };
    assert_eq!((entry.step.as_deref(), entry.way, entry.since), (Some("judge_archive"), Way::Forth, at(2)));
    assert_eq!((entry.remedy.as_str(), entry.vmid), ("pct unlock 300", Some(vmid(300))));

    let stale = store.retry_parked(answer(entry.entries - 1)).await.unwrap_err();
    assert!(matches!(stale, AnswerError::Changed(_)), "{stale}");
    let reopened = store.retry_parked(answer(entry.entries)).await.unwrap();
    assert_eq!(reopened.status(), Status::During(1));
    assert_eq!((reopened.cause(), reopened.remedy(), reopened.view().ended_at), (None, None, None));
    assert_eq!(store.open_operations().await.unwrap(), vec![reopened.clone()]);
    assert!(store.parked().await.unwrap().is_empty());
    let twice = store.retry_parked(answer(reopened.entries())).await.unwrap_err();
    assert!(matches!(twice, AnswerError::NotParked(_)), "{twice}");
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.open_operations().await.unwrap(), vec![reopened], "and over a restart");
    let reported = store.audit(1).await.unwrap();
    assert_eq!(
        (reported[0].action.as_str(), reported[0].detail.as_str()),
        ("parked_retried", "by uid 0 at the box")
    );
}

#[tokio::test]
async fn what_is_forgotten_is_over_and_its_guest_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let parked = parked_provision(&store).await;
    let forgotten =
        store.forget_parked(answer(parked.entries()), "cleared by hand".to_owned()).await.unwrap();
    assert_eq!(forgotten.view().status, OperationStatus::Forgotten);
    assert_eq!(store.guest(uid(1)).await.unwrap().unwrap().place, Place::Nowhere);
    let records = store.records(Generation::new(1), at(10)).await.unwrap();
    assert!(records.parked.is_empty() && records.open.is_empty());
    assert!(store.parked().await.unwrap().is_empty());
    let gone = store.forget_parked(answer(forgotten.entries()), "again".to_owned()).await.unwrap_err();
    assert!(matches!(gone, AnswerError::NotParked(_)), "{gone}");
    let reported = store.audit(1).await.unwrap();
    assert_eq!(reported[0].detail, "by uid 0 at the box: cleared by hand");
    store.verify_audit().await.unwrap();
    // The VMID stays reserved for this guest for ever: another guest would take the remains for its own.
    assert_eq!(store.used_vmids().await.unwrap(), [], "it was never reserved in this story");
}

/// I6 holds for reopened operations as well.
#[tokio::test]
async fn nothing_is_reopened_during_another_operation() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let parked = parked_provision(&store).await;
    store.open_operation(new_operation(2, provision(1))).await.unwrap();
    let busy = store.retry_parked(answer(parked.entries())).await.unwrap_err();
    assert!(matches!(busy, AnswerError::Busy(guest) if guest == uid(1)), "{busy}");
    let third = store.open_operation(new_operation(3, provision(1))).await;
    assert!(matches!(third, Err(OpenOperationError::Busy(_))));
    assert_eq!(store.parked().await.unwrap().len(), 1, "nothing changed");
}

/// Twenty others that ended later do not push it out of the report.
#[tokio::test]
async fn who_waits_is_reported_however_old() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    parked_provision(&store).await;
    assert_eq!(store.operation_views(0).await.unwrap().len(), 1);
}
