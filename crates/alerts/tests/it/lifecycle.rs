//! Incidents over time: clearing, flapping, reports that leave something out, silences, routes.

use alerts::incident::Source;
use alerts::label::Labels;
use alerts::log::LogKind;
use alerts::notice::IncidentNews;
use alerts::signal::{Completeness, ObservedCondition, Signal};
use alerts::silence::{Silence, SilenceError, SilenceId};
use alerts::state::INCIDENTS_MAX;
use alerts::{IncidentId, Reason, Suppression};
use holdfast_protocol::condition::{ConditionCode, ConditionText, Severity, Subject};

use crate::kit::*;

#[test]
fn a_short_absence_is_no_end() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1)]);
    bench.report(100, &[]);
    bench.report(219, &[broken(1)]);
    bench.run_to(3_000);
    assert_eq!(bench.reasons(), [Reason::First]);
    assert_eq!(bench.state.incidents[&1].flips.len(), 2);
}

#[test]
fn what_comes_back_within_an_hour_keeps_its_id() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1)]);
    bench.report(400, &[]);
    bench.report(1_000, &[broken(1)]);
    bench.report(10_000, &[]);
    bench.report(20_000, &[broken(1)]);
    let numbers: Vec<u64> = bench.notices.iter().map(|notice| notice.incidents[0].id.number).collect();
    assert_eq!(bench.reasons()[..3], [Reason::First, Reason::AllResolved, Reason::First]);
    assert_eq!(numbers[..3], [1, 1, 1]);
    assert_eq!(numbers.last(), Some(&2), "after an hour it is another incident");
}

#[test]
fn a_change_for_the_worse_is_news_and_outgrows_an_acknowledgement() {
    let filling =
        observed(ConditionCode::StorageFilling, Subject::Storage { storage: "tank".parse().unwrap() });
    let mut bench = Bench::new(&format!(
        "{PLAIN}grace = [{{ matchers = [\"code=STORAGE_FILLING\"], fire_after_s = 0 }}]"
    ));
    bench.report(0, std::slice::from_ref(&filling));
    bench.signal(10, &Signal::Acknowledge { incident: 1, by: operator(), until: None });
    bench.report(1_000, &[urgent(filling.clone(), Severity::Critical)]);
    assert_eq!(bench.reasons(), [Reason::First, Reason::NewInGroup]);
    assert_eq!(bench.notices[1].incidents[0].news, IncidentNews::Changed {});
    assert_eq!(bench.notices[1].severity(), Severity::Critical);
    assert!(bench.state.incidents[&1].ack.is_none());
    bench.report(2_000, &[filling]);
    bench.run_to(3_000);
    assert_eq!(bench.notices.len(), 2, "better is no news");
}

#[test]
fn flapping_is_said_once_and_held_open() {
    let mut bench = Bench::new(PLAIN);
    for cycle in 0..20 {
        bench.report(cycle * 200, &[broken(1)]);
        bench.report(cycle * 200 + 100, &[]);
    }
    assert_eq!(bench.reasons(), [Reason::First, Reason::Flapping]);
    assert!(bench.state.incidents[&1].flips.len() <= 7);
    assert_eq!(bench.run_to(3_900 + 1_799), []);
    let end = bench.run_to(3_900 + 1_800);
    assert_eq!((end.len(), end[0].reason), (1, Reason::AllResolved));
    bench.run_to(100_000);
    assert_eq!(bench.notices.len(), 3);
}

/// Each crash is shorter than the grace of a crash.
#[test]
fn a_crash_loop_fires_although_no_crash_lasts() {
    let mut bench = Bench::new(PLAIN);
    for cycle in 0..20 {
        bench.report(cycle * 60, &[guest(ConditionCode::GuestCrashed, 1)]);
        bench.report(cycle * 60 + 30, &[]);
    }
    assert_eq!(bench.reasons(), [Reason::First]);
    assert!(bench.notices[0].incidents[0].flapping_since.is_some());
}

