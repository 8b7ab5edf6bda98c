//! What users of other alert engines complained about, each as a test.

use alerts::log::LogKind;
use alerts::notice::IncidentNews;
use alerts::signal::{HostState, Maintenance, Signal};
use alerts::{Reason, Suppression};
use holdfast_protocol::condition::ConditionCode;

use crate::kit::*;

#[test]
fn an_incident_fires_once_and_is_resolved_once_under_one_id() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1)]);
    bench.report(100, &[broken(1)]);
    bench.report(1_000, &[]);
    bench.run_to(20_000);
    assert_eq!(bench.reasons(), [Reason::First, Reason::AllResolved]);
    let ids: Vec<_> = bench.notices.iter().flat_map(|notice| &notice.incidents).map(|one| one.id).collect();
    assert_eq!(ids[0], ids[1]);
    assert_eq!(bench.notices[1].incidents[0].news, IncidentNews::Resolved { at: at(1_120) });
    assert!(bench.state.incidents.is_empty() && bench.state.groups.is_empty(), "nothing is kept for ever");
}

#[test]
fn a_level_of_use_that_holds_is_repeated_until_it_ends() {
    let mut bench = Bench::new(&format!("{PLAIN}repeat_interval_s = 600"));
    let high = [guest(ConditionCode::MemoryHigh, 1)];
    for minute in 0..50 {
        bench.report(minute * 60, &high);
    }
    // A quarter of an hour of grace, then one notice and a repeat every ten minutes.
    assert_eq!(bench.reasons(), [Reason::First, Reason::Repeat, Reason::Repeat, Reason::Repeat]);
    bench.report(3_000, &[]);
    bench.run_to(20_000);
    assert_eq!(bench.reasons().last(), Some(&Reason::AllResolved));
    assert_eq!(bench.reasons().len(), 5, "what is over is not repeated");
}

#[test]
fn a_condition_that_goes_within_its_grace_is_never_sent() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[guest(ConditionCode::GuestCrashed, 1)]);
    bench.report(59, &[]);
    bench.run_to(20_000);
    assert_eq!(bench.notices, []);
}

#[test]
fn what_is_away_when_its_notice_is_due_is_not_announced() {
    let toml = "default_route.receivers = [\"mail\"]";
    let mut bench = Bench::new(toml);
    bench.report(0, &[broken(1)]);
    bench.report(10, &[]);
    bench.run_to(1_000);
    assert_eq!(bench.notices, []);
    let mut back = Bench::new(toml);
    back.report(0, &[broken(1)]);
    back.report(10, &[]);
    assert_eq!(back.report(60, &[broken(1)]).len(), 1);
}

/// Pulse's issue 1682.
#[test]
fn saving_rules_sends_nothing() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1), guest(ConditionCode::GuestCrashed, 2)]);
    bench.report(10, &[broken(1), guest(ConditionCode::GuestCrashed, 2), backup_failed(3)]);
    let (sent, logged, incidents) = (bench.notices.len(), bench.log.len(), bench.state.incidents.clone());
    for toml in ["", "group_by = [\"subject\"]", "[[route]]\nname = \"x\"\nreceivers = [\"chat\"]", PLAIN] {
        bench.rules = rules(toml);
        bench.signal(20, &Signal::RulesChanged);
        assert_eq!((bench.notices.len(), bench.log.len()), (sent, logged), "{toml}");
        assert_eq!(bench.state.incidents, incidents, "{toml}");
    }
}

/// The receiver that replaces another hears of what is known with a repeat, and of no end that it did not hear begin.
#[test]
fn a_receiver_that_is_gone_is_replaced_without_a_notice() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1), broken(2)]);
    let other = "group_wait_s = 0\ndefault_route.receivers = [\"chat\"]";
    let rules: alerts::Rules = toml::from_str(other).unwrap();
    bench.rules = rules.resolve(&[receiver("chat")]).unwrap();
    assert_eq!(bench.signal(60, &Signal::RulesChanged), []);
    assert!(bench.suppressions().contains(&&Suppression::ReceiverRemoved {}));
    bench.report(100, &[broken(1)]);
    assert_eq!(bench.run_to(14_000), [], "the end of the second");
    let repeat = bench.run_to(14_460);
    assert_eq!(
        (repeat[0].reason, repeat[0].receiver.as_str(), repeat[0].incidents.len()),
        (Reason::Repeat, "chat", 1)
    );
}

