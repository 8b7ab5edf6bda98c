//! Approvals of images for all hosts.

use holdfast_protocol::id::{EnrollmentRequestId, HostId, JobId};
use holdfast_protocol::image_approval::ImageApprovalView;
use holdfast_protocol::job::{JobReport, JobState, SignedJob};
use holdfast_protocol::operator::EnrollmentApproval;
use hubd::domain::image_approval::{ImageApprovalError, OPEN_MAX, SubmittedApproval, read};
use hubd::store::{Approval, Checkin, JOBS_KEPT, NewEnrollmentRequest, WriteError};
use uuid::Uuid;

use super::documents::said;
use super::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, host_id, named};

/// A signed approval, with so many signatures.
pub fn blob(number: u128, version: &str, signatures: usize) -> String {
    let (id, sha256) = (JobId::new(Uuid::from_u128(number)), "ab".repeat(32));
    let (from, until) = (at(0), at(20 * 24 * 3_600));
    let payload = format!(
        "{{\"schema\":\"holdfast.image-approval/v1\",\"job_id\":\"{id}\",\"version\":\"{version}\",\"sha256\":\"{sha256}\",\
         \"not_before\":\"{from}\",\"expires_at\":\"{until}\",\"nonce\":\"{number:032x}\",\"reason\":\"the image of November\"}}"
    );
    let signatures = vec!["signature".to_owned(); signatures];
    SignedJob { payload: payload.into_bytes(), signatures, consents: Vec::new() }.to_json().unwrap()
}

fn approval(number: u128, version: &str, signatures: usize) -> SubmittedApproval {
    read(JobId::new(Uuid::from_u128(number)), blob(number, version, signatures), at(1)).unwrap()
}

/// Admitted, on its way, refused.
const fn counts(view: &ImageApprovalView) -> (u32, u32, u32) {
    (view.admitted, view.on_its_way, view.refused)
}

async fn hears(fixture: &Fixture, host: HostId, sequence: u64, report: JobReport) -> Vec<String> {
    let checkin = Checkin { jobs: vec![report], ..checkin(host, 1, sequence) };
    let kept = fixture.store.check_in(checkin).await.unwrap().unwrap();
    kept.jobs.into_iter().map(|queued| queued.blob).collect()
}

async fn waiting(fixture: &Fixture, host: HostId, sequence: u64) -> Vec<String> {
    let kept = fixture.store.check_in(checkin(host, 1, sequence)).await.unwrap().unwrap();
    kept.jobs.into_iter().map(|queued| queued.blob).collect()
}

pub async fn an_approval_is_kept_once_and_reaches_every_host(fixture: Fixture) {
    let store = &fixture.store;
    let first = fixture.box7().await;
    fixture.enrol("box8", host_id(8), &fresh_key()).await;
    fixture.enrol("box9", host_id(9), &fresh_key()).await;
    store.revoke_host(by(2), named("box9")).await.ok().unwrap().unwrap();
    // A settled host is woken out of its quiet.
    assert!(waiting(&fixture, first, 1).await.is_empty());
    let one = blob(1, "2026.11.1", 1);
    let done = store.submit_image_approval(by(3), approval(1, "2026.11.1", 1)).await.ok().unwrap();
    assert_eq!(counts(&done.approval), (0, 2, 0), "not the revoked one");
    let mut woken = done.hosts;
    woken.sort();
    assert_eq!(woken, {
        let mut both = vec![first, host_id(8)];
        both.sort();
        both
    });
    for host in [first, host_id(8)] {
        assert_eq!(waiting(&fixture, host, 2).await, std::slice::from_ref(&one));
        assert_eq!(waiting(&fixture, host, 3).await, std::slice::from_ref(&one), "until it speaks of it");
    }
    // One takes it, the other lacks a signature.
    assert!(hears(&fixture, first, 4, said(1, &one)).await.is_empty());
    let refused = JobReport { state: JobState::Refused, ..said(1, &one) };
    assert!(hears(&fixture, host_id(8), 4, refused).await.is_empty());
    let list = store.image_approvals().await.unwrap();
    assert_eq!((list.len(), counts(&list[0])), (1, (1, 0, 1)));
    // The second signature makes a new text: it goes to who refused the first, and to no one else.
    let two = blob(1, "2026.11.1", 2);
    let done = store.submit_image_approval(by(5), approval(1, "2026.11.1", 2)).await.ok().unwrap();
    assert_eq!((done.hosts, counts(&done.approval)), (vec![host_id(8)], (1, 1, 0)));
    assert!(waiting(&fixture, first, 5).await.is_empty());
    assert_eq!(waiting(&fixture, host_id(8), 5).await, std::slice::from_ref(&two));
    assert!(hears(&fixture, host_id(8), 6, said(1, &two)).await.is_empty());
    // A host that is enrolled later has it from its first moment.
    fixture.enrol("box10", host_id(10), &fresh_key()).await;
    assert_eq!(waiting(&fixture, host_id(10), 1).await, std::slice::from_ref(&two));
    let found = store.image_approval(JobId::new(Uuid::from_u128(1))).await.unwrap().unwrap();
    let hosts: Vec<_> = found.hosts.iter().map(|host| (host.host.as_str(), host.report.is_some())).collect();
    assert_eq!(hosts, [("box10", false), ("box7", true), ("box8", true)]);
    assert_eq!((found.blob, counts(&found.approval)), (two.clone(), (2, 1, 0)));
    // In the host's own list it is a job like others, with its text.
    let (_, listed) = store.jobs(named("box10"), None, 10).await.unwrap().unwrap().remove(0);
    assert_eq!(listed.bytes as usize, two.len());
    assert_eq!(store.job(named("box10"), listed.id).await.unwrap().unwrap().blob, two);
}

