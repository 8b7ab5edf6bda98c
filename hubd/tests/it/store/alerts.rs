//! Alerts, from a condition in a check-in to a notice.

use alerts::Suppression;
use alerts::incident::{IncidentId, Scope};
use alerts::label::Labels;
use alerts::log::LogKind;
use alerts::notice::{Notice, Reason};
use holdfast_protocol::alert::DeliveryOutcome;
use holdfast_protocol::checkin::Coverage;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, HostId};
use hubd::domain::alerting::ReportedConditions;
use hubd::domain::deadman::Liveness;
use hubd::domain::desired::IfMatch;
use hubd::domain::merge::IncomingReport;
use hubd::store::{
    Acknowledgement, AnnouncedEnd, Checkin, DeliveryEnd, IncidentFilter, LogFilter, NewSilence, Put,
    SectionTexts, WriteError,
};
use hubd::task::hub_backup::BackupWatch;
use jiff::SignedDuration;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, host_id, named};
use super::hosts::renewal;
use crate::world::document;

/// A check-in that says that exactly these are wrong.
pub fn says(host: HostId, (sequence, second): (u64, i64), codes: &[ConditionCode]) -> Checkin {
    let conditions =
        codes.iter().map(|code| ReportedCondition::new(*code, Subject::Host {}, at(second), "as it is"));
    let set = ConditionSet::collect(conditions);
    let text = serde_json::to_string(&set).unwrap();
    let coverage = if sequence == 1 { Coverage::Full } else { Coverage::Changed };
    Checkin {
        arriving: IncomingReport { coverage, run: (sequence == 1).then(|| at(0)), sequence },
        sections: SectionTexts { conditions: Some(text), ..SectionTexts::default() },
        conditions: ReportedConditions { set: Some(set), guests: None },
        at: at(second),
        ..checkin(host, 1, sequence)
    }
}

impl Fixture {
    /// Lets the engine do what is due, takes what is to be sent, and has it delivered.
    pub async fn sent(&self, second: i64) -> Vec<Notice> {
        self.store.advance_alerts(&self.term().await, at(second), CORRELATION, 64).await.unwrap();
        let mut sent = Vec::new();
        loop {
            let taken = self.store.take_outgoing(&self.term().await, at(second)).await.unwrap();
            if taken.is_empty() {
                return sent;
            }
            for outgoing in taken {
                sent.push(outgoing.notice.clone());
                let end = DeliveryEnd::Delivered { remark: None };
                self.store.delivery_ended(&self.term().await, outgoing, end, at(second)).await.unwrap();
            }
        }
    }

    /// Reasons and codes of what was sent.
    async fn heard(&self, second: i64) -> Vec<(Reason, Vec<ConditionCode>)> {
        let codes = |notice: &Notice| notice.incidents.iter().map(|one| one.code).collect();
        self.sent(second).await.iter().map(|notice| (notice.reason, codes(notice))).collect()
    }
}

const FULL: ConditionCode = ConditionCode::DiskFull;

pub async fn a_condition_is_sent_once_and_so_is_its_end(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(says(host, (1, 10), &[FULL])).await.unwrap().unwrap();
    assert_eq!(fixture.heard(60).await, [], "its grace of a minute, and the wait of its group");
    // The same once more changes nothing.
    store.check_in(says(host, (2, 70), &[FULL])).await.unwrap().unwrap();
    assert_eq!(fixture.heard(130).await, [(Reason::First, vec![FULL])]);
    assert_eq!(fixture.heard(200).await, []);
    store.check_in(says(host, (3, 300), &[])).await.unwrap().unwrap();
    assert_eq!(fixture.heard(300).await, [], "it must stay away for a while");
    assert_eq!(fixture.heard(800).await, [(Reason::AllResolved, vec![FULL])]);
    assert_eq!(fixture.heard(9000).await, []);
    let kinds = fixture.kinds().await;
    let of = |kind: &str| kinds.iter().filter(|one| *one == kind).count();
    assert_eq!((of("incident_fired"), of("incident_resolved")), (1, 1));
    let outcomes = store.deliveries(None, 10).await.unwrap();
    assert!(outcomes.iter().all(|one| one.outcome == DeliveryOutcome::Delivered && one.tries == 1));
    assert_eq!(outcomes.len(), 2);
}

