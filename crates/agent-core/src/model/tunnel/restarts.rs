//! Requests for restarts of tunnels, and their outcomes.
//!
//! In: the state of a tunnel, what was asked before, and what root's service wrote. Out: whether to ask now, and the
//! report. Root's service has bounds of its own. A tunnel whose service is stopped is never restarted: a person did that.

use std::collections::BTreeMap;

use holdfast_protocol::id::TunnelName;
use holdfast_protocol::report::{RestartOutcome, RestartReport, TunnelReport, TunnelState, UnitActivity};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::settings::{RestartRule, Tunnel};

/// A tunnel reconnects by itself within this time, or systemd restarts it.
pub const DOWN_AT_LEAST: SignedDuration = SignedDuration::from_mins(3);

/// The pauses after the first, second and third request within a day; the last one holds from there on.
const PAUSES: [SignedDuration; 4] = [
    SignedDuration::from_mins(1),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(2),
];

/// Restarts of one tunnel that an agent asks for.
pub const RESTARTS_PER_DAY: usize = 6;

/// Root's service answers within seconds.
const ANSWER_WITHIN: SignedDuration = SignedDuration::from_mins(3);

/// The clocks of both are one; a file's time may be cut to its second.
const ROUNDING: SignedDuration = SignedDuration::from_secs(2);

/// When restarts of each tunnel were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartRequests {
    #[serde(default)]
    pub asked: BTreeMap<TunnelName, Vec<Timestamp>>,
}

impl RestartRequests {
    /// Those of a tunnel within a day, oldest first. What a clock that was ahead left is forgotten.
    fn today(&self, name: &TunnelName, now: Timestamp) -> Vec<Timestamp> {
        let within = |at: &&Timestamp| {
            let age = now.duration_since(**at);
            age >= SignedDuration::ZERO && age < SignedDuration::from_hours(24)
        };
        self.asked.get(name).into_iter().flatten().filter(within).copied().collect()
    }

    /// With one more, and without what is over.
    #[must_use]
    pub fn with(&self, name: &TunnelName, now: Timestamp) -> Self {
        let names = self.asked.keys().chain([name]);
        let asked = names.map(|name| (name.clone(), self.today(name, now))).collect();
        let mut next = Self { asked };
        next.asked.entry(name.clone()).or_default().push(now);
        next.asked.retain(|_, times| !times.is_empty());
        next
    }

    /// Whether a restart is asked for now.
    #[must_use]
    pub fn is_due(&self, tunnel: &Tunnel, report: &TunnelReport, now: Timestamp) -> bool {
        let activity = report.service.map(|service| service.activity);
        let restartable = matches!(activity, Some(UnitActivity::Active | UnitActivity::Failed));
        if tunnel.restart == RestartRule::Never
            || report.state != TunnelState::Down
            || !restartable
            || now.duration_since(report.since) < DOWN_AT_LEAST
        {
            return false;
        }
        let today = self.today(&tunnel.name, now);
        if today.len() >= RESTARTS_PER_DAY {
            return false;
        }
        let Some(last) = today.last() else { return true };
        let pause = PAUSES.get(today.len() - 1).or(PAUSES.last()).copied().unwrap_or(ANSWER_WITHIN);
        now.duration_since(*last) >= pause
    }

    /// What is reported of them.
    #[must_use]
    pub fn report(
        &self,
        name: &TunnelName,
        answer: Option<RestartAnswer>,
        now: Timestamp,
    ) -> Option<RestartReport> {
        let today = self.today(name, now);
        let asked_at = *today.last()?;
        let answered = answer.filter(|answer| answer.at >= asked_at - ROUNDING).map(|answer| answer.outcome);
        let outcome = answered.unwrap_or(if now.duration_since(asked_at) < ANSWER_WITHIN {
            RestartOutcome::Pending
        } else {
            RestartOutcome::Silent
        });
        let asked_today = u32::try_from(today.len()).unwrap_or(u32::MAX);
        Some(RestartReport { asked_at, asked_today, outcome })
    }
}

/// What root's service wrote of its last restart of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartAnswer {
    pub at: Timestamp,
    pub outcome: RestartOutcome,
}

impl RestartAnswer {
    /// Reads it: `holdfast-tunnel-restart 1 SECOND OUTCOME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["holdfast-tunnel-restart", "1", second, outcome] = words.as_slice() else { return None };
        let at = Timestamp::from_second(second.parse().ok()?).ok()?;
        let outcome = match *outcome {
            "restarted" => RestartOutcome::Restarted,
            "failed" => RestartOutcome::Failed,
            "left" => RestartOutcome::Left,
            "unlisted" => RestartOutcome::Unlisted,
            _ => return None,
        };
        Some(Self { at, outcome })
    }
}