/// Pulse's issue 1683.
#[test]
fn each_incident_of_a_group_is_in_its_notice() {
    let mut bench = Bench::new("group_wait_s = 30\ndefault_route.receivers = [\"mail\"]");
    for number in 0..40 {
        let until: Vec<_> = (0..=number).map(broken).collect();
        bench.report(i64::try_from(number).unwrap() / 2, &until);
    }
    let sent = bench.run_to(40);
    assert_eq!((sent.len(), sent[0].incidents.len()), (1, 40));
    assert!(bench.suppressions().iter().any(|why| matches!(why, Suppression::Grouped { .. })));
}

/// Pulse's issue 1553.
#[test]
fn what_was_muted_while_it_fired_is_not_resolved_either() {
    let mut bench = Bench::new(PLAIN);
    let window = Maintenance { from: at(0), until: at(500), by: operator() };
    bench.signal(0, &Signal::Maintenance(vec![window]));
    bench.report(10, &[broken(1)]);
    bench.report(100, &[]);
    bench.run_to(20_000);
    assert_eq!(bench.notices, []);
    assert_eq!(
        bench.suppressions(),
        [&Suppression::Maintenance { until: at(500) }, &Suppression::NeverSent {}]
    );
}

/// Uptime Kuma's issue 2846.
#[test]
fn the_end_of_maintenance_announces_only_what_is_new() {
    let mut bench = Bench::new(&format!("{PLAIN}repeat_interval_s = 600"));
    bench.report(0, &[broken(1)]);
    let window = Maintenance { from: at(100), until: at(2_000), by: operator() };
    bench.signal(100, &Signal::Maintenance(vec![window]));
    assert_eq!(bench.report(900, &[broken(1), broken(2)]), []);
    assert_eq!(bench.run_to(1_999), [], "no repeat");
    let end = bench.run_to(2_000);
    assert_eq!((end.len(), end[0].reason), (1, Reason::NewInGroup));
    let mut quiet = Bench::new(&format!("{PLAIN}repeat_interval_s = 600"));
    quiet.report(0, &[broken(1)]);
    let window = Maintenance { from: at(100), until: at(2_000), by: operator() };
    quiet.signal(100, &Signal::Maintenance(vec![window]));
    assert_eq!(
        quiet.run_to(2_300),
        [],
        "nothing new, and the repeat is counted from the last that was muted"
    );
}

#[test]
fn an_acknowledgement_stops_repeats_and_escalation_but_not_the_end() {
    let toml = "group_wait_s = 0\nrepeat_interval_s = 600\n[default_route]\nreceivers = [\"mail\"]\n\
                escalate = { after_s = 900, receivers = [\"boss\"] }";
    let mut plain = Bench::new(toml);
    plain.report(0, &[broken(1)]);
    plain.run_to(1_000);
    assert_eq!(plain.reasons(), [Reason::First, Reason::Repeat, Reason::Escalation]);
    assert_eq!(plain.notices[2].receiver.as_str(), "boss");

    let mut acked = Bench::new(toml);
    acked.report(0, &[broken(1)]);
    acked.signal(100, &Signal::Acknowledge { incident: 1, by: operator(), until: None });
    acked.run_to(10_000);
    assert_eq!(acked.reasons(), [Reason::First]);
    assert!(!acked.log.iter().any(|entry| matches!(entry.what, LogKind::Escalated { .. })));
    acked.report(10_000, &[]);
    acked.run_to(11_000);
    assert_eq!(acked.reasons(), [Reason::First, Reason::AllResolved]);
    assert_eq!(acked.notices[1].incidents[0].acknowledged_by, Some(operator()));
    acked.report(12_000, &[broken(1)]);
    assert_eq!(acked.reasons().last(), Some(&Reason::First), "it was acknowledged for that time alone");

    let mut timed = Bench::new(toml);
    timed.report(0, &[broken(1)]);
    timed.signal(100, &Signal::Acknowledge { incident: 1, by: operator(), until: Some(at(700)) });
    timed.run_to(1_300);
    assert_eq!(timed.reasons(), [Reason::First, Reason::Escalation, Reason::Repeat]);
}

