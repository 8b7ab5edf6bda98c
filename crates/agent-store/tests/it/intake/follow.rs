//! Tests of jobs that follow their operation.

use agent_core::operation::log::{AfterFailure, Event};
use agent_core::operation::progress::OperationState;
use agent_store::job::Settled;
use agent_store::job_intake::{Outcome, take};
use agent_store::parked::Answer;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, GuestUid, JobId};
use holdfast_protocol::job::{JobReport, JobState, QueuedJob};

use crate::intake::hand::job;
use crate::intake::store_fixture::{GUEST, HOST, StoreFixture, destruction, own};

async fn taken(listener: &mut StoreFixture) -> JobId {
    let (id, payload) = listener.destroy().await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await, Outcome::Taken));
    id
}

async fn opened(listener: &mut StoreFixture) -> (JobId, OperationState) {
    let id = taken(listener).await;
    listener.pass(601);
    (id, listener.store.open_job(destruction(id, listener.now)).await.unwrap())
}

async fn happens(
    listener: &StoreFixture,
    mut progress: OperationState,
    events: Vec<Event>,
) -> OperationState {
    for event in events {
        progress = listener.store.append(&progress, event, listener.now).await.unwrap();
    }
    progress
}

async fn report(listener: &StoreFixture, id: JobId) -> JobReport {
    listener.store.job_reports().await.unwrap().into_iter().find(|report| report.id == id).unwrap()
}

/// The last line of the audit about a job: action, guest and detail.
async fn reported(listener: &StoreFixture, id: JobId) -> (String, Option<String>, String) {
    let lines = listener.store.audit(100).await.unwrap();
    let of_it = |operation: Option<String>| operation.as_deref() == Some(id.to_string().as_str());
    let last =
        lines.into_iter().rfind(|line| line.action.starts_with("job_") && of_it(line.operation.clone()));
    last.map(|line| (line.action, line.guest, line.detail)).unwrap()
}

fn line(action: &str, detail: &str) -> (String, Option<String>, String) {
    (action.to_owned(), Some(GUEST.to_owned()), detail.to_owned())
}

