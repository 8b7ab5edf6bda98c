//! Random histories, from seeds, with a restart between any two signals.

use std::collections::{BTreeMap, BTreeSet};

use alerts::group::Group;
use alerts::incident::{Incident, Source};
use alerts::notice::{IncidentNews, Notice};
use alerts::signal::{Completeness, HostState, Maintenance, ObservedCondition, Signal};
use alerts::state::{ScopeRow, ScopeState};
use alerts::{IncidentId, Reason};
use holdfast_protocol::condition::{ConditionCode, Severity};
use holdfast_protocol::id::ReceiverName;

use crate::kit::*;

/// SplitMix64.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

const RULES: [&str; 3] = [
    "default_route.receivers = [\"mail\", \"chat\"]",
    "group_wait_s = 0\ngroup_by = [\"subject\"]\nrepeat_interval_s = 900\n[default_route]\nreceivers = [\"mail\"]\n\
     escalate = { after_s = 1200, receivers = [\"boss\"] }\n[[receiver]]\nname = \"boss\"\nsend_resolved = false",
    "[default_route]\nseverity = \"info\"\nreceivers = [\"chat\"]\n[[quiet_hours]]\nname = \"noon\"\nfrom = \"10:00\"\n\
     until = \"14:00\"\nzone = \"Europe/Vienna\"\n[[route]]\nname = \"bad\"\nseverity = \"critical\"\nreceivers = [\"mail\"]",
];

fn condition(random: &mut Seeded) -> ObservedCondition {
    let number = u128::from(random.next(4));
    let observed = match random.next(6) {
        0 => broken(number),
        1 => guest(ConditionCode::GuestCrashed, number),
        2 => backup_failed(number),
        3 => host(ConditionCode::ProxmoxAway),
        4 => host(ConditionCode::ClockUnkept),
        _ => host(ConditionCode::AuditChainBroken),
    };
    if random.next(4) == 0 { urgent(observed, Severity::Critical) } else { observed }
}

fn signal(random: &mut Seeded, second: i64) -> Signal {
    let mut some = |below| random.next(below);
    match some(24) {
        0..10 => {
            let count = some(6);
            let conditions = (0..count).map(|_| condition(random)).collect();
            let completeness =
                if random.next(8) == 0 { Completeness::Partial } else { Completeness::Complete };
            let source = if random.next(5) == 0 { Source::Hub } else { Source::Agent };
            Signal::Conditions { source, conditions, completeness }
        }
        10..15 => {
            let states = [
                HostState::Online,
                HostState::Degraded,
                HostState::Late,
                HostState::Offline,
                HostState::Online,
            ];
            Signal::Host { state: states[usize::try_from(some(5)).unwrap()], since: at(second) }
        }
        15 => Signal::Unknown { source: Source::Agent, since: at(second) },
        16 | 17 => {
            let until = (some(2) == 0).then(|| at(second + 700));
            Signal::Acknowledge { incident: some(12) + 1, by: operator(), until }
        }
        18 => Signal::Unacknowledge { incident: some(12) + 1, by: operator() },
        19 => {
            let until = at(second + 60 + i64::try_from(some(3_000)).unwrap());
            Signal::Maintenance(vec![Maintenance { from: at(second), until, by: operator() }])
        }
        20 => Signal::GuestDeleted { uid: uid(u128::from(some(4))), by: Some(operator()) },
        21 if some(6) == 0 => Signal::HostRevoked { by: operator() },
        22 => Signal::RulesChanged,
        _ => Signal::Tick,
    }
}

/// What each receiver believes to fire.
#[derive(Default)]
struct Beliefs(BTreeMap<ReceiverName, BTreeSet<IncidentId>>);