#[test]
fn one_dead_proxmox_is_one_notice() {
    let mut bench = Bench::new("default_route.receivers = [\"mail\"]");
    let mut conditions: Vec<_> = (1..=30).map(|number| guest(ConditionCode::GuestCrashed, number)).collect();
    bench.report(0, &conditions);
    conditions.push(host(ConditionCode::ProxmoxAway));
    bench.report(20, &conditions);
    bench.run_to(3_000);
    assert_eq!(bench.reasons(), [Reason::First]);
    assert_eq!(bench.notices[0].incidents.len(), 1);
    assert_eq!(bench.notices[0].incidents[0].code, ConditionCode::ProxmoxAway);

    bench.report(3_000, &[host(ConditionCode::ProxmoxAway)]);
    bench.run_to(4_000);
    assert_eq!(bench.notices.len(), 1);
    let stale = bench.state.incidents.values().filter(|incident| incident.stale_since.is_some()).count();
    assert_eq!(stale, 30, "unknown is not resolved");

    bench.report(4_000, &[guest(ConditionCode::GuestCrashed, 7)]);
    bench.run_to(5_000);
    assert_eq!(bench.reasons(), [Reason::First, Reason::First, Reason::AllResolved]);
    assert_eq!(bench.notices[1].incidents.len(), 1, "the one that is still down");
}

#[test]
fn an_offline_host_mutes_its_guests() {
    let mut bench = Bench::new(PLAIN);
    bench.host_state(0, HostState::Online);
    bench.report(0, &[broken(1)]);
    bench.host_state(100, HostState::Late);
    bench.host_state(175, HostState::Offline);
    assert_eq!(bench.reasons(), [Reason::First, Reason::First], "late is in the log alone");
    bench.run_to(14_000);
    assert_eq!(bench.notices.len(), 2);
    assert!(bench.state.incidents[&1].stale_since.is_some());
    bench.host_state(20_000, HostState::Online);
    bench.report(20_001, &[]);
    bench.run_to(30_000);
    let after: Vec<_> =
        bench.notices[2..].iter().map(|notice| (notice.reason, notice.incidents.len())).collect();
    assert_eq!(after, [(Reason::Repeat, 1), (Reason::AllResolved, 1), (Reason::AllResolved, 1)]);
}

#[test]
fn late_comes_before_offline_without_delay() {
    let mut bench = Bench::new("[default_route]\nseverity = \"info\"\nreceivers = [\"mail\"]");
    bench.host_state(0, HostState::Late);
    let offline = bench.host_state(75, HostState::Offline);
    assert_eq!(bench.reasons(), [Reason::First, Reason::NewInGroup]);
    assert_eq!(offline[0].not_before, at(75));
    bench.host_state(500, HostState::Online);
    bench.run_to(1_000);
    assert_eq!(bench.reasons().last(), Some(&Reason::AllResolved));
    assert_eq!(bench.notices.len(), 3);
}

/// Alertmanager's issue 1063.
#[test]
fn without_resolved_messages_it_fires_again() {
    let mut bench = Bench::new(&format!("{PLAIN}[[receiver]]\nname = \"mail\"\nsend_resolved = false"));
    bench.report(0, &[broken(1)]);
    bench.report(400, &[]);
    bench.report(1_000, &[broken(1)]);
    bench.run_to(2_000);
    assert_eq!(bench.reasons(), [Reason::First, Reason::First]);
    assert!(bench.suppressions().contains(&&Suppression::ResolvedUnwanted {}));
}

#[test]
fn neither_a_restart_nor_a_step_of_the_clock_raises_anything() {
    let crashed = [guest(ConditionCode::GuestCrashed, 1)];
    let mut forward = Bench::new(PLAIN);
    forward.report(0, &crashed);
    forward.listening_since = at(86_400);
    assert_eq!(forward.signal(86_400, &Signal::Tick), []);
    assert_eq!(forward.signal(86_430, &reported(&[])), []);
    assert_eq!(forward.run_to(90_000), []);

    let mut away = Bench::new(PLAIN);
    away.report(0, &[broken(1)]);
    away.report(100, &[]);
    away.listening_since = at(86_400);
    assert_eq!(away.signal(86_400, &Signal::Tick), [], "it may have come back meanwhile");
    assert_eq!(away.run_to(86_520).len(), 1);

    let mut back = Bench::new(PLAIN);
    back.report(0, &[broken(1)]);
    back.signal(-50_000, &reported(&[broken(1)]));
    assert_eq!(back.run_to(-49_000), [], "nothing is announced twice");
    back.signal(-49_000, &reported(&[]));
    back.run_to(-48_000);
    assert_eq!(back.reasons(), [Reason::First, Reason::AllResolved], "and nothing waits for the old time");
}
