//! Stories of many hosts that report at once.
//!
//! An engine may write such reports together. No answer may show it.

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::report::{AgentSection, AuditHead};
use hubd::domain::alerting::ReportedConditions;
use hubd::domain::desired::{Delivery, IfMatch};
use hubd::domain::host::HostRef;
use hubd::domain::identity::{IdentityError, Presented};
use hubd::domain::merge::IncomingReport;
use hubd::domain::summary::{GuestCounts, Summary};
use hubd::store::{AnnouncedEnd, Checkin, CheckinReply, Put, SectionTexts, SharedStore};
use tokio::task::JoinSet;

use super::fixture::{Fixture, at, by, checkin, fresh_key, host_id, named};
use crate::world::document;

const HOSTS: u128 = 24;

/// A section that names its report, counts of guests, and the end of the host's audit.
fn news(number: u128, sequence: u64) -> Checkin {
    let agent = AgentSection {
        version: format!("0.0.{sequence}"),
        started_at: at(0),
        problems: Vec::new(),
        unobserved_since: None,
        recipient: None,
        builds: None,
        maintenance: None,
        tunnels: Vec::new(),
    };
    let agent = Some(serde_json::to_string(&agent).unwrap());
    let sections = SectionTexts { agent, ..SectionTexts::default() };
    let count = u32::try_from(number).unwrap();
    let summary = Summary {
        guests: Some(GuestCounts { guests: count, running: 1, attention: 0 }),
        audit: Some(AuditHead { number: sequence, chain: format!("chain {sequence}") }),
        ..Summary::default()
    };
    Checkin {
        arriving: IncomingReport { coverage: Coverage::Changed, run: None, sequence },
        sections,
        summary,
        conditions: ReportedConditions::default(),
        at: at(i64::try_from(sequence).unwrap()),
        ..checkin(host_id(number), 1, sequence)
    }
}

type Answer = Result<CheckinReply, IdentityError>;

/// The answers in the order of the check-ins, which come at the same time.
async fn at_once(store: &SharedStore, checkins: Vec<Checkin>) -> Vec<Answer> {
    let mut asked = JoinSet::new();
    for (place, checkin) in checkins.into_iter().enumerate() {
        let store = store.clone();
        asked.spawn(async move { (place, store.check_in(checkin).await.unwrap()) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// What the stored section of the agent says.
async fn version_of(store: &SharedStore, number: u128) -> String {
    let detail = store.host(HostRef::Id(host_id(number)), at(9)).await.unwrap().unwrap();
    detail.sections.agent.unwrap().version
}

async fn enrolled(fixture: &Fixture) {
    for number in 1..=HOSTS {
        fixture.enrol(&format!("host{number}"), host_id(number), &fresh_key()).await;
    }
    let first = (1..=HOSTS).map(|number| checkin(host_id(number), 1, 1)).collect();
    for answer in at_once(&fixture.store, first).await {
        assert_eq!(answer.unwrap().need, Need::Changed);
    }
}

pub async fn many_hosts_with_news_are_each_answered_as_alone(fixture: Fixture) {
    let store = &fixture.store;
    enrolled(&fixture).await;
    // Something is different with some of them.
    store.revoke_host(by(2), named("host3")).await.ok().unwrap().unwrap();
    let text = document(1);
    let put = Put {
        host: named("host5"),
        seen: IfMatch(Generation::NONE),
        reason: "the story says so".to_owned().try_into().unwrap(),
        desired: Desired::parse(text.as_bytes()).unwrap(),
        text,
    };
    store.put_desired(by(2), put).await.ok().unwrap().unwrap();
    let window = Some(AnnouncedEnd { until: at(900), reason: None });
    store.set_maintenance(by(2), named("host7"), window).await.ok().unwrap().unwrap();
    let mut reports: Vec<Checkin> = (1..=HOSTS).map(|number| news(number, 5)).collect();
    reports[8].arriving.sequence = 1;
    reports[10].summary.refused = Some(Some(Generation::new(4)));
    reports[12].arriving.coverage = Coverage::Farewell;
    reports[14].presented = Presented { host: host_id(99), generation: 1 };
    reports[16].summary.audit = Some(AuditHead { number: 50_000, chain: "far".to_owned() });
    let answers = at_once(store, reports).await;
    for (number, answer) in (1..=HOSTS).zip(answers) {
        let expected = match number {
            3 => Err(IdentityError::Revoked),
            15 => Err(IdentityError::Unknown),
            // What an old report says of the audit is believed, though its sections are dropped.
            9 => Ok((1, Need::Full, Delivery::Nothing, None, 5)),
            5 => Ok((5, Need::Changed, Delivery::Now, None, 5)),
            7 => Ok((5, Need::Changed, Delivery::Nothing, Some(at(900)), 5)),
            17 => Ok((5, Need::Changed, Delivery::Nothing, None, 10_000)),
            _ => Ok((5, Need::Changed, Delivery::Nothing, None, 5)),
        };
        let found = answer.map(|kept| {
            (kept.acknowledged, kept.need, kept.delivery, kept.maintenance_until, kept.audit_seen)
        });
        assert_eq!(found, expected, "host {number}");
    }
    for number in (1..=HOSTS).filter(|number| ![3, 9, 15].contains(number)) {
        let detail = store.host(HostRef::Id(host_id(number)), at(9)).await.unwrap().unwrap();
        let (seen, guests) = (detail.host.seen_at, detail.host.guests);
        assert_eq!((seen, guests), (Some(at(5)), u32::try_from(number).unwrap()), "host {number}");
        let evidence = store.audit_evidence(HostRef::Id(host_id(number))).await.unwrap().unwrap();
        assert_eq!((evidence.heads.len(), evidence.breaks.len()), (1, 0), "host {number}");
        assert_eq!(version_of(store, number).await, "0.0.5");
    }
    let kinds = fixture.kinds().await;
    let count = |kind: &str| kinds.iter().filter(|one| *one == kind).count();
    assert_eq!((count("agent_farewell"), count("desired_refused")), (1, 1), "{kinds:?}");
}

/// Each number is taken once, in whatever order they come.
pub async fn reports_of_one_host_at_the_same_time_are_kept_in_their_order(fixture: Fixture) {
    let store = &fixture.store;
    enrolled(&fixture).await;
    for round in 0..5_u64 {
        let sequences = (0..6).map(|step| 2 + round * 6 + step);
        let reports = sequences.flat_map(|sequence| [news(1, sequence), news(2, sequence)]).collect();
        let answers = at_once(store, reports).await;
        let newest = 7 + round * 6;
        let highest = answers.into_iter().map(|answer| answer.unwrap().acknowledged).max();
        assert_eq!(highest, Some(newest));
        for number in [1, 2] {
            let next = store.check_in(news(number, newest)).await.unwrap().unwrap();
            assert_eq!((next.acknowledged, next.need), (newest, Need::Full), "it was taken");
            assert_eq!(version_of(store, number).await, format!("0.0.{newest}"));
        }
    }
}
