//! Explanations of rules, and notices that try a channel.
//!
//! In: a condition that does not exist. Out: the way that its incident would go, and what would mute it now.

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Severity, Subject};
use holdfast_protocol::id::{OperatorName, ReceiverName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::deliver::{Purpose, Verdict, View, should_deliver};
use crate::group::Entry;
use crate::group_key::GroupKey;
use crate::incident::{Incident, IncidentId, Phase, Scope, Source};
use crate::label::Labels;
use crate::name::RuleName;
use crate::notice::{DedupeKey, IncidentNews, Notice, NoticeIncident, Origin, Reason};
use crate::quiet::Window;
use crate::setting::Setting;
use crate::state::ScopeState;

/// A condition that an operator asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What would be wrong.
    pub code: ConditionCode,
    /// With what.
    pub subject: Subject,
    /// How urgent; without it as the table says.
    pub severity: Option<Severity>,
    /// What the hub would know of the subject.
    pub labels: Labels,
}

/// The way of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// How urgent it is.
    pub severity: Severity,
    /// How long it must last before it fires, in seconds.
    pub fires_after_s: u32,
    /// How long it must be away before it is resolved, in seconds.
    pub clears_after_s: u32,
    /// The first route that takes it; none where it is only in the log.
    pub route: Option<RuleName>,
    /// Who hears of it.
    pub receivers: Vec<ReceiverExplanation>,
    /// What would make it superfluous, if it were wrong as well.
    pub inhibited_by: Vec<ConditionCode>,
}

/// How a receiver hears of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverExplanation {
    /// Which.
    pub receiver: ReceiverName,
    /// Whether by the route, or because it lasts.
    pub entry: Entry,
    /// After how long it lasts, in seconds, where it hears of it because of that.
    pub escalated_after_s: Option<u32>,
    /// The group that it would be in.
    pub group: GroupKey,
    /// How long the first notice would wait, in seconds.
    pub group_wait_s: u32,
    /// The least time to the next one, in seconds.
    pub group_interval_s: u32,
    /// After how long it would be repeated, in seconds.
    pub repeat_interval_s: u32,
    /// Whether it would be sent now.
    pub fire: Verdict,
    /// Whether its end would be sent now.
    pub resolve: Verdict,
    /// The quiet hours of this receiver.
    pub quiet_hours: Vec<QuietExplanation>,
}

/// Quiet hours, as they are now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuietExplanation {
    /// Which.
    pub rule: RuleName,
    /// The window that is open now.
    pub current: Option<Window>,
    /// The next one.
    pub next: Option<Window>,
}

/// Explains what would happen to a condition.
#[must_use]
pub fn explain(sample: &Sample, state: &ScopeState, setting: &Setting<'_>, now: Timestamp) -> Explanation {
    let mut incident = example(sample, state.row.scope, now);
    if incident.subject.guest().is_none() && incident.labels.customer.is_none() {
        incident.labels.customer = setting.customer.cloned();
    }
    let labelled = incident.labelled(setting.host);
    let routes = setting.rules.routes(&labelled);
    let view = View::new(state, setting, now);
    let mut receivers = Vec::new();
    for route in &routes {
        let of = |receiver: &ReceiverName, escalated_after_s: Option<u32>| {
            let pace = setting.rules.pace(route.name);
            let verdict = |purpose| should_deliver(&incident, purpose, receiver, &view);
            ReceiverExplanation {
                receiver: receiver.clone(),
                entry: if escalated_after_s.is_some() { Entry::Escalation } else { Entry::Route },
                escalated_after_s,
                group: GroupKey::of(&incident, route.name, receiver, setting.rules.group_by()),
                group_wait_s: pace.group_wait_s,
                group_interval_s: pace.group_interval_s,
                repeat_interval_s: pace.repeat_interval_s,
                fire: verdict(Purpose::Fire),
                resolve: verdict(Purpose::Resolve),
                quiet_hours: quiet_hours(receiver, setting, now),
            }
        };
        receivers.extend(route.receivers.iter().map(|receiver| of(receiver, None)));
        let escalation = setting.rules.escalation(&labelled).filter(|(name, _)| *name == route.name);
        if let Some((_, escalation)) = escalation {
            receivers.extend(escalation.receivers.iter().map(|to| of(to, Some(escalation.after_s))));
        }
    }
    let inhibits = |source: &&ConditionCode| setting.rules.inhibits(**source, sample.code);
    Explanation {
        severity: incident.severity,
        fires_after_s: setting.rules.fire_after_s(&labelled),
        clears_after_s: setting.rules.clear_after_s(&labelled),
        route: routes.first().map(|route| route.name.clone()),
        receivers,
        inhibited_by: ConditionCode::ALL.iter().filter(inhibits).copied().collect(),
    }
}

fn quiet_hours(receiver: &ReceiverName, setting: &Setting<'_>, now: Timestamp) -> Vec<QuietExplanation> {
    let concerned = setting
        .rules
        .quiet_hours()
        .iter()
        .filter(|hours| hours.receivers.is_empty() || hours.receivers.contains(receiver));
    concerned
        .map(|hours| QuietExplanation {
            rule: hours.name.clone(),
            current: hours.window_at(now),
            next: hours.next_window(now),
        })
        .collect()
}

fn example(sample: &Sample, scope: Scope, now: Timestamp) -> Incident {
    let Sample { code, subject, severity, labels } = sample.clone();
    let condition = ReportedCondition::new(code, subject, now, "an example");
    let incident = Incident::pending(IncidentId { scope, number: 0 }, Source::Hub, (condition, labels), now);
    Incident {
        severity: severity.unwrap_or(incident.severity),
        phase: Phase::Firing { since: now },
        ..incident
    }
}

/// A notice that something fires and one that it is over, to try a channel. The number is the caller's, and is used for
/// one pair only.
#[must_use]
pub fn test_notices(receiver: &ReceiverName, by: &OperatorName, number: u64, now: Timestamp) -> [Notice; 2] {
    let subject = Subject::Receiver { receiver: receiver.clone() };
    let sample =
        Sample { code: ConditionCode::ReceiverFailing, subject, severity: None, labels: Labels::default() };
    let mut incident = example(&sample, Scope::Hub, now);
    let message = format!("{by} tries this channel: nothing is wrong");
    let condition = ReportedCondition::new(sample.code, sample.subject, now, &message);
    incident.message = condition.message;
    let scope = Scope::Hub;
    let notice = |part: u64, news: IncidentNews| Notice {
        key: DedupeKey::of(scope, receiver, Reason::Test, number.saturating_mul(2).saturating_add(part)),
        receiver: receiver.clone(),
        reason: Reason::Test,
        origin: Origin::Test {},
        incidents: vec![NoticeIncident::of(&incident, news, None)],
        made_at: now,
        not_before: now,
    };
    [notice(0, IncidentNews::New {}), notice(1, IncidentNews::Resolved { at: now })]
}
