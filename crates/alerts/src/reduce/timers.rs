//! Transitions by time: pending to firing, firing to resolved, flapping.
//!
//! An incident of which nothing newer is known makes none of them.

use jiff::Timestamp;

use super::Work;
use crate::incident::{Incident, Phase};
use crate::log::LogKind;
use crate::rules::Flap;
use crate::suppression::Suppression;
use crate::time::{HOUR_S, after, before};

/// What becomes of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transition {
    Stay,
    Fire,
    Withdraw,
    Resolve,
}

impl Work<'_> {
    pub(super) fn advance(&mut self) {
        for number in self.numbers() {
            self.expire(number);
            self.flapping(number);
            let Some(incident) = self.state.incidents.get(&number) else { continue };
            match self.transition(incident) {
                Transition::Stay => {}
                Transition::Fire => self.enter(number, Phase::Firing { since: self.now }, LogKind::Fired {}),
                Transition::Withdraw => {
                    self.state.incidents.remove(&number);
                    self.log(Some(number), LogKind::Withdrawn {});
                }
                Transition::Resolve => {
                    let fired = incident.firing_since().unwrap_or(self.now);
                    self.enter(number, Phase::Resolved { fired, at: self.now }, LogKind::Resolved {});
                }
            }
            // A condition that fires because it flaps says so at once.
            self.flapping(number);
        }
    }

    fn enter(&mut self, number: u64, phase: Phase, what: LogKind) {
        let Some(incident) = self.state.incidents.get_mut(&number) else { return };
        incident.phase = phase;
        if !incident.is_active() {
            (incident.flapping, incident.absent_since) = (None, None);
        }
        self.log(Some(number), what);
    }

    /// Forgets what is over: flips of more than an hour ago, and acknowledgements by their time.
    fn expire(&mut self, number: u64) {
        let now = self.now;
        let Some(incident) = self.state.incidents.get_mut(&number) else { return };
        incident.flips.retain(|at| *at > before(now, HOUR_S));
        let ack_until = incident.ack.as_ref().and_then(|ack| ack.until);
        if incident.is_active() && ack_until.is_some_and(|until| until <= now) {
            incident.ack = None;
            self.log(Some(number), LogKind::AckExpired {});
        }
    }

    fn flapping(&mut self, number: u64) {
        let (now, flap) = (self.now, self.setting.rules.flap());
        let Some(incident) = self.state.incidents.get_mut(&number) else { return };
        if incident.firing_since().is_none() || incident.stale_since.is_some() {
            return;
        }
        let flips = flips(incident);
        if incident.flapping.is_none() && flips > flap.flips_per_hour {
            incident.flapping = Some(now);
            self.log(Some(number), LogKind::FlappingBegan { flips });
            self.log(Some(number), LogKind::Suppressed { receiver: None, why: Suppression::Flapping {} });
        } else if incident.flapping.is_some() && incident.absent_since.is_none() && is_calm(flips, flap) {
            incident.flapping = None;
            self.log(Some(number), LogKind::FlappingEnded {});
        }
    }

    fn transition(&self, incident: &Incident) -> Transition {
        let flap = self.setting.rules.flap();
        let due = self.transition_due(incident).is_some_and(|at| at <= self.now);
        match (incident.phase, incident.absent_since) {
            (Phase::Pending { .. }, None) if due => Transition::Fire,
            (Phase::Pending { .. }, _) if is_known(incident) && flips(incident) > flap.flips_per_hour => {
                Transition::Fire
            }
            (Phase::Pending { .. }, Some(_)) if due => Transition::Withdraw,
            (Phase::Firing { .. }, Some(_)) if due => Transition::Resolve,
            (Phase::Pending { .. } | Phase::Firing { .. } | Phase::Resolved { .. }, _) => Transition::Stay,
        }
    }

    /// When the next transition by time is due, as far as no signal comes before.
    pub(super) fn transition_due(&self, incident: &Incident) -> Option<Timestamp> {
        if !is_known(incident) {
            return None;
        }
        let (rules, labelled) = (self.setting.rules, self.labelled(incident));
        match (incident.phase, incident.absent_since) {
            (Phase::Pending { since }, None) => {
                let fires = after(self.counted_from(since), rules.fire_after_s(&labelled));
                is_frequent(incident, rules.flap()).then_some(fires)
            }
            (Phase::Firing { .. }, Some(absent)) if incident.flapping.is_some() => {
                Some(after(self.counted_from(absent), rules.flap().hold_open_s))
            }
            (Phase::Pending { .. } | Phase::Firing { .. }, Some(absent)) => {
                Some(after(self.counted_from(absent), rules.clear_after_s(&labelled)))
            }
            // It stops flapping when enough of its flips are an hour ago.
            (Phase::Firing { .. }, None) => {
                let oldest = incident.flips.first().filter(|_| incident.flapping.is_some());
                oldest.map(|oldest| after(*oldest, HOUR_S))
            }
            (Phase::Resolved { .. }, _) => None,
        }
    }
}

const fn is_known(incident: &Incident) -> bool {
    incident.stale_since.is_none()
}

fn flips(incident: &Incident) -> u32 {
    u32::try_from(incident.flips.len()).unwrap_or(u32::MAX)
}

const fn is_calm(flips: u32, flap: Flap) -> bool {
    flips.saturating_mul(2) <= flap.flips_per_hour
}

/// Whether it was in enough of the last reports to fire.
fn is_frequent(incident: &Incident, flap: Flap) -> bool {
    (incident.reports & mask(flap.of_reports)).count_ones() >= flap.fire_reports
}

/// The lowest bits, one for each report that counts.
fn mask(reports: u32) -> u32 {
    1_u32.checked_shl(reports).map_or(u32::MAX, |above| above - 1)
}