#[test]
fn a_condition_fires_when_it_was_in_enough_of_the_last_reports() {
    let toml = format!("{PLAIN}flap = {{ fire_reports = 2, of_reports = 3 }}");
    let mut once = Bench::new(&toml);
    once.report(0, &[broken(1)]);
    once.report(30, &[]);
    once.run_to(1_000);
    assert_eq!(once.notices, []);
    let mut twice = Bench::new(&toml);
    twice.report(0, &[broken(1)]);
    twice.report(30, &[]);
    assert_eq!(twice.report(60, &[broken(1)]).len(), 1);
}

#[test]
fn unknown_is_neither_fired_nor_resolved() {
    let crashed = guest(ConditionCode::GuestCrashed, 2);
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1), crashed.clone()]);
    bench.signal(30, &Signal::Unknown { source: Source::Agent, since: at(20) });
    assert_eq!(bench.run_to(10_000), []);
    assert_eq!(bench.state.incidents[&1].stale_since, Some(at(20)));
    let partial = Signal::Conditions {
        source: Source::Agent,
        conditions: vec![broken(3)],
        completeness: Completeness::Partial,
    };
    bench.signal(10_000, &partial);
    bench.run_to(14_000);
    assert_eq!(bench.reasons(), [Reason::First, Reason::NewInGroup]);
    assert_eq!(bench.notices[1].incidents.len(), 2, "what is stale still fires");
    let of_hub = Signal::Conditions {
        source: Source::Hub,
        conditions: Vec::new(),
        completeness: Completeness::Complete,
    };
    bench.signal(14_001, &of_hub);
    assert!(bench.state.incidents[&1].is_active(), "another source says nothing of it");
    bench.report(14_002, &[crashed]);
    bench.run_to(14_400);
    assert_eq!(bench.reasons()[2..], [Reason::NewInGroup, Reason::SomeResolved]);
}

fn silence(until: i64) -> Silence {
    Silence {
        id: SilenceId(3),
        matchers: vec!["host=pve1".parse().unwrap(), "cause=guest".parse().unwrap()],
        from: at(0),
        until: at(until),
        by: operator(),
        comment: ConditionText::clipped("a move"),
    }
}

#[test]
fn a_silence_mutes_by_labels_until_its_end() {
    let mut bench = Bench::new(PLAIN);
    bench.silences.push(silence(1_000));
    bench.signal(0, &Signal::SilenceAdded(SilenceId(3)));
    bench.report(10, &[broken(1), backup_failed(1)]);
    assert_eq!(bench.notices.len(), 1);
    assert_eq!(bench.suppressions(), [&Suppression::Silenced { id: SilenceId(3), until: at(1_000) }]);
    let end = bench.run_to(1_000);
    assert_eq!((end.len(), end[0].reason), (1, Reason::First));

    let mut known = Bench::new(PLAIN);
    known.report(0, &[broken(1)]);
    known.silences.push(silence(1_000));
    known.report(100, &[]);
    assert_eq!(known.run_to(999), []);
    assert_eq!(known.run_to(1_000)[0].reason, Reason::AllResolved, "nothing stays open outside");
}

#[test]
fn a_silence_without_a_value_is_refused() {
    let mut all = silence(10);
    all.matchers = vec!["customer=".parse().unwrap(), "host!=x".parse().unwrap()];
    assert_eq!(all.check(), Err(SilenceError::Everything));
    assert_eq!(silence(0).check(), Err(SilenceError::Ends));
    assert_eq!(silence(10).check(), Ok(()));
}

fn of_customer(observed: ObservedCondition, customer: &str) -> ObservedCondition {
    let labels = Labels {
        customer: Some(customer.parse().unwrap()),
        policy: Some("gold".parse().unwrap()),
        ..Labels::default()
    };
    ObservedCondition { labels, ..observed }
}

