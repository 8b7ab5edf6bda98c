//! Signed jobs: submission, delivery, reports.

use std::time::{Duration, Instant};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, JobId};
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::job::{HostEpoch, JobReport, JobState};
use holdfast_protocol::operator::{EventView, JobDetail, JobSubmit, JobView, Page, QueueState};
use holdfast_protocol::report::{AuditHead, Sections, TrustSection};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::world::{Answered, Client, World};

/// No job at all: the hub does not inspect it.
pub(super) const BLOB: &str = "\u{1}whatever \"it\" is";

fn id(n: u128) -> JobId {
    JobId::new(Uuid::from_u128(n))
}

pub(super) async fn leave(client: &Client, n: u128, blob: &str) -> Answered<JobView> {
    let submit = JobSubmit { job: id(n), blob: blob.to_owned(), tunnel: None };
    client.send(Method::POST, "/v1/hosts/box7/jobs", &submit).await
}

fn report(n: u128, blob: &str, state: JobState) -> JobReport {
    JobReport {
        id: id(n),
        blob: hex::encode(Sha256::digest(blob.as_bytes())),
        state,
        verb: None,
        guest: None,
        signers: Vec::new(),
        taken_at: "2026-11-21T14:00:00Z".parse().unwrap(),
        due_at: None,
        ended_at: None,
        operation: None,
        problem: (state == JobState::Refused)
            .then(|| ErrorBody::new(ErrorCode::Signature, "it does not fit")),
        correlation_id: None,
    }
}

fn says(reports: Vec<JobReport>) -> Sections {
    Sections { jobs: Some(reports), ..Sections::default() }
}

