//! Checks of rules, each fault with its path.

use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::id::ReceiverName;

use super::{Escalation, Rules};
use crate::name::RuleName;

/// As many entries as a list of rules has.
const ENTRIES_MAX: usize = 256;

/// A month, in seconds.
const MONTH_S: u32 = 31 * 86_400;

/// A fault, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {fault}")]
pub struct RulesError {
    /// Such as `route[2].receivers`.
    pub path: String,
    /// What is wrong there.
    #[source]
    pub fault: RulesFault,
}

/// What can be wrong with rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesFault {
    /// A number out of range.
    #[error("{value} is out of range: {min} to {max} are possible")]
    Range { value: u32, min: u32, max: u32 },
    /// A list that is too long.
    #[error("{0} entries; at most {ENTRIES_MAX} are accepted")]
    Length(usize),
    /// A channel that does not exist.
    #[error("no channel is called {0}: add it to the settings, or correct the name")]
    Receiver(ReceiverName),
    /// A name twice.
    #[error("{0} is there twice")]
    Twice(String),
    /// The name of the last route.
    #[error("the name {0} is taken by `default_route`")]
    Reserved(RuleName),
    /// Nothing where something must be.
    #[error("it is empty, and would do nothing")]
    Empty,
    /// An escalation to a receiver that hears of it anyway.
    #[error("{0} hears of it before the escalation: name another receiver, or use `repeat_interval_s`")]
    EscalatesToSame(ReceiverName),
    /// Quiet hours of no length, or of a whole day.
    #[error("`from` and `until` are the same time")]
    SameTime,
    /// Two conditions that would mute each other.
    #[error("{0} is muted by itself, or by one of its targets: neither would ever be sent")]
    InhibitsItself(ConditionCode),
}

struct Faults<'a> {
    found: Vec<RulesError>,
    channels: &'a [ReceiverName],
}

/// Every fault.
pub(super) fn faults(rules: &Rules, channels: &[ReceiverName]) -> Vec<RulesError> {
    let mut faults = Faults { found: Vec::new(), channels };
    faults.times(rules);
    faults.lists(rules);
    for (at, rule) in rules.grace.iter().enumerate() {
        faults.empty(format!("grace[{at}].matchers"), &rule.matchers);
        faults.range(format!("grace[{at}].fire_after_s"), rule.fire_after_s, (0, MONTH_S));
        faults.range(format!("grace[{at}].clear_after_s"), rule.clear_after_s, (0, MONTH_S));
    }
    faults.routes(rules);
    faults.quiet_hours(rules);
    for (at, rule) in rules.inhibit.iter().enumerate() {
        let back = |target: &ConditionCode| mutes(rules, *target, rule.source);
        if rule.targets.iter().any(|target| *target == rule.source || back(target)) {
            faults.add(format!("inhibit[{at}]"), RulesFault::InhibitsItself(rule.source));
        }
        faults.empty(format!("inhibit[{at}].targets"), &rule.targets);
    }
    for (at, rule) in rules.receiver.iter().enumerate() {
        faults.receivers(&format!("receiver[{at}].name"), std::slice::from_ref(&rule.name));
    }
    faults.found
}

fn mutes(rules: &Rules, source: ConditionCode, target: ConditionCode) -> bool {
    source.spec().inhibits.covers(target.spec().cause)
        || rules.inhibit.iter().any(|rule| rule.source == source && rule.targets.contains(&target))
}