pub async fn an_approval_is_withdrawn_from_who_has_not_seen_it(fixture: Fixture) {
    let store = &fixture.store;
    let first = fixture.box7().await;
    fixture.enrol("box8", host_id(8), &fresh_key()).await;
    let one = blob(1, "2026.11.1", 1);
    store.submit_image_approval(by(3), approval(1, "2026.11.1", 1)).await.ok().unwrap();
    hears(&fixture, first, 1, said(1, &one)).await;
    let id = JobId::new(Uuid::from_u128(1));
    for _ in 0..2 {
        let view = store.withdraw_image_approval(by(4), id).await.ok().unwrap().unwrap();
        assert_eq!((counts(&view), view.withdrawn_at), ((1, 0, 0), Some(at(4))));
    }
    assert!(waiting(&fixture, host_id(8), 1).await.is_empty());
    fixture.enrol("box9", host_id(9), &fresh_key()).await;
    assert!(waiting(&fixture, host_id(9), 1).await.is_empty(), "it is over for new hosts, too");
    assert!(
        store.withdraw_image_approval(by(4), JobId::new(Uuid::from_u128(2))).await.ok().unwrap().is_none()
    );
    // Another content under its id is refused, and so is one more than may be open.
    let taken = store.submit_image_approval(by(5), approval(1, "2026.11.2", 1)).await.err().unwrap();
    assert!(matches!(taken, WriteError::Refused(ImageApprovalError::Taken)), "{taken:?}");
    for number in 0..u128::from(OPEN_MAX) {
        store.submit_image_approval(by(5), approval(100 + number, "2026.11.3", 1)).await.ok().unwrap();
    }
    let full = store.submit_image_approval(by(6), approval(99, "2026.11.4", 1)).await.err().unwrap();
    assert!(matches!(full, WriteError::Refused(ImageApprovalError::Full)), "{full:?}");
    let told = fixture.kinds().await;
    assert_eq!(told.iter().filter(|kind| *kind == "job_withdrawn").count(), 1);
}

pub async fn an_approval_that_ended_goes_with_its_jobs(fixture: Fixture) {
    let store = &fixture.store;
    fixture.box7().await;
    store.submit_image_approval(by(3), approval(1, "2026.11.1", 1)).await.ok().unwrap();
    let jobs = async || store.jobs(named("box7"), None, 10).await.unwrap().unwrap().len();
    // A job goes by its own age, its approval when it ended long ago.
    store.prune(&fixture.term().await, at(20 * 24 * 3_600) + JOBS_KEPT).await.unwrap();
    assert_eq!((store.image_approvals().await.unwrap().len(), jobs().await), (1, 0));
    store.prune(&fixture.term().await, at(20 * 24 * 3_600 + 1) + JOBS_KEPT).await.unwrap();
    assert!(store.image_approvals().await.unwrap().is_empty());
    store.submit_image_approval(by(3), approval(2, "2026.11.1", 1)).await.ok().unwrap();
    assert_eq!(jobs().await, 1, "another begins anew");
}

pub async fn an_open_approval_waits_for_the_machine_that_takes_a_place(fixture: Fixture) {
    let store = &fixture.store;
    let first = fixture.box7().await;
    let one = blob(1, "2026.11.1", 1);
    store.submit_image_approval(by(3), approval(1, "2026.11.1", 1)).await.ok().unwrap();
    assert!(hears(&fixture, first, 1, said(1, &one)).await.is_empty());
    store.revoke_host(by(4), named("box7")).await.ok().unwrap().unwrap();
    // It comes back by a request, and its ledger knows nothing of what it took before.
    let (key, id) = (fresh_key(), EnrollmentRequestId::new(Uuid::from_u128(5)));
    let fingerprint = key.fingerprint();
    let request = NewEnrollmentRequest {
        id,
        key,
        claimed_name: "box7".parse().unwrap(),
        sealing: None,
        origin: std::net::IpAddr::from([192, 0, 2, 1]).into(),
        at: at(5),
        correlation: CORRELATION,
    };
    store.request_enrollment(request).await.ok().unwrap();
    let request =
        EnrollmentApproval { host_name: "box7".parse().unwrap(), fingerprint, returns: Some(first) };
    let readmitted = Approval { id, request, host: host_id(99) };
    store.approve_enrollment(by(6), readmitted, fixture.issue()).await.ok().unwrap();
    let kept = store.check_in(checkin(first, 2, 1)).await.unwrap().unwrap();
    assert_eq!(kept.jobs.into_iter().map(|queued| queued.blob).collect::<Vec<_>>(), [one]);
}