fn all_steps(progress: &OperationState, from: u16) -> Vec<Event> {
    let steps = from..u16::try_from(progress.steps().len()).unwrap();
    let each = |step| [Event::Intended { step }, Event::Succeeded { step, facts: Vec::new(), note: None }];
    steps.flat_map(each).chain([Event::Finished]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_correlation_id_goes_from_the_job_to_its_operation() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.destroy().await;
    let clicked: CorrelationId = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap();
    let click = Some(clicked);
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    let mail = QueuedJob { id, blob, correlation_id: click };
    let taken = take(&listener.store, (HOST.parse().unwrap(), &own()), &mail, listener.now).await.unwrap();
    assert!(matches!(taken, Outcome::Taken));
    // A repeat with another id changes nothing: the job is on record.
    let other = QueuedJob { correlation_id: None, ..mail.clone() };
    let again = take(&listener.store, (HOST.parse().unwrap(), &own()), &other, listener.now).await.unwrap();
    assert!(matches!(again, Outcome::Known));
    let (action, _, detail) = reported(&listener, id).await;
    assert!(action == "job_taken" && detail.contains(&format!("(correlation {})", clicked)), "{detail}");
    listener.pass(601);
    assert_eq!(listener.store.due_jobs(listener.now).await.unwrap()[0].correlation, click);
    let opened = listener.store.open_job(destruction(id, listener.now)).await.unwrap();
    assert_eq!(opened.correlation, click);
    let listener = listener.reopen();
    let read = listener.store.operation(opened.id).await.unwrap().unwrap();
    assert_eq!((read.correlation, read.view().correlation_id), (click, click));
    assert_eq!(report(&listener, id).await.correlation_id, click);
    assert!(listener.store.verify_audit().await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_done_with_its_operation() {
    let mut listener = StoreFixture::open().await;
    let (id, progress) = opened(&mut listener).await;
    assert_eq!(report(&listener, id).await.state, JobState::UnderWay);
    let steps = all_steps(&progress, 0);
    happens(&listener, progress, [vec![Event::Begun], steps].concat()).await;
    let end = report(&listener, id).await;
    assert_eq!((end.state, end.ended_at, end.problem), (JobState::Done, Some(listener.now), None));
    assert_eq!(reported(&listener, id).await, line("job_done", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_fails_with_its_operation_and_says_why() {
    let mut listener = StoreFixture::open().await;
    let (id, progress) = opened(&mut listener).await;
    let problem = ErrorBody::new(ErrorCode::TargetChanged, "it has another volume");
    let events = vec![
        Event::Begun,
        Event::Intended { step: 0 },
        Event::Failed { step: 0, problem: problem.clone(), then: AfterFailure::GiveUp },
        Event::UndoBegun { problem: problem.clone() },
        Event::UndoIntended { step: 0 },
        Event::UndoSucceeded { step: 0, facts: Vec::new(), note: None },
    ];
    let progress = happens(&listener, progress, events).await;
    assert_eq!(report(&listener, id).await.state, JobState::UnderWay, "not before its end");
    happens(&listener, progress, vec![Event::TakenBack]).await;
    let end = report(&listener, id).await;
    assert_eq!(
        (end.state, end.ended_at, end.problem),
        (JobState::Failed, Some(listener.now), Some(problem.clone()))
    );
    assert_eq!(reported(&listener, id).await, line("job_failed", &problem.to_string()));
}

/// It has failed while its operation waits for a person, and is under way again when that person has it tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_taken_up_again_with_its_operation() {
    let mut listener = StoreFixture::open().await;
    let (id, progress) = opened(&mut listener).await;
    let problem = ErrorBody::new(ErrorCode::Locked, "it is locked");
    let parked = Event::Parked { problem: problem.clone(), remedy: "pct unlock 300".to_owned() };
    let progress =
        happens(&listener, progress, vec![Event::Begun, Event::Intended { step: 0 }, parked.clone()]).await;
    let end = report(&listener, id).await;
    assert_eq!((end.state, end.problem), (JobState::Failed, Some(problem.clone())));
    let answer = |entries: u32| Answer {
        operation: progress.id,
        entries,
        by: "uid 0 at the box".to_owned(),
        at: listener.now,
    };
    let progress = listener.store.retry_parked(answer(progress.entries())).await.unwrap();
    let again = report(&listener, id).await;
    assert_eq!((again.state, again.ended_at, again.problem), (JobState::UnderWay, None, None));
    let succeeded = Event::Succeeded { step: 0, facts: Vec::new(), note: None };
    let steps = all_steps(&progress, 1);
    happens(&listener, progress, [vec![succeeded], steps].concat()).await;
    assert_eq!(report(&listener, id).await.state, JobState::Done);
    assert_eq!(reported(&listener, id).await, line("job_done", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_ends_without_an_operation() {
    let mut listener = StoreFixture::open().await;
    let guest: GuestUid = GUEST.parse().unwrap();
    for (settled, state, action) in [
        (Settled::Done, JobState::Done, "job_done"),
        (
            Settled::Failed(ErrorBody::new(ErrorCode::JobExpired, "it is over")),
            JobState::Failed,
            "job_failed",
        ),
    ] {
        let id = taken(&mut listener).await;
        let (what, of, _) = reported(&listener, id).await;
        assert_eq!((what.as_str(), of.as_deref()), ("job_taken", Some(GUEST)));
        listener.pass(601);
        listener.store.settle_job(id, settled, listener.now).await.unwrap();
        let end = report(&listener, id).await;
        assert_eq!((end.state, end.guest, end.ended_at), (state, Some(guest), Some(listener.now)));
        let (what, of, _) = reported(&listener, id).await;
        assert_eq!((what.as_str(), of.as_deref()), (action, Some(GUEST)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_the_host_is_of_no_guest() {
    let mut listener = StoreFixture::open().await;
    let of = taken(&mut listener).await;
    let order = format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"cancel\",\"args\":{{\"job\":\"{of}\"}}");
    let (id, payload) = listener.payload(&order).await;
    assert!(matches!(listener.leave(id, &job(payload.as_bytes(), &[&listener.bob])).await, Outcome::Taken));
    assert_eq!(report(&listener, id).await.guest, None);
    let (what, guest, _) = reported(&listener, id).await;
    assert_eq!((what.as_str(), guest), ("job_taken", None));
    let problem = ErrorBody::new(ErrorCode::Cancelled, format!("it was cancelled by job {id}"));
    assert_eq!(reported(&listener, of).await, line("job_cancelled", &problem.to_string()));
}