impl Beliefs {
    fn hear(&mut self, notice: &Notice, seed: u64) {
        let believed = self.0.entry(notice.receiver.clone()).or_default();
        assert!(!notice.incidents.is_empty(), "seed {seed}: {notice:?}");
        let mut listed = BTreeSet::new();
        for incident in &notice.incidents {
            assert!(listed.insert(incident.id), "seed {seed}: twice in {notice:?}");
            let known = believed.contains(&incident.id);
            match incident.news {
                IncidentNews::New {} => {
                    let unheard = believed.insert(incident.id);
                    // One set of rules keeps ends from this receiver.
                    let no_ends = notice.receiver.as_str() == "boss";
                    assert!(unheard || no_ends, "seed {seed}: {notice:?}");
                }
                IncidentNews::Changed {} | IncidentNews::Ongoing {} => {
                    assert!(known, "seed {seed}: {notice:?}");
                }
                IncidentNews::Resolved { .. } => {
                    assert!(
                        believed.remove(&incident.id),
                        "seed {seed}: an end without a beginning: {notice:?}"
                    );
                }
            }
        }
    }
}

/// As a store would.
fn restarted(state: &ScopeState) -> ScopeState {
    let row: ScopeRow = serde_json::from_str(&serde_json::to_string(&state.row).unwrap()).unwrap();
    let again =
        |incident: &Incident| serde_json::from_str(&serde_json::to_string(incident).unwrap()).unwrap();
    let incidents: Vec<Incident> = state.incidents.values().map(again).collect();
    let again = |group: &Group| serde_json::from_str(&serde_json::to_string(group).unwrap()).unwrap();
    let groups: Vec<Group> = state.groups.values().map(again).collect();
    ScopeState::from_rows(row, incidents, groups)
}

fn history(seed: u64) -> (usize, usize) {
    let mut random = Seeded(seed);
    let mut one = Bench::new(RULES[usize::try_from(seed % 3).unwrap()]);
    let mut other = Bench::new(RULES[usize::try_from(seed % 3).unwrap()]);
    let (mut beliefs, mut keys, mut second) = (Beliefs::default(), BTreeSet::new(), 0);
    for _ in 0..120 {
        second += i64::try_from(random.next(400)).unwrap();
        if random.next(40) == 0 {
            second -= 2_000;
        }
        let sent_before = one.notices.len();
        let signal = signal(&mut random, second);
        if signal == Signal::RulesChanged {
            let toml = RULES[usize::try_from(random.next(3)).unwrap()];
            (one.rules, other.rules) = (rules(toml), rules(toml));
        }
        one.run_to(second);
        let sent_by_ticks = one.notices.len();
        let before = one.state.clone();
        one.signal(second, &signal);
        assert!(signal != Signal::RulesChanged || one.notices.len() == sent_by_ticks, "seed {seed}");
        other.state = restarted(&other.state);
        other.run_to(second);
        other.state = restarted(&other.state);
        other.signal(second, &signal);
        for notice in &one.notices[sent_before..] {
            beliefs.hear(notice, seed);
            assert!(keys.insert(notice.key.clone()), "seed {seed}: {} twice", notice.key);
            assert_ne!(notice.reason, Reason::Test);
        }
        rows_make_the_state(&before, &one.state, seed);
    }
    assert_eq!((&one.state, &one.log), (&other.state, &other.log), "seed {seed}");
    assert_eq!(one.notices, other.notices, "seed {seed}");
    (one.notices.len(), one.log.len())
}

/// The changed rows, laid over the old ones, are the new ones.
fn rows_make_the_state(before: &ScopeState, after: &ScopeState, seed: u64) {
    let changes = after.changed_since(before);
    let mut made = before.clone();
    made.row = changes.row.unwrap_or(made.row);
    changes.incidents_removed.iter().for_each(|number| drop(made.incidents.remove(number)));
    changes.groups_removed.iter().for_each(|key| drop(made.groups.remove(key)));
    made.incidents.extend(changes.incidents.into_iter().map(|incident| (incident.id.number, incident)));
    made.groups.extend(changes.groups.into_iter().map(|group| (group.key.clone(), group)));
    assert_eq!(&made, after, "seed {seed}");
}

#[test]
fn a_restart_between_any_two_signals_changes_nothing() {
    let (mut notices, mut entries) = (0, 0);
    for seed in 0..40 {
        let (sent, logged) = history(seed);
        (notices, entries) = (notices + sent, entries + logged);
    }
    assert!(
        notices > 400 && entries > 4_000,
        "the histories are empty: {notices} notices, {entries} entries"
    );
}
