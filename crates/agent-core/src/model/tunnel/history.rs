//! The state of a tunnel over several readings.
//!
//! In: readings, one after the other. Out: what is reported. A state that an answer could have been lost for is taken
//! when two readings in a row say so, and counts from the first of them. What does not change keeps its times, so that a
//! quiet tunnel makes no new report.

use holdfast_protocol::report::{
    ConnectionReport, ProbeReport, ProbeResult, TunnelReport, TunnelState, TunnelText, UnitReport,
};
use jiff::{SignedDuration, Timestamp};

use super::judgement::{Certainty, Judgement, Proof, TunnelReading, judge};
use super::settings::Tunnel;

/// After so long what did not change is reported anew, with its age.
pub const REPORT_ANEW: SignedDuration = SignedDuration::from_mins(10);

/// What is remembered of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelHistory {
    /// What was reported last.
    shown: Option<TunnelReport>,
    /// Since when another state is suspected.
    suspected_since: Option<Timestamp>,
}

impl TunnelHistory {
    /// After one more reading. The report has no restarts and no token; these are the caller's to add.
    #[must_use]
    pub fn next(&self, tunnel: &Tunnel, reading: &TunnelReading, now: Timestamp) -> (Self, TunnelReport) {
        let judged = judge(tunnel, reading);
        let last = self.shown.as_ref();
        let is_other = last.is_some_and(|last| last.state != judged.state);
        let is_doubtful = is_other && judged.certainty == Certainty::NeedsSecond;
        let report = match (last, is_doubtful.then_some(self.suspected_since)) {
            // The first time: what was reported stays.
            (Some(last), Some(None)) => {
                report(tunnel, reading, (last.state, last.since, last.why.clone()), last, now)
            }
            (last, suspected) => {
                let since = since(last, reading, &judged, suspected.flatten(), now);
                let state = (judged.state, since, TunnelText::fitted(&judged.why));
                match last {
                    Some(last) => report(tunnel, reading, state, last, now),
                    None => fresh(tunnel, reading, state, now),
                }
            }
        };
        let suspected_since = match self.suspected_since {
            None if is_doubtful => Some(now),
            _ => None,
        };
        (Self { shown: Some(report.clone()), suspected_since }, report)
    }
}

/// Since when the state holds: as long as it was reported, or by systemd's clock, or since the first suspicion.
fn since(
    last: Option<&TunnelReport>,
    reading: &TunnelReading,
    judged: &Judgement,
    suspected: Option<Timestamp>,
    now: Timestamp,
) -> Timestamp {
    if let Some(last) = last.filter(|last| last.state == judged.state) {
        return last.since;
    }
    let of_systemd = reading.service.and_then(|service| service.since).filter(|_| match judged.state {
        TunnelState::Stopped | TunnelState::Unproved => true,
        TunnelState::Down => judged.certainty == Certainty::Enough,
        TunnelState::Up | TunnelState::Degraded | TunnelState::Unknown => false,
    });
    of_systemd.or(suspected).unwrap_or(now).min(now)
}

fn fresh(
    tunnel: &Tunnel,
    reading: &TunnelReading,
    (state, since, why): (TunnelState, Timestamp, TunnelText),
    now: Timestamp,
) -> TunnelReport {
    TunnelReport {
        name: tunnel.name.clone(),
        unit: tunnel.unit.clone(),
        state,
        since,
        why,
        checked_at: now,
        service: reading.service.map(|service| UnitReport {
            activity: service.activity,
            since: service.since,
            restarted: service.restarted,
        }),
        connections: match reading.connections {
            Proof::Answered(ready) => {
                Some(ConnectionReport { ready, wanted: tunnel.connections, since: now })
            }
            Proof::NotAsked | Proof::Failed(_) => None,
        },
        probe: match &reading.probe {
            Proof::NotAsked => None,
            Proof::Answered(said) => Some(probe(ProbeResult::Answered, said, now)),
            Proof::Failed(why) => Some(probe(ProbeResult::Failed, why, now)),
        },
        restarts: None,
        token: None,
    }
}

fn probe(result: ProbeResult, said: &str, since: Timestamp) -> ProbeReport {
    ProbeReport { result, since, said: TunnelText::fitted(said) }
}

/// With the times of what did not change.
fn report(
    tunnel: &Tunnel,
    reading: &TunnelReading,
    state: (TunnelState, Timestamp, TunnelText),
    last: &TunnelReport,
    now: Timestamp,
) -> TunnelReport {
    let mut next = fresh(tunnel, reading, state, now);
    if let (Some(next), Some(last)) = (&mut next.connections, &last.connections)
        && next.ready == last.ready
    {
        next.since = last.since;
    }
    if let (Some(next), Some(last)) = (&mut next.probe, &last.probe)
        && next.result == last.result
    {
        next.since = last.since;
    }
    let age = now.duration_since(last.checked_at);
    let same_but_for_the_time = TunnelReport { checked_at: last.checked_at, ..next.clone() } == *last;
    if same_but_for_the_time && age >= SignedDuration::ZERO && age < REPORT_ANEW {
        next.checked_at = last.checked_at;
    }
    next
}
