//! The one decision whether a receiver hears of an incident now.
//!
//! Each road to a receiver passes here: first notices, repeats, escalations and resolutions alike. A suppression is
//! data, so that "why was nothing sent?" has an answer.

use std::collections::BTreeSet;
use std::fmt;

use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::id::{OperatorName, ReceiverName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::group::GroupKey;
use crate::incident::Incident;
use crate::name::RuleName;
use crate::reduce::Setting;
use crate::silence::SilenceId;
use crate::state::ScopeState;

/// What would be sent of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// That it fires, got worse, or flaps.
    Fire,
    /// That it still fires.
    Repeat,
    /// That it is over.
    Resolve,
}

/// Why something is not sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why", deny_unknown_fields)]
pub enum Suppression {
    /// An operator acknowledged it.
    Acknowledged {
        /// Who.
        by: OperatorName,
        /// Until when, where that has an end.
        until: Option<Timestamp>,
    },
    /// It comes and goes, and is held open.
    Flapping {},
    /// It waits for the next notice of a group that others are in, too.
    Grouped {
        /// Which.
        into: Box<GroupKey>,
    },
    /// Another condition makes it superfluous.
    Inhibited {
        /// Which.
        by: ConditionCode,
    },
    /// The host is worked on.
    Maintenance {
        /// Until when.
        until: Timestamp,
    },
    /// The receiver never heard that it fired.
    NeverSent {},
    /// It is held until quiet hours are over.
    QuietHours {
        /// Which.
        rule: RuleName,
        /// Until when.
        until: Timestamp,
    },
    /// The receiver is not in the settings any more.
    ReceiverRemoved {},
    /// The receiver does not want to hear when an incident is over.
    ResolvedUnwanted {},
    /// An operator silenced it.
    Silenced {
        /// By which silence.
        id: SilenceId,
        /// Until when.
        until: Timestamp,
    },
    /// No route takes it.
    Unrouted {},
}

impl Suppression {
    /// When it ends by itself, where that is known.
    #[must_use]
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Acknowledged { until, .. } => *until,
            Self::Maintenance { until } | Self::QuietHours { until, .. } | Self::Silenced { until, .. } => {
                Some(*until)
            }
            Self::Flapping {}
            | Self::Grouped { .. }
            | Self::Inhibited { .. }
            | Self::NeverSent {}
            | Self::ReceiverRemoved {}
            | Self::ResolvedUnwanted {}
            | Self::Unrouted {} => None,
        }
    }
}

impl fmt::Display for Suppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acknowledged { by, until: None } => write!(f, "acknowledged by {by}"),
            Self::Acknowledged { by, until: Some(until) } => write!(f, "acknowledged by {by} until {until}"),
            Self::Flapping {} => f.write_str("it comes and goes, and is held open"),
            Self::Grouped { into } => write!(f, "grouped into {into}"),
            Self::Inhibited { by } => write!(f, "inhibited by {by}"),
            Self::Maintenance { until } => write!(f, "the host is in maintenance until {until}"),
            Self::NeverSent {} => f.write_str("the receiver never heard that it fired"),
            Self::QuietHours { rule, until } => write!(f, "held by quiet hours {rule} until {until}"),
            Self::ReceiverRemoved {} => f.write_str("the receiver is not in the settings any more"),
            Self::ResolvedUnwanted {} => f.write_str("the receiver has send_resolved = false"),
            Self::Silenced { id, until } => write!(f, "silenced by {id} until {until}"),
            Self::Unrouted {} => f.write_str("no route takes it"),
        }
    }
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may be sent.
    Deliver,
    /// It may not, now.
    Suppress(Suppression),
}

/// What the decision sees besides the incident.
#[derive(Debug)]
pub struct View<'a> {
    setting: &'a Setting<'a>,
    now: Timestamp,
    /// What holds on the host, or may turn out to: what a pending condition causes is not sent either.
    active: BTreeSet<ConditionCode>,
    maintenance_until: Option<Timestamp>,
}

impl<'a> View<'a> {
    /// Of a scope, now.
    #[must_use]
    pub fn new(state: &ScopeState, setting: &'a Setting<'a>, now: Timestamp) -> Self {
        let active = state.incidents.values().filter(|incident| incident.is_active());
        let current = state.row.maintenance.iter().filter(|window| window.from <= now && now < window.until);
        Self {
            setting,
            now,
            active: active.map(|incident| incident.code).collect(),
            maintenance_until: current.map(|window| window.until).max(),
        }
    }
}

/// Decides whether a receiver hears of an incident now.
#[must_use]
pub fn should_deliver(
    incident: &Incident,
    purpose: Purpose,
    receiver: &ReceiverName,
    view: &View<'_>,
) -> Verdict {
    let View { setting, now, .. } = *view;
    let checks: [&dyn Fn() -> Option<Suppression>; 6] = [
        &|| receiver_wants(purpose, receiver, setting),
        &|| view.maintenance_until.map(|until| Suppression::Maintenance { until }),
        &|| silenced(incident, setting, now),
        &|| inhibited(incident, view),
        &|| acknowledged(incident, purpose, now),
        &|| quiet(incident, receiver, setting, now),
    ];
    checks.iter().find_map(|check| check()).map_or(Verdict::Deliver, Verdict::Suppress)
}

fn receiver_wants(purpose: Purpose, receiver: &ReceiverName, setting: &Setting<'_>) -> Option<Suppression> {
    if !setting.rules.has_receiver(receiver) {
        return Some(Suppression::ReceiverRemoved {});
    }
    let unwanted = purpose == Purpose::Resolve && !setting.rules.sends_resolved(receiver);
    unwanted.then_some(Suppression::ResolvedUnwanted {})
}

fn silenced(incident: &Incident, setting: &Setting<'_>, now: Timestamp) -> Option<Suppression> {
    let labelled = incident.labelled(setting.host);
    let mutes = setting.silences.iter().filter(|silence| silence.mutes(&labelled, now));
    mutes
        .max_by_key(|silence| (silence.until, silence.id))
        .map(|silence| Suppression::Silenced { id: silence.id, until: silence.until })
}

fn inhibited(incident: &Incident, view: &View<'_>) -> Option<Suppression> {
    let inhibits = |source: &&ConditionCode| view.setting.rules.inhibits(**source, incident.code);
    view.active.iter().find(inhibits).map(|by| Suppression::Inhibited { by: *by })
}

fn acknowledged(incident: &Incident, purpose: Purpose, now: Timestamp) -> Option<Suppression> {
    let ack = incident.ack.as_ref().filter(|ack| ack.until.is_none_or(|until| now < until))?;
    match purpose {
        Purpose::Fire | Purpose::Repeat => {
            Some(Suppression::Acknowledged { by: ack.by.clone(), until: ack.until })
        }
        Purpose::Resolve => None,
    }
}

fn quiet(
    incident: &Incident,
    receiver: &ReceiverName,
    setting: &Setting<'_>,
    now: Timestamp,
) -> Option<Suppression> {
    let kind = (incident.code.spec().risk, incident.severity);
    let held = setting.rules.quiet_hours().iter().filter_map(|hours| {
        let until = hours.holds(receiver, kind, now)?;
        Some(Suppression::QuietHours { rule: hours.name.clone(), until })
    });
    held.max_by_key(Suppression::until)
}