#[test]
fn routes_choose_receivers_by_severity_and_customer() {
    let mut bench = Bench::new(
        "group_wait_s = 0\n[[route]]\nname = \"acme\"\nmatchers = [\"customer=acme\"]\nreceivers = [\"chat\"]\n\
         [[route]]\nname = \"urgent\"\nseverity = \"critical\"\nreceivers = [\"boss\", \"mail\"]\n\
         [[route]]\nname = \"none\"\nmatchers = [\"cause=update\"]\nreceivers = []",
    );
    let late = guest(ConditionCode::GuestParked, 2);
    let old = host(ConditionCode::GoldenOld);
    bench.report(0, &[of_customer(broken(1), "acme"), broken(3), late, old]);
    let mut sent: Vec<_> = bench
        .notices
        .iter()
        .map(|notice| (notice.receiver.as_str(), notice.incidents[0].code.as_str()))
        .collect();
    sent.sort_unstable();
    assert_eq!(
        sent,
        [
            ("boss", "GUEST_BROKEN"),
            ("boss", "GUEST_PARKED"),
            ("chat", "GUEST_BROKEN"),
            ("chat", "GUEST_PARKED"),
            ("mail", "GUEST_BROKEN"),
            ("mail", "GUEST_PARKED"),
        ]
    );
    assert!(bench.suppressions().contains(&&Suppression::Unrouted {}));
}

/// A dead channel must be heard of by another one.
#[test]
fn a_failing_receiver_is_reported_to_the_others() {
    let failing = observed(ConditionCode::ReceiverFailing, Subject::Receiver { receiver: receiver("mail") });
    let mut bench = Bench::new("default_route.receivers = [\"mail\", \"chat\"]");
    bench.report(0, &[failing]);
    bench.run_to(2_000);
    let receivers: Vec<&str> = bench.notices.iter().map(|notice| notice.receiver.as_str()).collect();
    assert_eq!(receivers, ["chat"]);
    assert!(bench.suppressions().contains(&&Suppression::OwnFailure {}));
}

#[test]
fn ids_are_read_as_they_are_shown() {
    for text in ["hub-1", "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55-42"] {
        assert_eq!(text.parse::<IncidentId>().unwrap().to_string(), text);
    }
    for bad in ["hub", "hub-", "hub-01", "pve1-3", "hub--1", "-3", "hub/1"] {
        assert!(bad.parse::<IncidentId>().is_err(), "{bad}");
    }
}

#[test]
fn grace_can_depend_on_the_policy() {
    let toml = format!(
        "{PLAIN}grace = [{{ matchers = [\"policy=gold\", \"code=GUEST_CRASHED\"], fire_after_s = 5 }}]"
    );
    let mut bench = Bench::new(&toml);
    bench.report(
        0,
        &[guest(ConditionCode::GuestCrashed, 1), of_customer(guest(ConditionCode::GuestCrashed, 2), "a")],
    );
    assert_eq!(bench.run_to(5).len(), 1);
    assert_eq!(bench.notices[0].incidents[0].subject, Subject::Guest { uid: uid(2) });
}

#[test]
fn a_host_has_a_bounded_number_of_incidents() {
    let mut bench = Bench::new(PLAIN);
    for round in 0..10_u128 {
        let conditions: Vec<_> = (0..500).map(|number| broken(round * 500 + number)).collect();
        bench.signal(i64::try_from(round).unwrap(), &reported(&conditions));
        assert!(bench.state.incidents.len() <= INCIDENTS_MAX);
    }
    assert!(bench.log.iter().any(|entry| entry.what == LogKind::Overflow { conditions: 404 }));
    let last: Vec<_> = (4_500..5_000).map(broken).collect();
    bench.report(500, &last);
    bench.report(4_000, &last);
    bench.run_to(8_000);
    assert_eq!(bench.state.incidents.len(), 500);
    assert!(bench.state.incidents.values().all(|incident| incident.firing_since().is_some()));
}
