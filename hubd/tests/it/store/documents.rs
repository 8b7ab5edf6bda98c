//! Desired documents and signed jobs.

use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{JobId, TunnelName};
use holdfast_protocol::job::{JobReport, JobState};
use holdfast_protocol::operator::QueueState;
use hubd::domain::desired::{Delivery, IfMatch, PutError};
use hubd::domain::identity::Presented;
use hubd::domain::job_queue::JobQueueError;
use hubd::store::{Checkin, JOBS_KEPT, PAGE_MAX, Put, SubmitJob, VERSIONS_KEPT, WriteError};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::fixture::{Fixture, at, by, checkin, named};
use crate::world::document;

fn put(generation: u64, seen: u64) -> Put {
    let text = document(generation);
    Put {
        host: named("box7"),
        seen: IfMatch(Generation::new(seen)),
        reason: "the story says so".to_owned().try_into().unwrap(),
        desired: Desired::parse(text.as_bytes()).unwrap(),
        text,
    }
}

pub async fn a_document_is_put_over_the_one_that_was_seen(fixture: Fixture) {
    let store = &fixture.store;
    assert!(store.put_desired(by(2), put(1, 0)).await.ok().unwrap().is_none(), "no such host");
    assert!(store.desired(named("box7")).await.unwrap().is_none());
    let host = fixture.box7().await;
    assert!(store.desired(named("box7")).await.unwrap().unwrap().is_none(), "no document");
    let done = store.put_desired(by(2), put(1, 0)).await.ok().unwrap().unwrap();
    assert_eq!((done.host, done.version.generation, done.version.put_at), (host, Generation::new(1), at(2)));
    // The same once more is no second version; another one over what was not seen is refused.
    assert_eq!(store.put_desired(by(3), put(1, 1)).await.ok().unwrap().unwrap(), done);
    let moved = store.put_desired(by(3), put(2, 0)).await.err().unwrap();
    assert!(matches!(moved, WriteError::Refused(PutError::Moved { .. })), "{moved:?}");
    store.put_desired(by(3), put(2, 1)).await.ok().unwrap().unwrap();
    // It is delivered to a host that holds an older one.
    let kept = store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    assert_eq!((kept.delivery, kept.desired.as_deref()), (Delivery::Now, Some(document(2).as_str())));
    let presented = Presented { host, generation: 1 };
    let update = store.look_again(presented, Generation::new(2)).await.unwrap().unwrap();
    assert_eq!((update.delivery, update.desired), (Delivery::Nothing, None));
}

pub async fn the_history_comes_in_pages_and_a_revoked_host_has_none(fixture: Fixture) {
    let store = &fixture.store;
    fixture.box7().await;
    for generation in 1..=5 {
        store.put_desired(by(2), put(generation, generation - 1)).await.ok().unwrap().unwrap();
    }
    let page = |before: Option<u64>| store.desired_history(named("box7"), before.map(Generation::new), 2);
    let numbers = |page: Option<Vec<holdfast_protocol::operator::DesiredVersion>>| -> Vec<u64> {
        page.unwrap().iter().map(|version| version.generation.number()).collect()
    };
    assert_eq!(numbers(page(None).await.unwrap()), [5, 4]);
    assert_eq!(numbers(page(Some(4)).await.unwrap()), [3, 2]);
    assert_eq!(numbers(page(Some(2)).await.unwrap()), [1]);
    assert!(store.desired_history(named("box8"), None, 2).await.unwrap().is_none());
    store.revoke_host(by(3), named("box7")).await.ok().unwrap().unwrap();
    assert!(store.put_desired(by(4), put(6, 5)).await.ok().unwrap().is_none());
}

const BLOB: &str = "a signed job";

fn job(number: u128) -> JobId {
    JobId::new(Uuid::from_u128(number))
}

pub fn submit(number: u128, blob: &str) -> SubmitJob {
    SubmitJob { host: named("box7"), id: job(number), blob: blob.to_owned(), tunnel: None }
}

pub fn said(number: u128, blob: &str) -> JobReport {
    JobReport {
        id: job(number),
        blob: hex::encode(Sha256::digest(blob.as_bytes())),
        state: JobState::Waiting,
        verb: None,
        guest: None,
        signers: Vec::new(),
        taken_at: at(4),
        due_at: None,
        ended_at: None,
        operation: None,
        problem: None,
        correlation_id: None,
    }
}

