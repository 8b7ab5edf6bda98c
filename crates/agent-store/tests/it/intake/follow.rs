//! How a job follows the operation that was opened for it, and what the audit says of a job and of which guest.

use agent_core::operation::log::{Event, Then};
use agent_core::operation::progress::Progress;
use agent_store::job::Settled;
use agent_store::job_intake::Outcome;
use agent_store::parked::Answer;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::{GuestUid, JobId};
use holdfast_protocol::job::{JobReport, JobState};

use crate::intake::door::{Door, GUEST, destruction};
use crate::intake::hand::job;

async fn taken(door: &mut Door) -> JobId {
    let (id, payload) = door.destroy().await;
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.alice])).await, Outcome::Taken));
    id
}

async fn opened(door: &mut Door) -> (JobId, Progress) {
    let id = taken(door).await;
    door.pass(601);
    (id, door.store.open_job(destruction(id, door.now)).await.unwrap())
}

async fn happens(door: &Door, mut progress: Progress, events: Vec<Event>) -> Progress {
    for event in events {
        progress = door.store.append(&progress, event, door.now).await.unwrap();
    }
    progress
}

async fn report(door: &Door, id: JobId) -> JobReport {
    door.store.job_reports().await.unwrap().into_iter().find(|report| report.id == id).unwrap()
}

/// The last line of the audit about a job: what, of which guest, and more of it.
async fn told(door: &Door, id: JobId) -> (String, Option<String>, String) {
    let lines = door.store.audit(100).await.unwrap();
    let of_it = |operation: Option<String>| operation.as_deref() == Some(id.to_string().as_str());
    let last =
        lines.into_iter().rfind(|line| line.action.starts_with("job_") && of_it(line.operation.clone()));
    last.map(|line| (line.action, line.guest, line.detail)).unwrap()
}

fn line(action: &str, detail: &str) -> (String, Option<String>, String) {
    (action.to_owned(), Some(GUEST.to_owned()), detail.to_owned())
}

fn all_steps(progress: &Progress, from: u16) -> Vec<Event> {
    let steps = from..u16::try_from(progress.steps().len()).unwrap();
    let each = |step| [Event::Intended { step }, Event::Succeeded { step, facts: Vec::new(), note: None }];
    steps.flat_map(each).chain([Event::Finished]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_done_with_its_operation() {
    let mut door = Door::open().await;
    let (id, progress) = opened(&mut door).await;
    assert_eq!(report(&door, id).await.state, JobState::UnderWay);
    let steps = all_steps(&progress, 0);
    happens(&door, progress, [vec![Event::Begun], steps].concat()).await;
    let end = report(&door, id).await;
    assert_eq!((end.state, end.ended_at, end.problem), (JobState::Done, Some(door.now), None));
    assert_eq!(told(&door, id).await, line("job_done", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_fails_with_its_operation_and_says_why() {
    let mut door = Door::open().await;
    let (id, progress) = opened(&mut door).await;
    let problem = Problem::new(ErrorCode::TargetChanged, "it has another volume");
    let events = vec![
        Event::Begun,
        Event::Intended { step: 0 },
        Event::Failed { step: 0, problem: problem.clone(), then: Then::GiveUp },
        Event::UndoBegun { problem: problem.clone() },
        Event::UndoIntended { step: 0 },
        Event::UndoSucceeded { step: 0, facts: Vec::new(), note: None },
    ];
    let progress = happens(&door, progress, events).await;
    assert_eq!(report(&door, id).await.state, JobState::UnderWay, "not before its end");
    happens(&door, progress, vec![Event::TakenBack]).await;
    let end = report(&door, id).await;
    assert_eq!(
        (end.state, end.ended_at, end.problem),
        (JobState::Failed, Some(door.now), Some(problem.clone()))
    );
    assert_eq!(told(&door, id).await, line("job_failed", &problem.to_string()));
}

/// It has failed while its operation waits for a person, and is under way again when that person has it tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_taken_up_again_with_its_operation() {
    let mut door = Door::open().await;
    let (id, progress) = opened(&mut door).await;
    let problem = Problem::new(ErrorCode::Locked, "it is locked");
    let parked = Event::Parked { problem: problem.clone(), remedy: "pct unlock 300".to_owned() };
    let progress =
        happens(&door, progress, vec![Event::Begun, Event::Intended { step: 0 }, parked.clone()]).await;
    let end = report(&door, id).await;
    assert_eq!((end.state, end.problem), (JobState::Failed, Some(problem.clone())));
    let answer = |entries: u32| Answer {
        operation: progress.id,
        entries,
        by: "uid 0 at the box".to_owned(),
        at: door.now,
    };
    let progress = door.store.retry_parked(answer(progress.entries())).await.unwrap();
    let again = report(&door, id).await;
    assert_eq!((again.state, again.ended_at, again.problem), (JobState::UnderWay, None, None));
    let succeeded = Event::Succeeded { step: 0, facts: Vec::new(), note: None };
    let steps = all_steps(&progress, 1);
    happens(&door, progress, [vec![succeeded], steps].concat()).await;
    assert_eq!(report(&door, id).await.state, JobState::Done);
    assert_eq!(told(&door, id).await, line("job_done", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_ends_without_an_operation() {
    let mut door = Door::open().await;
    let guest: GuestUid = GUEST.parse().unwrap();
    for (settled, state, action) in [
        (Settled::Done, JobState::Done, "job_done"),
        (Settled::Failed(Problem::new(ErrorCode::JobExpired, "it is over")), JobState::Failed, "job_failed"),
    ] {
        let id = taken(&mut door).await;
        let (what, of, _) = told(&door, id).await;
        assert_eq!((what.as_str(), of.as_deref()), ("job_taken", Some(GUEST)));
        door.pass(601);
        door.store.settle_job(id, settled, door.now).await.unwrap();
        let end = report(&door, id).await;
        assert_eq!((end.state, end.guest, end.ended_at), (state, Some(guest), Some(door.now)));
        let (what, of, _) = told(&door, id).await;
        assert_eq!((what.as_str(), of.as_deref()), (action, Some(GUEST)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_the_host_is_of_no_guest() {
    let mut door = Door::open().await;
    let of = taken(&mut door).await;
    let order = format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"cancel\",\"args\":{{\"job\":\"{of}\"}}");
    let (id, payload) = door.payload(&order).await;
    assert!(matches!(door.leave(id, &job(payload.as_bytes(), &[&door.bob])).await, Outcome::Taken));
    assert_eq!(report(&door, id).await.guest, None);
    let (what, guest, _) = told(&door, id).await;
    assert_eq!((what.as_str(), guest), ("job_taken", None));
    let problem = Problem::new(ErrorCode::Cancelled, format!("it was cancelled by job {id}"));
    assert_eq!(told(&door, of).await, line("job_cancelled", &problem.to_string()));
}