pub async fn a_silent_host_mutes_what_it_said_and_speaks_for_it_again(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(says(host, (1, 10), &[FULL])).await.unwrap().unwrap();
    let contact = store.listened_to().await.unwrap().remove(0);
    store
        .write_down(&fixture.term().await, vec![(contact, Liveness::Offline)], at(40), CORRELATION)
        .await
        .unwrap();
    assert_eq!(fixture.heard(200).await, [(Reason::First, vec![ConditionCode::HostOffline])]);
    let all = store.incidents(IncidentFilter::All.into(), None, 10).await.unwrap();
    let disk = all.iter().find(|one| one.incident.code == FULL).unwrap();
    assert!(disk.incident.stale_since.is_some() && disk.host.as_ref().unwrap().as_str() == "box7");
    // Nothing of its conditions changed, so a check-in without the section says them again.
    let back = Checkin { at: at(1000), ..checkin(host, 1, 2) };
    store.check_in(back).await.unwrap().unwrap();
    let mut heard = Vec::new();
    for second in [1000, 1300, 1700, 2100] {
        heard.extend(fixture.heard(second).await.into_iter().flat_map(|(_, codes)| codes));
    }
    heard.sort();
    assert_eq!(heard, [FULL, ConditionCode::HostOffline], "what lasts, and that the host is back");
}

pub async fn an_operator_acknowledges_silences_and_announces_work(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let scope = Scope::Host(host);
    store.check_in(says(host, (1, 10), &[FULL])).await.unwrap().unwrap();
    assert_eq!(fixture.heard(70).await, [], "it fires now, and its group waits");
    assert_eq!(fixture.heard(130).await.len(), 1);
    let id = IncidentId { scope, number: 1 };
    let given = Acknowledgement::Given { until: None };
    let acknowledged = store.acknowledge(by(200), id, given).await.ok().unwrap().unwrap();
    assert_eq!(acknowledged.incident.ack.unwrap().by.as_str(), "eve");
    let day = 86_400;
    assert_eq!(fixture.heard(day).await, [], "an acknowledged incident is not repeated");
    store.acknowledge(by(day), id, Acknowledgement::TakenBack).await.ok().unwrap().unwrap();
    assert_eq!(fixture.heard(day + 5 * 3600).await, [(Reason::Repeat, vec![FULL])]);
    let unknown = IncidentId { scope, number: 99 };
    assert!(store.acknowledge(by(day), unknown, given).await.ok().unwrap().is_none());

    let new = |text: &str| NewSilence {
        matchers: vec![text.parse().unwrap()],
        until: at(3 * day),
        comment: "a new disk comes".to_owned().try_into().unwrap(),
    };
    let everything = store.add_silence(by(day), new("host!=x")).await;
    assert!(matches!(everything, Err(WriteError::Refused(_))));
    let silence = store.add_silence(by(day + 6 * 3600), new("host=box7")).await.ok().unwrap();
    assert_eq!(fixture.heard(2 * day).await, []);
    assert_eq!(store.silences(at(2 * day)).await.unwrap(), std::slice::from_ref(&silence));
    store.end_silence(by(2 * day), silence.id).await.ok().unwrap().unwrap();
    assert!(store.silences(at(2 * day)).await.unwrap().is_empty());
    // A repeat that was muted counts as sent.
    assert_eq!(fixture.heard(2 * day + 5 * 3600).await, [(Reason::Repeat, vec![FULL])]);

    let until = at(4 * day);
    let named = || "box7".parse().unwrap();
    let windows = store
        .set_maintenance(by(2 * day + 6 * 3600), named(), Some(AnnouncedEnd { until, reason: None }))
        .await
        .ok()
        .unwrap()
        .unwrap();
    assert_eq!(windows.windows.len(), 1);
    assert_eq!(fixture.heard(3 * day).await, []);
    let ended = store.set_maintenance(by(3 * day), named(), None).await.ok().unwrap().unwrap();
    assert_eq!(ended.windows, []);
    assert_eq!(fixture.heard(3 * day + 5 * 3600).await, [(Reason::Repeat, vec![FULL])]);
    let log = store.alert_log(LogFilter { scope: Some(scope), ..LogFilter::default() }, 100).await.unwrap();
    let suppressed = |why: fn(&Suppression) -> bool| {
        log.iter().any(|one| matches!(&one.entry.what, LogKind::Suppressed { why: found, .. } if why(found)))
    };
    assert!(suppressed(|why| matches!(why, Suppression::Silenced { .. })));
    assert!(suppressed(|why| matches!(why, Suppression::Maintenance { .. })));
}

