//! Alerts of hosts that are revoked, and of guests that are deleted.

use alerts::incident::Scope;
use alerts::notice::{Notice, Reason};
use holdfast_protocol::checkin::Coverage;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::id::{GuestUid, HostId};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use hubd::domain::alerting::ReportedConditions;
use hubd::domain::host::HostRef;
use hubd::domain::merge::IncomingReport;
use hubd::store::{Checkin, IncidentFilter, SectionTexts};
use uuid::Uuid;

use super::alerts::says;
use super::documents::{said, submit};
use super::fixture::{CORRELATION, Fixture, at, by, checkin, named};

/// Codes of incidents, each with why it was closed.
type Contents = Vec<(ConditionCode, Option<String>)>;

/// What a notice says: why it is sent, and of each incident its code and why it was closed.
fn contents_of(notices: &[Notice]) -> Vec<(Reason, Contents)> {
    let of = |notice: &Notice| {
        let all = notice.incidents.iter();
        (notice.reason, all.map(|one| (one.code, one.ending.as_ref().map(ToString::to_string))).collect())
    };
    notices.iter().map(of).collect()
}

pub async fn a_revoked_host_ends_with_one_notice_and_nothing_fires_for_it_again(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let full = ConditionCode::DiskFull;
    store.check_in(says(host, (1, 10), &[full])).await.unwrap().unwrap();
    fixture.sent(70).await;
    assert_eq!(contents_of(&fixture.sent(130).await), [(Reason::First, vec![(full, None)])]);
    store.revoke_host(by(1_000), named("box7")).await.ok().unwrap().unwrap();
    let why = Some("the host was revoked by eve".to_owned());
    assert_eq!(contents_of(&fixture.sent(1_000).await), [(Reason::AllResolved, vec![(full, why)])]);
    // A second request changes nothing, and what was looked up before the first one is not kept after it.
    store.revoke_host(by(1_001), HostRef::Id(host)).await.ok().unwrap().unwrap();
    let frozen = ReportedCondition::new(ConditionCode::HostFrozen, Subject::Host {}, at(900), "as it is");
    store
        .observe(&fixture.term().await, vec![(Scope::Host(host), vec![frozen])], at(1_002), CORRELATION)
        .await
        .unwrap();
    store.check_in(says(host, (2, 1_003), &[full, ConditionCode::ProxmoxAway])).await.unwrap().unwrap_err();
    for second in [1_002, 2_000, 10_000, 200_000] {
        assert_eq!(fixture.sent(second).await, []);
    }
    assert_eq!(store.incidents(IncidentFilter::All.into(), None, 10).await.unwrap(), []);
    let kinds = fixture.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "incident_resolved").count(), 1);
}

const UID: GuestUid = GuestUid::new(Uuid::from_u128(7));

/// A check-in that says these of the guest and of the job that deletes it.
fn reports(
    host: HostId,
    (sequence, second): (u64, i64),
    codes: &[ConditionCode],
    job: Option<JobState>,
) -> Checkin {
    let subject = || Subject::Guest { uid: UID };
    let set = ConditionSet::collect(
        codes.iter().map(|code| ReportedCondition::new(*code, subject(), at(second), "as it is")),
    );
    let deletes = |state| JobReport {
        state,
        verb: Some(Verb::DestroyGuest),
        guest: Some(UID),
        ..said(1, "a signed job")
    };
    let jobs: Vec<JobReport> = job.map(deletes).into_iter().collect();
    Checkin {
        arriving: IncomingReport {
            coverage: if sequence == 1 { Coverage::Full } else { Coverage::Changed },
            run: (sequence == 1).then(|| at(0)),
            sequence,
        },
        sections: SectionTexts {
            conditions: serde_json::to_string(&set).ok(),
            jobs: serde_json::to_string(&jobs).ok(),
            ..SectionTexts::default()
        },
        conditions: ReportedConditions { set: Some(set), guests: None },
        jobs,
        at: at(second),
        ..checkin(host, 1, sequence)
    }
}

pub async fn a_deleted_guest_ends_with_one_notice_and_may_come_back(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let broken = &[ConditionCode::GuestBroken];
    store.submit_job(by(2), submit(1, "a signed job")).await.ok().unwrap().unwrap();
    store.check_in(reports(host, (1, 10), broken, Some(JobState::Waiting))).await.unwrap().unwrap();
    assert_eq!(contents_of(&fixture.sent(100).await), [(Reason::First, vec![(broken[0], None)])]);
    store.check_in(reports(host, (2, 1_000), &[], Some(JobState::Done))).await.unwrap().unwrap();
    let why = Some("the guest was deleted by a job of eve".to_owned());
    assert_eq!(contents_of(&fixture.sent(1_000).await), [(Reason::AllResolved, vec![(broken[0], why)])]);
    // It was restored under its id and is broken again, while the job is still in the report.
    store.check_in(reports(host, (3, 9_000), broken, Some(JobState::Done))).await.unwrap().unwrap();
    assert_eq!(contents_of(&fixture.sent(9_100).await), [(Reason::First, vec![(broken[0], None)])]);
    store.check_in(reports(host, (4, 9_200), broken, Some(JobState::Done))).await.unwrap().unwrap();
    assert_eq!(fixture.sent(9_600).await, []);
}