pub async fn a_signed_job_waits_is_answered_and_is_then_beyond_recall(fixture: Fixture) {
    let store = &fixture.store;
    assert!(store.submit_job(by(2), submit(1, BLOB)).await.ok().unwrap().is_none(), "no such host");
    let host = fixture.box7().await;
    let done = store.submit_job(by(2), submit(1, BLOB)).await.ok().unwrap().unwrap();
    assert_eq!((done.host, done.job.queue_state), (host, QueueState::Queued));
    // The same text again is the same job; another text under its id is not taken while it waits.
    assert_eq!(store.submit_job(by(3), submit(1, BLOB)).await.ok().unwrap().unwrap(), done);
    store.submit_job(by(3), submit(2, "another")).await.ok().unwrap().unwrap();
    let kept = store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    assert_eq!(kept.jobs.iter().map(|queued| queued.id).collect::<Vec<_>>(), [job(1), job(2)]);
    // What a host says of a text that is not kept answers nothing.
    let wrong = Checkin { jobs: vec![said(1, "made up")], ..checkin(host, 1, 2) };
    assert_eq!(store.check_in(wrong).await.unwrap().unwrap().jobs.len(), 2);
    let right = Checkin { jobs: vec![said(1, BLOB)], ..checkin(host, 1, 3) };
    assert_eq!(store.check_in(right).await.unwrap().unwrap().jobs.len(), 1);
    let late = store.withdraw_job(by(6), named("box7"), job(1)).await.err().unwrap();
    assert!(matches!(late, WriteError::Refused(JobQueueError::Answered)), "{late:?}");
    for _ in 0..2 {
        let view = store.withdraw_job(by(6), named("box7"), job(2)).await.ok().unwrap().unwrap();
        assert_eq!(view.queue_state, QueueState::Withdrawn);
    }
    let list = store.jobs(named("box7"), None, 10).await.unwrap().unwrap();
    assert_eq!(list.iter().map(|(_, view)| view.id).collect::<Vec<_>>(), [job(2), job(1)]);
    let rest = store.jobs(named("box7"), Some(list[0].0), 10).await.unwrap().unwrap();
    assert_eq!((rest.len(), rest[0].1.report.clone()), (1, Some(said(1, BLOB))));
    assert_eq!(store.job(named("box7"), job(1)).await.unwrap().unwrap().blob, BLOB);
    assert!(store.job(named("box7"), job(3)).await.unwrap().is_none());
    let told = ["job_queued", "job_queued", "host_online", "job_taken", "job_withdrawn"];
    assert_eq!(fixture.kinds().await[2..], told);
}

pub async fn old_jobs_and_the_oldest_versions_are_deleted(fixture: Fixture) {
    let store = &fixture.store;
    fixture.box7().await;
    store.submit_job(by(2), submit(1, BLOB)).await.ok().unwrap().unwrap();
    let versions = u64::from(VERSIONS_KEPT) + 2;
    for generation in 1..=versions {
        store.put_desired(by(2), put(generation, generation - 1)).await.ok().unwrap().unwrap();
    }
    store.prune(&fixture.term().await, at(2) + JOBS_KEPT).await.unwrap();
    assert!(store.job(named("box7"), job(1)).await.unwrap().is_some(), "it is kept for its whole time");
    store.prune(&fixture.term().await, at(3) + JOBS_KEPT).await.unwrap();
    assert!(store.job(named("box7"), job(1)).await.unwrap().is_none());
    let history = store.desired_history(named("box7"), None, PAGE_MAX).await.unwrap().unwrap();
    let numbers: Vec<u64> = history.iter().map(|version| version.generation.number()).collect();
    assert_eq!((numbers.len(), numbers[0], numbers.last()), (VERSIONS_KEPT as usize, versions, Some(&3)));
}

/// A token may be carried over years after it was signed, when the job itself is long gone.
pub async fn the_newest_order_of_a_tunnel_outlives_its_job(fixture: Fixture) {
    let store = &fixture.store;
    let tunnel = |name: &str| name.parse::<TunnelName>().unwrap();
    fixture.box7().await;
    let order =
        |number, name: &str, blob: &str| SubmitJob { tunnel: Some(tunnel(name)), ..submit(number, blob) };
    for (number, name, blob) in [(1, "cf", "first"), (2, "wg", "other"), (3, "cf", "second")] {
        store
            .submit_job(by(i64::try_from(number).unwrap() + 1), order(number, name, blob))
            .await
            .ok()
            .unwrap()
            .unwrap();
    }
    store.submit_job(by(5), submit(4, BLOB)).await.ok().unwrap().unwrap();
    store.prune(&fixture.term().await, at(30) + JOBS_KEPT).await.unwrap();
    assert!(store.job(named("box7"), job(3)).await.unwrap().is_none());
    let found = store.tunnel_order(named("box7"), tunnel("cf")).await.unwrap().unwrap();
    assert_eq!((found.job, found.blob.as_str(), found.submitted_at), (job(3), "second", at(4)));
    assert_eq!(store.tunnel_order(named("box7"), tunnel("wg")).await.unwrap().unwrap().blob, "other");
    assert!(store.tunnel_order(named("box7"), tunnel("ts")).await.unwrap().is_none());
    assert!(store.tunnel_order(named("box8"), tunnel("cf")).await.unwrap().is_none());
    // Names cost nothing, so their number is bounded: the newest stay.
    for number in 10..40 {
        let blob = format!("order {number}");
        let one = order(number, &format!("t{number}"), &blob);
        store.submit_job(by(i64::try_from(number).unwrap()), one).await.ok().unwrap().unwrap();
    }
    assert!(store.tunnel_order(named("box7"), tunnel("t39")).await.unwrap().is_some());
    assert!(store.tunnel_order(named("box7"), tunnel("cf")).await.unwrap().is_none());
}