pub async fn a_delivery_that_fails_is_tried_again_and_one_that_was_cut_off_too(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    store.check_in(says(host, (1, 10), &[FULL])).await.unwrap().unwrap();
    store.advance_alerts(&fixture.term().await, at(70), CORRELATION, 64).await.unwrap();
    store.advance_alerts(&fixture.term().await, at(130), CORRELATION, 64).await.unwrap();
    let first = store.take_outgoing(&fixture.term().await, at(130)).await.unwrap().remove(0);
    assert!(
        store.take_outgoing(&fixture.term().await, at(130)).await.unwrap().is_empty(),
        "it is being sent"
    );
    let again = DeliveryEnd::Again { at: at(190), failure: "it does not answer".to_owned() };
    store.delivery_ended(&fixture.term().await, first, again, at(131)).await.unwrap();
    assert!(store.take_outgoing(&fixture.term().await, at(189)).await.unwrap().is_empty());
    assert_eq!(store.next_outgoing_at().await.unwrap(), Some(at(190)));
    assert_eq!(store.queues().await.unwrap()[0].failure.as_deref(), Some("it does not answer"));
    let second = store.take_outgoing(&fixture.term().await, at(190)).await.unwrap().remove(0);
    assert_eq!(second.tries, 1);
    // The hub ends here, and starts again.
    store.release_outgoing(&fixture.term().await).await.unwrap();
    let third = store.take_outgoing(&fixture.term().await, at(190)).await.unwrap().remove(0);
    assert_eq!((third.tries, &third.notice), (2, &second.notice));
    let refused = DeliveryEnd::Refused { failure: "wrong password".to_owned() };
    store.delivery_ended(&fixture.term().await, third, refused, at(191)).await.unwrap();
    let facts = store.own_facts(at(200)).await.unwrap();
    assert_eq!(facts.hub.failing.len(), 1, "the receiver is a fact now");
    assert_eq!(facts.hub.failing[0].2, "wrong password");
}

/// Only hosts together can show it: each of them finds its own image in order.
pub async fn builders_that_differ_are_a_fact_of_the_hub(fixture: Fixture) {
    let store = &fixture.store;
    let one = fixture.box7().await;
    let other = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    let built = |host: HostId, sequence: u64, archive: &str| {
        let image = json!({ "version": "2026.11.1", "sha256": archive.repeat(32), "status": "waiting", "build": {
            "inputs_sha256": "0a".repeat(32), "size_bytes": 1, "origin": "built" } });
        let section = json!({ "node": "pve", "proxmox_version": "9.2.11", "cpus": 16, "memory_bytes": 1,
            "memory_used_bytes": 1, "storages": [], "goldens": [image] });
        let sections = SectionTexts { host: Some(section.to_string()), ..SectionTexts::default() };
        let (second, first) = (10 * i64::try_from(sequence).unwrap(), says(host, (sequence, 0), &[]));
        Checkin {
            sections,
            conditions: ReportedConditions { set: None, guests: None },
            at: at(second),
            ..first
        }
    };
    store.check_in(built(one, 1, "ab")).await.unwrap().unwrap();
    assert!(store.own_facts(at(20)).await.unwrap().hub.differing_builds.is_empty(), "one builder alone");
    store.check_in(built(other, 1, "cd")).await.unwrap().unwrap();
    let [differing] = store.own_facts(at(20)).await.unwrap().hub.differing_builds.try_into().unwrap();
    assert_eq!(differing.sentence(), "abababababab built by box7; cdcdcdcdcdcd built by box8");
    store.check_in(built(other, 2, "ab")).await.unwrap().unwrap();
    assert!(store.own_facts(at(30)).await.unwrap().hub.differing_builds.is_empty(), "they agree now");
}

/// The outbox has a bound, and yet every incident is in it.
pub async fn a_whole_fleet_at_once_loses_no_alert(fixture: Fixture) {
    let store = &fixture.store;
    let hosts = 1_500_u32;
    let scopes: Vec<Scope> = (0..hosts).map(|number| Scope::Host(host_id(number.into()))).collect();
    let frozen = || ReportedCondition::new(ConditionCode::HostFrozen, Subject::Host {}, at(0), "as it is");
    for some in scopes.chunks(500) {
        let found = some.iter().map(|scope| (*scope, vec![frozen()])).collect();
        store.observe(&fixture.term().await, found, at(0), CORRELATION).await.unwrap();
    }
    while store.advance_alerts(&fixture.term().await, at(60), CORRELATION, 500).await.unwrap() > 0 {}
    let queue = store.queues().await.unwrap().remove(0);
    assert!(queue.waiting <= 300, "{queue:?}");
    let mut heard: Vec<IncidentId> =
        fixture.sent(60).await.iter().flat_map(|notice| notice.incidents.iter().map(|one| one.id)).collect();
    heard.sort();
    let mut all: Vec<IncidentId> =
        scopes.iter().map(|scope| IncidentId { scope: *scope, number: 1 }).collect();
    all.sort();
    assert_eq!(heard, all);
}

