//! Coming and going of conditions.
//!
//! Unknown is not resolved: what cannot be observed stays as it is, and says since when.

use std::collections::BTreeMap;

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Subject};
use holdfast_protocol::id::HostName;
use jiff::Timestamp;

use super::Work;
use crate::incident::{Incident, IncidentId, Phase, Source};
use crate::label::Labels;
use crate::log::LogKind;
use crate::signal::{Completeness, HostState, ObservedCondition};
use crate::state::INCIDENTS_MAX;
use crate::time::{HOUR_S, before};

const NEVER_SEEN: (ConditionCode, &str) =
    (ConditionCode::HostNeverSeen, "was enrolled and has never reported,");
const LATE: (ConditionCode, &str) = (ConditionCode::HostLate, "is late");
const OFFLINE: (ConditionCode, &str) = (ConditionCode::HostOffline, "is offline");

impl Work<'_> {
    pub(super) fn conditions(
        &mut self,
        source: Source,
        conditions: &[ObservedCondition],
        completeness: Completeness,
    ) {
        let identity =
            |observed: &ObservedCondition| (observed.condition.code, observed.condition.subject.clone());
        let present: BTreeMap<_, _> =
            conditions.iter().map(|observed| (identity(observed), observed)).collect();
        let of_source = self.state.incidents.values().filter(|incident| incident.source == source);
        let mut known: BTreeMap<(ConditionCode, Subject), u64> = of_source
            .map(|incident| ((incident.code, incident.subject.clone()), incident.id.number))
            .collect();
        let mut overflow = 0;
        for (identity, observed) in &present {
            match known.remove(identity) {
                Some(number) => self.present(number, observed),
                None if self.has_room() => self.open(source, observed),
                None => overflow += 1,
            }
        }
        if overflow > 0 {
            self.log(None, LogKind::Overflow { conditions: overflow });
        }
        for number in known.into_values() {
            let Some(incident) = self.state.incidents.get(&number) else { continue };
            let cause = incident.code.spec().cause;
            let hidden = present.keys().any(|(code, _)| code.spec().inhibits.covers(cause));
            match completeness {
                Completeness::Complete if !hidden => self.absent(number),
                Completeness::Complete | Completeness::Partial => self.stale(number, self.now),
            }
        }
    }

    pub(super) fn unknown(&mut self, source: Source, since: Timestamp) {
        for number in self.numbers() {
            if self.state.incidents.get(&number).is_some_and(|incident| incident.source == source) {
                self.stale(number, since.min(self.now));
            }
        }
    }

    pub(super) fn host(&mut self, state: HostState, since: Timestamp) {
        let from = self.state.row.host_state.replace(state);
        if from == Some(state) {
            return;
        }
        self.log(None, LogKind::HostChanged { from, to: state });
        let silence: &[(ConditionCode, &str)] = match state {
            HostState::Online | HostState::Degraded => &[],
            HostState::NeverSeen => &[NEVER_SEEN],
            HostState::Late => &[LATE],
            // A host that is offline is late as well: the first is resolved no earlier than the second.
            HostState::Offline => &[LATE, OFFLINE],
        };
        let observed: Vec<ObservedCondition> =
            silence.iter().map(|(code, says)| self.silence(*code, says, since)).collect();
        self.conditions(Source::Liveness, &observed, Completeness::Complete);
        if !silence.is_empty() {
            self.unknown(Source::Agent, since);
        }
    }

    fn silence(&self, code: ConditionCode, says: &str, since: Timestamp) -> ObservedCondition {
        let name = self.setting.host.map_or("a host", HostName::as_str);
        let message = format!("{name} {says} since {since:.0}");
        let condition = ReportedCondition::new(code, Subject::Host {}, since, &message);
        ObservedCondition { condition, labels: Labels::default() }
    }

    /// What is about no guest belongs to the customer of the host, where it has one.
    fn labels(&self, observed: &ObservedCondition) -> Labels {
        let of_host = self.setting.customer.filter(|_| observed.condition.subject.guest().is_none());
        let customer = observed.labels.customer.as_ref().or(of_host).cloned();
        Labels { customer, ..observed.labels.clone() }
    }

    /// Makes room by dropping the incident that has been over for longest.
    fn has_room(&mut self) -> bool {
        if self.state.incidents.len() < INCIDENTS_MAX {
            return true;
        }
        let over = self.state.incidents.values().filter(|incident| {
            Self::dropped_at(incident).is_some() && !self.state.is_grouped(incident.id.number)
        });
        let oldest =
            over.min_by_key(|incident| Self::dropped_at(incident)).map(|incident| incident.id.number);
        oldest.is_some_and(|number| self.state.incidents.remove(&number).is_some())
    }

    fn open(&mut self, source: Source, observed: &ObservedCondition) {
        self.state.row.incidents_made += 1;
        let number = self.state.row.incidents_made;
        let id = IncidentId { scope: self.state.row.scope, number };
        let reported = (observed.condition.clone(), self.labels(observed));
        let incident = Incident::pending(id, source, reported, self.now);
        self.state.incidents.insert(number, incident);
        self.log(Some(number), LogKind::Opened {});
    }

    fn present(&mut self, number: u64, observed: &ObservedCondition) {
        let (now, grouped) = (self.now, self.state.is_grouped(number));
        let (flips_max, labels) = (self.flips_max(), self.labels(observed));
        let Some(incident) = self.state.incidents.get_mut(&number) else { return };
        let condition = &observed.condition;
        let mut happened = Vec::new();
        incident.reports = incident.reports << 1 | 1;
        incident.message.clone_from(&condition.message);
        incident.remedy.clone_from(&condition.remedy);
        if incident.labels.customer != labels.customer {
            // Receivers of the new customer have not heard of it.
            incident.routed = None;
        }
        incident.labels = labels;
        if incident.stale_since.take().is_some() {
            happened.push(LogKind::Fresh {});
        }
        let from = std::mem::replace(&mut incident.severity, condition.severity);
        let (since, to) = (condition.since.min(now), incident.severity);
        match incident.phase {
            Phase::Resolved { fired, .. } => {
                happened.push(LogKind::Reopened {});
                flip(incident, now, flips_max);
                incident.since = since;
                // A receiver that has not heard that it was over hears nothing; others hear that it fires again.
                incident.phase =
                    if grouped { Phase::Firing { since: fired } } else { Phase::Pending { since: now } };
                (incident.routed, incident.escalated, incident.absent_since) = (None, None, None);
                (incident.ack, incident.ending) = (None, None);
            }
            Phase::Pending { .. } | Phase::Firing { .. } => {
                incident.since = incident.since.min(since);
                if incident.absent_since.take().is_some() {
                    flip(incident, now, flips_max);
                    // The grace is of a condition that does not go away.
                    if let Phase::Pending { since } = &mut incident.phase {
                        *since = now;
                    }
                }
                if from != to {
                    happened.push(LogKind::SeverityChanged { from, to });
                }
                if from < to && incident.ack.take().is_some() {
                    happened.push(LogKind::AckOutgrown {});
                }
            }
        }
        happened.into_iter().for_each(|what| self.log(Some(number), what));
    }

    fn absent(&mut self, number: u64) {
        let (now, flips_max) = (self.now, self.flips_max());
        let Some(incident) = self.state.incidents.get_mut(&number).filter(|known| known.is_active()) else {
            return;
        };
        incident.reports <<= 1;
        let fresh = incident.stale_since.take().is_some();
        if incident.absent_since.is_none() {
            incident.absent_since = Some(now);
            flip(incident, now, flips_max);
        }
        if fresh {
            self.log(Some(number), LogKind::Fresh {});
        }
    }

    fn stale(&mut self, number: u64, since: Timestamp) {
        let Some(incident) = self.state.incidents.get_mut(&number) else { return };
        if incident.is_active() && incident.stale_since.is_none() {
            incident.stale_since = Some(since);
            self.log(Some(number), LogKind::Stale { since });
        }
    }

    /// One more than is needed to see that an incident flaps.
    fn flips_max(&self) -> usize {
        usize::try_from(self.setting.rules.flap().flips_per_hour).unwrap_or(usize::MAX).saturating_add(1)
    }
}

fn flip(incident: &mut Incident, now: Timestamp, flips_max: usize) {
    incident.flips.retain(|at| *at > before(now, HOUR_S));
    incident.flips.push(now);
    let surplus = incident.flips.len().saturating_sub(flips_max);
    incident.flips.drain(..surplus);
}