pub(super) fn trust(number: u64) -> Sections {
    let audit = AuditHead { number, chain: "00".repeat(32) };
    let trust =
        TrustSection { epoch: HostEpoch::new(1), operators: None, policy: None, policy_version: 0, audit };
    Sections { trust: Some(trust), ..Sections::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reaches_a_held_check_in_unopened_until_the_host_speaks_of_it() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    let first = host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert!(first.jobs.is_empty());
    let (began, request) = (Instant::now(), host.changed(2, 0, Sections::default()));
    let held = host.check_in(&request, "25s");
    let left = async {
        crate::world::until("held", || async { world.view("box7").await.held.number() == 0 }).await;
        leave(&admin, 1, BLOB).await.data(StatusCode::CREATED)
    };
    let (held, left) = tokio::join!(held, left);
    assert_eq!((left.queue_state, left.report, left.bytes as usize), (QueueState::Queued, None, BLOB.len()));
    let answer = held.data(StatusCode::OK);
    assert!(began.elapsed() < Duration::from_secs(20), "told at once");
    assert_eq!((answer.jobs[0].id, answer.jobs[0].blob.as_str()), (id(1), BLOB));
    // Until the host reports on the job, the hub sends it again.
    let again = host.check_in(&host.changed(3, 0, Sections::default()), "25s").await.data(StatusCode::OK);
    assert_eq!(again.jobs, answer.jobs);
    // A report on another text is no answer.
    let other = says(vec![report(1, "another", JobState::Done)]);
    assert_eq!(host.check_in(&host.changed(4, 0, other), "0s").await.data(StatusCode::OK).jobs.len(), 1);
    for (sequence, state) in [(5, JobState::Waiting), (6, JobState::UnderWay), (7, JobState::Done)] {
        let told = host.changed(sequence, 0, says(vec![report(1, BLOB, state)]));
        assert!(host.check_in(&told, "0s").await.data(StatusCode::OK).jobs.is_empty());
        let detail: JobDetail =
            admin.get(&format!("/v1/hosts/box7/jobs/{}", id(1))).await.data(StatusCode::OK);
        assert_eq!((detail.job.queue_state, detail.blob.as_str()), (QueueState::Answered, BLOB));
        assert_eq!(detail.job.report, Some(report(1, BLOB, state)));
    }
    let kinds = world.event_kinds().await;
    let jobs: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("job_")).collect();
    assert_eq!(jobs, ["job_queued", "job_taken", "job_succeeded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_correlation_id_of_a_click_stays_with_its_job() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let click = CorrelationId::new(Uuid::from_u128(7));
    let clicked = admin.with("x-correlation-id", &click.to_string());
    let left = leave(&clicked, 1, BLOB).await.data(StatusCode::CREATED);
    // A repeat is no second click.
    leave(&admin, 1, BLOB).await.data(StatusCode::CREATED);
    let answer = host.check_in(&host.changed(2, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert_eq!((left.correlation_id, answer.jobs[0].correlation_id), (Some(click), Some(click)));
    // A host that claims another id changes nothing about it.
    let claimed = Some(CorrelationId::new(Uuid::from_u128(8)));
    let done = JobReport { correlation_id: claimed, ..report(1, BLOB, JobState::Done) };
    host.check_in(&host.changed(3, 0, says(vec![done])), "0s").await.data(StatusCode::OK);
    let detail: JobDetail = admin.get(&format!("/v1/hosts/box7/jobs/{}", id(1))).await.data(StatusCode::OK);
    assert_eq!(detail.job.correlation_id, Some(click));
    let events: Page<EventView> = admin.get("/v1/events?limit=50").await.data(StatusCode::OK);
    let of_it = events.items.iter().rev().filter(|event| event.correlation_id == Some(click));
    let kinds: Vec<&str> = of_it.map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["job_queued", "job_succeeded"]);
    assert!(events.items.iter().all(|event| event.correlation_id != claimed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_job_may_come_again_with_another_signature_and_a_taken_one_may_not() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    leave(&admin, 1, "one signature").await.data(StatusCode::CREATED);
    // The same again is no second job.
    leave(&admin, 1, "one signature").await.data(StatusCode::CREATED);
    let refused = says(vec![report(1, "one signature", JobState::Refused)]);
    host.check_in(&host.changed(2, 0, refused), "0s").await.data(StatusCode::OK);
    let view = leave(&admin, 1, "two signatures").await.data(StatusCode::CREATED);
    assert_eq!((view.queue_state, view.report), (QueueState::Queued, None));
    let answer = host.check_in(&host.changed(3, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert_eq!(answer.jobs[0].blob, "two signatures");
    let taken = says(vec![report(1, "two signatures", JobState::Waiting)]);
    host.check_in(&host.changed(4, 0, taken), "0s").await.data(StatusCode::OK);
    assert_eq!(leave(&admin, 1, "three signatures").await.code(), ErrorCode::NameTaken);
    let page: Page<JobView> = admin.get("/v1/hosts/box7/jobs").await.data(StatusCode::OK);
    assert_eq!(page.items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_withdrawn_before_the_host_speaks_of_it_and_not_after() {
    let world = World::start().await;
    let (host, admin) = (world.enrol("box7").await, world.admin());
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let path = format!("/v1/hosts/box7/jobs/{}/withdraw", id(1));
    leave(&admin, 1, BLOB).await.data(StatusCode::CREATED);
    for _ in 0..2 {
        let view: JobView = admin.send(Method::POST, &path, &json!({})).await.data(StatusCode::OK);
        assert_eq!(view.queue_state, QueueState::Withdrawn);
    }
    let quiet = host.check_in(&host.changed(2, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert!(quiet.jobs.is_empty());
    leave(&admin, 1, BLOB).await.data(StatusCode::CREATED);
    let taken = says(vec![report(1, BLOB, JobState::Waiting)]);
    host.check_in(&host.changed(3, 0, taken), "0s").await.data(StatusCode::OK);
    let late = admin.send::<Value>(Method::POST, &path, &json!({})).await;
    assert_eq!(late.code(), ErrorCode::UnderWay);
    let nobodys = format!("/v1/hosts/box7/jobs/{}/withdraw", id(9));
    assert_eq!(admin.send::<Value>(Method::POST, &nobodys, &json!({})).await.code(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mailbox_is_bounded_and_each_host_has_its_own() {
    let world = World::start().await;
    let (host, other, admin) = (world.enrol("box7").await, world.enrol("box8").await, world.admin());
    for n in 1..=64 {
        leave(&admin, n, BLOB).await.data(StatusCode::CREATED);
    }
    assert_eq!(leave(&admin, 65, BLOB).await.code(), ErrorCode::Quota);
    assert_eq!(leave(&admin, 1, &"x".repeat(SIGNED_BYTES_MAX + 1)).await.code(), ErrorCode::Size);
    let nowhere = JobSubmit { job: id(1), blob: BLOB.to_owned(), tunnel: None };
    let refused = admin.send::<Value>(Method::POST, "/v1/hosts/box9/jobs", &nowhere).await;
    assert_eq!(refused.code(), ErrorCode::NotFound);
    let answer = host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(answer.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [id(1), id(2), id(3), id(4)]);
    assert!(other.check_in(&other.full(1, 0), "0s").await.data(StatusCode::OK).jobs.is_empty());
    // Another host's report on this host's job changes nothing.
    let claim = other.changed(2, 0, says(vec![report(1, BLOB, JobState::Done)]));
    other.check_in(&claim, "0s").await.data(StatusCode::OK);
    let detail: JobDetail = admin.get(&format!("/v1/hosts/box7/jobs/{}", id(1))).await.data(StatusCode::OK);
    assert_eq!(detail.job.queue_state, QueueState::Queued);
    let (mut seen, mut path) = (0, "/v1/hosts/box7/jobs?limit=50".to_owned());
    loop {
        let page: Page<JobView> = admin.get(&path).await.data(StatusCode::OK);
        seen += page.items.len();
        let Some(next) = page.next else { break };
        path = format!("/v1/hosts/box7/jobs?limit=50&cursor={next}");
    }
    assert_eq!(seen, 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_set_back_receives_its_last_audit_number() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let first = host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(first.audit_seen, 0);
    for (sequence, number, seen) in [(2, 7, 7), (3, 9, 9), (4, 3, 9)] {
        let answer =
            host.check_in(&host.changed(sequence, 0, trust(number)), "0s").await.data(StatusCode::OK);
        assert_eq!(answer.audit_seen, seen);
    }
    // The hub does not send back an implausible number for good: it would void what was signed, and hide every later
    // set-back.
    let wild = host.check_in(&host.changed(5, 0, trust(1 << 62)), "0s").await.data(StatusCode::OK);
    assert!((9..1_000_000).contains(&wild.audit_seen), "{}", wild.audit_seen);
    let over = host.check_in(&host.changed(6, 0, trust(u64::MAX)), "0s").await;
    assert_eq!(over.code(), ErrorCode::Range);
}