/// A report does not name the policy of a guest; the document that the host holds does.
pub async fn a_condition_of_a_guest_has_the_labels_of_report_and_document(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let uid = GuestUid::new(Uuid::from_u128(7));
    let mut document: Value = serde_json::from_str(&document(1)).unwrap();
    let guest = json!({ "uid": uid, "policy": "nightly" });
    let parsed = Desired::parse(document.to_string().as_bytes()).unwrap();
    // Only the text is looked at here.
    document["guests"] = json!([guest]);
    let put = Put {
        host: named("box7"),
        seen: IfMatch(Generation::NONE),
        reason: "the story says so".to_owned().try_into().unwrap(),
        desired: parsed,
        text: document.to_string(),
    };
    store.put_desired(by(2), put).await.ok().unwrap().unwrap();
    let labels = Labels { customer: "acme".parse().ok(), guest: "web".parse().ok(), policy: None };
    let crashed =
        ReportedCondition::new(ConditionCode::GuestCrashed, Subject::Guest { uid }, at(9), "as it is");
    let set = ConditionSet::collect([crashed]);
    let report = says(host, (1, 10), &[]);
    let report = Checkin {
        held: Generation::new(1),
        sections: SectionTexts { conditions: serde_json::to_string(&set).ok(), ..report.sections },
        conditions: ReportedConditions { set: Some(set), guests: Some([(uid, labels.clone())].into()) },
        ..report
    };
    store.check_in(report).await.unwrap().unwrap();
    let all = store.incidents(IncidentFilter::All.into(), None, 10).await.unwrap();
    assert_eq!(all[0].incident.labels, Labels { policy: "nightly".parse().ok(), ..labels });
}

pub async fn what_the_hub_finds_by_itself_is_an_incident_once(fixture: Fixture) {
    let store = &fixture.store;
    let host = fixture.box7().await;
    let mut timer = fixture.timer(20).await;
    timer.tick().await.unwrap();
    assert_eq!(store.incidents(IncidentFilter::All.into(), None, 10).await.unwrap(), []);
    // A copy of the host shows the certificate that came before.
    store.renew(renewal(host, 1, &fresh_key()), fixture.issue()).await.ok().unwrap();
    store.check_in(checkin(host, 2, 1)).await.unwrap().unwrap();
    store.check_in(checkin(host, 1, 2)).await.unwrap().unwrap_err();
    for second in [30, 40] {
        fixture.timer(second).await.tick().await.unwrap();
    }
    let all = store.incidents(IncidentFilter::All.into(), None, 10).await.unwrap();
    let codes: Vec<_> = all.iter().map(|one| (one.incident.code, one.incident.id.number)).collect();
    assert_eq!(codes, [(ConditionCode::HostFrozen, 1)], "also after a restart of the hub between the two");
    store.revoke_host(by(50), named("box7")).await.ok().unwrap().unwrap();
    let all = store.incidents(IncidentFilter::Firing.into(), None, 10).await.unwrap();
    assert_eq!(all, [], "a revoked host has no alert");
}

pub async fn a_backup_of_the_hub_that_is_missing_is_an_incident_until_there_is_one(fixture: Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let watch = BackupWatch { path: folder.path().join("hub.db"), age_max: SignedDuration::from_hours(30) };
    let tick = async |second: i64| {
        fixture.timer(second).await.with_backup(Some(watch.clone())).tick().await.unwrap();
        let all = fixture.store.incidents(IncidentFilter::Firing.into(), None, 10).await.unwrap();
        all.iter().map(|one| (one.incident.code, one.incident.id.scope)).collect::<Vec<_>>()
    };
    assert_eq!(tick(20).await, [(ConditionCode::HubBackupOld, Scope::Hub)]);
    std::fs::write(&watch.path, "a copy").unwrap();
    // What ended is over once it stayed so for a while.
    tick(30).await;
    assert_eq!(tick(4_000).await, []);
}
