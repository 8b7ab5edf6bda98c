//! The one decision whether a receiver hears of an incident now.
//!
//! Each road to a receiver passes here: first notices, repeats, escalations and resolutions alike. A suppression is
//! data, so that "why was nothing sent?" has an answer.

use std::collections::BTreeSet;

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::id::ReceiverName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::incident::Incident;
use crate::setting::Setting;
use crate::state::ScopeState;
use crate::suppression::Suppression;

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
        &|| receiver_wants(incident, purpose, receiver, setting),
        &|| view.maintenance_until.map(|until| Suppression::Maintenance { until }),
        &|| silenced(incident, setting, now),
        &|| inhibited(incident, view),
        &|| acknowledged(incident, purpose, now),
        &|| quiet(incident, receiver, setting, now),
    ];
    checks.iter().find_map(|check| check()).map_or(Verdict::Deliver, Verdict::Suppress)
}

fn receiver_wants(
    incident: &Incident,
    purpose: Purpose,
    receiver: &ReceiverName,
    setting: &Setting<'_>,
) -> Option<Suppression> {
    if matches!(&incident.subject, Subject::Receiver { receiver: failing } if failing == receiver) {
        return Some(Suppression::OwnFailure {});
    }
    if !setting.rules.has_receiver(receiver) {
        return Some(Suppression::ReceiverRemoved {});
    }
    if !setting.rules.may_hear(receiver, incident.labels.customer.as_ref()) {
        return Some(Suppression::OtherCustomer {});
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
