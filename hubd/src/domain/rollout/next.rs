//! The stage that follows, by what the hosts of a rollout reported.
//!
//! In: a rollout, its hosts, and now. Out: one decision. The hub repeats the question until nothing changes.

use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::OnFailure;
use jiff::Timestamp;

use super::progress::Progress;
use super::times::{AHEAD, BACK};
use super::{Failures, HostFacts, OpenWave, Rollout, Stage, WaveLimits};

/// Hosts that a reason names; more are counted.
const NAMED: usize = 3;

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Stay,
    /// No host of the wave is waited for: the soak begins.
    Settle,
    /// A host of the wave is waited for again.
    Unsettle,
    /// The next wave is opened.
    Advance,
    /// The rollout is held.
    Hold(String),
    /// The rollout is held, and hosts go back to another release.
    RollBack { reason: String, to: VersionNumber },
    /// The last wave has soaked.
    Finish,
}

/// Where a host is, with the time of its wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Waiting,
    Passed,
    /// Why.
    Failed(String),
    /// Why it failed; an operator went on without it.
    Accepted(String),
    Gone,
}

/// Why a host is waited for no longer. Only time counts in which it could have taken the release, but no wave waits for
/// ever.
fn is_over(open: &OpenWave, limits: &WaveLimits, host: &HostFacts, now: Timestamp) -> Option<Over> {
    // A wave before the open one was waited for as long as it may be.
    if host.wave < open.index {
        return Some(Over::Time);
    }
    if !host.allowed.is_open(now) && host.allowed.opens_at(now).is_none() {
        return Some(Over::NeverAllowed);
    }
    if now.duration_since(open.opened_at) >= BACK {
        return Some(Over::TooLong);
    }
    let since = host.offered_at?.max(open.opened_at);
    (host.allowed.allowed_between(since, now) >= limits.timeout).then_some(Over::Time)
}

/// When a host counts as failed if nothing is heard of it.
#[must_use]
pub fn deadline(open: &OpenWave, limits: &WaveLimits, host: &HostFacts) -> Option<Timestamp> {
    host.allowed.reaches(host.offered_at?.max(open.opened_at), limits.timeout)
}

enum Over {
    Time,
    NeverAllowed,
    TooLong,
}

/// The outcome of a host of a wave that is open or has passed.
#[must_use]
pub fn outcome(open: &OpenWave, limits: &WaveLimits, host: &HostFacts, now: Timestamp) -> Outcome {
    let late = |says: &str| {
        is_over(open, limits, host, now).map(|over| match over {
            Over::Time => says.to_owned(),
            Over::NeverAllowed => {
                let days = AHEAD.as_hours() / 24;
                format!("within {days} days there is no time that both its windows and the rollout allow")
            }
            Over::TooLong => format!("it was waited for {} days", BACK.as_hours() / 24),
        })
    };
    let why = match &host.progress {
        Progress::Done => return Outcome::Passed,
        Progress::Gone => return Outcome::Gone,
        Progress::Failed(why) => Some(why.clone()),
        Progress::Waiting => late("it has not taken the release in time"),
        Progress::Silent => late("it is not heard of"),
    };
    match (why, host.failures) {
        (Some(why), Failures::Count) => Outcome::Failed(why),
        (Some(why), Failures::Accepted) => Outcome::Accepted(why),
        // A host without which an operator went on is not waited for.
        (None, Failures::Accepted) => Outcome::Accepted("it is waited for no more".to_owned()),
        (None, Failures::Count) => Outcome::Waiting,
    }
}

/// Decides, where something may speak against what the rollout brings, whatever its hosts report.
#[must_use]
pub fn next_unless(
    objection: Option<&str>,
    rollout: &Rollout,
    hosts: &[HostFacts],
    now: Timestamp,
) -> Decision {
    match (objection, &rollout.stage) {
        (Some(why), Stage::Running(_)) => Decision::Hold(why.to_owned()),
        (Some(_) | None, _) => next(rollout, hosts, now),
    }
}

/// Decides.
#[must_use]
pub fn next(rollout: &Rollout, hosts: &[HostFacts], now: Timestamp) -> Decision {
    let Stage::Running(open) = &rollout.stage else { return Decision::Stay };
    let mut waits = false;
    for (wave, limits) in rollout.waves.iter().enumerate().take(open.index.saturating_add(1)) {
        let mut failed = Vec::new();
        let of_wave: Vec<&HostFacts> = hosts.iter().filter(|host| host.wave == wave).collect();
        for host in &of_wave {
            match outcome(open, limits, host, now) {
                Outcome::Waiting => waits = true,
                Outcome::Failed(why) => failed.push((*host, why)),
                Outcome::Passed | Outcome::Accepted(_) | Outcome::Gone => {}
            }
        }
        if failed.len() > limits.max_failures as usize {
            let reason = reason(wave, of_wave.len(), limits, &failed);
            return match rollout.on_failure {
                OnFailure::Hold => Decision::Hold(reason),
                OnFailure::RollBack(to) => Decision::RollBack { reason, to },
            };
        }
    }
    let Some(limits) = rollout.waves.get(open.index) else { return Decision::Finish };
    match (waits, open.settled_at) {
        (true, None) => Decision::Stay,
        (true, Some(_)) => Decision::Unsettle,
        (false, None) => Decision::Settle,
        (false, Some(at)) if now.duration_since(at) < limits.soak => Decision::Stay,
        (false, Some(_)) if open.index.saturating_add(1) < rollout.waves.len() => Decision::Advance,
        (false, Some(_)) => Decision::Finish,
    }
}

fn reason(wave: usize, hosts: usize, limits: &WaveLimits, failed: &[(&HostFacts, String)]) -> String {
    let named: Vec<String> =
        failed.iter().take(NAMED).map(|(host, why)| format!("{} ({why})", host.name)).collect();
    let more = failed.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!(
        "of the {hosts} hosts of wave {} {} failed, where {} may: {}{more}",
        wave.saturating_add(1),
        failed.len(),
        limits.max_failures,
        named.join(", ")
    )
}

/// Carries out a decision.
#[must_use]
pub fn apply(stage: Stage, decision: Decision, now: Timestamp) -> Stage {
    let Stage::Running(open) = stage else { return stage };
    match decision {
        Decision::Stay => Stage::Running(open),
        Decision::Settle => Stage::Running(OpenWave { settled_at: Some(now), ..open }),
        Decision::Unsettle => Stage::Running(OpenWave { settled_at: None, ..open }),
        Decision::Advance => {
            let index = open.index.saturating_add(1);
            Stage::Running(OpenWave { index, opened_at: now, settled_at: None })
        }
        Decision::Hold(reason) => Stage::Held { open, reason, at: now },
        Decision::RollBack { reason, to } => Stage::RollingBack { open, reason, at: now, to },
        Decision::Finish => Stage::Finished,
    }
}