impl Faults<'_> {
    fn add(&mut self, path: impl Into<String>, fault: RulesFault) {
        self.found.push(RulesError { path: path.into(), fault });
    }

    fn range(&mut self, path: impl Into<String>, value: Option<u32>, (min, max): (u32, u32)) {
        if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
            self.add(path, RulesFault::Range { value, min, max });
        }
    }

    fn empty<T>(&mut self, path: String, list: &[T]) {
        if list.is_empty() {
            self.add(path, RulesFault::Empty);
        }
    }

    fn times(&mut self, rules: &Rules) {
        let flap = rules.flap;
        for (path, value, range) in [
            ("group_wait_s", rules.group_wait_s, (0, 3_600)),
            ("group_interval_s", rules.group_interval_s, (10, 86_400)),
            ("repeat_interval_s", rules.repeat_interval_s, (60, MONTH_S)),
            ("clear_after_s", rules.clear_after_s, (0, 86_400)),
            ("flap.fire_reports", flap.fire_reports, (1, flap.of_reports.clamp(1, 32))),
            ("flap.of_reports", flap.of_reports, (1, 32)),
            ("flap.flips_per_hour", flap.flips_per_hour, (2, 60)),
            ("flap.hold_open_s", flap.hold_open_s, (60, 86_400)),
        ] {
            self.range(path, Some(value), range);
        }
    }

    fn lists(&mut self, rules: &Rules) {
        for (path, length) in [
            ("group_by", rules.group_by.len()),
            ("grace", rules.grace.len()),
            ("route", rules.route.len()),
            ("quiet_hours", rules.quiet_hours.len()),
            ("inhibit", rules.inhibit.len()),
            ("receiver", rules.receiver.len()),
        ] {
            if length > ENTRIES_MAX {
                self.add(path, RulesFault::Length(length));
            }
        }
        self.twice("route", rules.route.iter().map(|route| route.name.as_str()));
        self.twice("quiet_hours", rules.quiet_hours.iter().map(|hours| hours.name.as_str()));
        self.twice("receiver", rules.receiver.iter().map(|rule| rule.name.as_str()));
    }

    fn twice<'b>(&mut self, path: &str, names: impl Iterator<Item = &'b str>) {
        let mut known = std::collections::BTreeSet::new();
        for (at, name) in names.enumerate() {
            if !known.insert(name) {
                self.add(format!("{path}[{at}]"), RulesFault::Twice(name.to_owned()));
            }
        }
    }

    fn receivers(&mut self, path: &str, receivers: &[ReceiverName]) {
        let channels = self.channels;
        for receiver in receivers.iter().filter(|receiver| !channels.contains(receiver)) {
            self.add(path, RulesFault::Receiver(receiver.clone()));
        }
        self.twice(path, receivers.iter().map(ReceiverName::as_str));
    }

    fn escalation(&mut self, path: &str, escalate: Option<&Escalation>, before: &[ReceiverName]) {
        let Some(escalate) = escalate else { return };
        self.range(format!("{path}.after_s"), Some(escalate.after_s), (60, MONTH_S));
        self.empty(format!("{path}.receivers"), &escalate.receivers);
        self.receivers(&format!("{path}.receivers"), &escalate.receivers);
        for same in escalate.receivers.iter().filter(|receiver| before.contains(receiver)) {
            self.add(format!("{path}.receivers"), RulesFault::EscalatesToSame(same.clone()));
        }
    }

    fn routes(&mut self, rules: &Rules) {
        for (at, route) in rules.route.iter().enumerate() {
            let path = format!("route[{at}]");
            if route.name == RuleName::default_route() {
                self.add(format!("{path}.name"), RulesFault::Reserved(route.name.clone()));
            }
            self.receivers(&format!("{path}.receivers"), &route.receivers);
            self.range(format!("{path}.group_wait_s"), route.group_wait_s, (0, 3_600));
            self.range(format!("{path}.group_interval_s"), route.group_interval_s, (10, 86_400));
            self.range(format!("{path}.repeat_interval_s"), route.repeat_interval_s, (60, MONTH_S));
            self.escalation(&format!("{path}.escalate"), route.escalate.as_ref(), &route.receivers);
        }
        let fallback = &rules.default_route;
        let before = if fallback.receivers.is_empty() { self.channels } else { &fallback.receivers };
        self.receivers("default_route.receivers", &fallback.receivers);
        self.escalation("default_route.escalate", fallback.escalate.as_ref(), before);
    }

    fn quiet_hours(&mut self, rules: &Rules) {
        for (at, hours) in rules.quiet_hours.iter().enumerate() {
            if hours.from == hours.until {
                self.add(format!("quiet_hours[{at}].until"), RulesFault::SameTime);
            }
            self.receivers(&format!("quiet_hours[{at}].receivers"), &hours.receivers);
        }
    }
}
