//! One scope under test, with everything that it sent and logged.

use alerts::incident::Source;
use alerts::label::Labels;
use alerts::log::{LogEntry, LogKind};
use alerts::notice::Notice;
use alerts::rules::{Rules, Ruleset};
use alerts::signal::{Completeness, HostState, ObservedCondition, Signal};
use alerts::silence::Silence;
use alerts::state::ScopeState;
use alerts::{Reason, Scope, Setting, Suppression, next};
use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Severity, Subject};
use holdfast_protocol::id::{CustomerId, GuestUid, HostId, HostName, OperatorName, ReceiverName};
use holdfast_protocol::protection::Tier;
use jiff::Timestamp;
use uuid::Uuid;

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub fn receiver(name: &str) -> ReceiverName {
    name.parse().unwrap()
}

pub fn operator() -> OperatorName {
    "eva".parse().unwrap()
}

pub fn uid(number: u128) -> GuestUid {
    GuestUid::new(Uuid::from_u128(number))
}

pub fn observed(code: ConditionCode, subject: Subject) -> ObservedCondition {
    let condition = ReportedCondition::new(code, subject, at(0), "as it is");
    ObservedCondition { condition, labels: Labels::default() }
}

pub fn guest(code: ConditionCode, number: u128) -> ObservedCondition {
    observed(code, Subject::Guest { uid: uid(number) })
}

pub fn host(code: ConditionCode) -> ObservedCondition {
    observed(code, Subject::Host {})
}

/// A condition that endangers data.
pub fn backup_failed(number: u128) -> ObservedCondition {
    observed(ConditionCode::BackupFailed, Subject::Tier { uid: uid(number), tier: Tier::Local })
}

/// A condition that does not, and fires at once.
pub fn broken(number: u128) -> ObservedCondition {
    guest(ConditionCode::GuestBroken, number)
}

pub fn urgent(mut observed: ObservedCondition, severity: Severity) -> ObservedCondition {
    observed.condition.severity = severity;
    observed
}

pub fn rules(toml: &str) -> Ruleset {
    let rules: Rules = toml::from_str(toml).unwrap();
    rules.resolve(&["mail", "chat", "boss"].map(receiver)).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// To one receiver alone, without waiting.
pub const PLAIN: &str = "group_wait_s = 0\ndefault_route.receivers = [\"mail\"]\n";

pub struct Bench {
    pub state: ScopeState,
    pub rules: Ruleset,
    pub silences: Vec<Silence>,
    pub host: HostName,
    /// Who all guests of the host belong to.
    pub customer: Option<CustomerId>,
    pub listening_since: Timestamp,
    pub now: Timestamp,
    pub log: Vec<LogEntry>,
    pub notices: Vec<Notice>,
}

impl Bench {
    pub fn new(toml: &str) -> Self {
        Self {
            state: ScopeState::new(Scope::Host(HostId::new(Uuid::from_u128(1)))),
            rules: rules(toml),
            silences: Vec::new(),
            host: "pve1".parse().unwrap(),
            customer: None,
            listening_since: at(-1_000_000),
            now: at(0),
            log: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Gives a signal at a second, without the ticks before it.
    pub fn signal(&mut self, second: i64, signal: &Signal) -> Vec<Notice> {
        self.now = at(second);
        let setting = Setting {
            rules: &self.rules,
            silences: &self.silences,
            host: Some(&self.host),
            customer: self.customer.as_ref(),
            listening_since: self.listening_since,
        };
        let decision = next(&self.state, signal, &setting, self.now);
        assert!(decision.state.row.due.is_none_or(|due| due > self.now), "a tick would be due for ever");
        self.state = decision.state;
        self.log.extend(decision.log);
        self.notices.extend(decision.notices.iter().cloned());
        decision.notices
    }

    /// All conditions of the agent.
    pub fn report(&mut self, second: i64, conditions: &[ObservedCondition]) -> Vec<Notice> {
        self.run_to(second);
        self.signal(second, &reported(conditions))
    }

    pub fn host_state(&mut self, second: i64, state: HostState) -> Vec<Notice> {
        self.run_to(second);
        self.signal(second, &Signal::Host { state, since: at(second) })
    }

    /// Gives each tick that is due until a second.
    pub fn run_to(&mut self, second: i64) -> Vec<Notice> {
        let mut sent = Vec::new();
        for _ in 0..10_000 {
            let Some(due) = self.state.row.due.filter(|due| *due <= at(second)) else { return sent };
            sent.extend(self.signal(due.as_second() - at(0).as_second(), &Signal::Tick));
        }
        panic!("ticks without end");
    }

    pub fn reasons(&self) -> Vec<Reason> {
        self.notices.iter().map(|notice| notice.reason).collect()
    }

    pub fn suppressions(&self) -> Vec<&Suppression> {
        self.log.iter().filter_map(|entry| suppressed(&entry.what)).collect()
    }
}

const fn suppressed(what: &LogKind) -> Option<&Suppression> {
    match what {
        LogKind::Suppressed { why, .. } => Some(why),
        _ => None,
    }
}

pub fn reported(conditions: &[ObservedCondition]) -> Signal {
    Signal::Conditions {
        source: Source::Agent,
        conditions: conditions.to_vec(),
        completeness: Completeness::Complete,
    }
}
