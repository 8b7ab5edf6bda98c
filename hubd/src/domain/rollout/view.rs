//! A rollout as operators see it.

use holdfast_protocol::id::HostId;
use holdfast_protocol::release::rollout::{
    HostWait, OpenWaveView, RolloutHostState, RolloutHostView, WaitReason, WaveView,
};
use jiff::{SignedDuration, Timestamp};

use super::next::{Outcome, deadline, outcome};
use super::progress::Progress;
use super::rate::turns;
use super::{Failures, HostFacts, OpenWave, Rollout, Stage, WaveLimits};

/// The wave that is open, or was last.
#[must_use]
pub const fn open_wave(stage: &Stage) -> Option<OpenWave> {
    match stage {
        Stage::Running(open)
        | Stage::Paused(open)
        | Stage::Held { open, .. }
        | Stage::RollingBack { open, .. } => Some(*open),
        Stage::Aborted(open) => *open,
        Stage::Planned | Stage::Finished => None,
    }
}

/// The same, counted from 1.
#[must_use]
pub fn open_view(stage: &Stage) -> Option<OpenWaveView> {
    open_wave(stage).map(|OpenWave { index, opened_at, settled_at }| OpenWaveView {
        number: u32::try_from(index.saturating_add(1)).unwrap_or(u32::MAX),
        opened_at,
        settled_at,
    })
}

/// When the wave after the open one opens at the earliest.
#[must_use]
pub fn next_wave_at(rollout: &Rollout) -> Option<Timestamp> {
    let Stage::Running(OpenWave { index, settled_at: Some(settled_at), opened_at: _ }) = &rollout.stage
    else {
        return None;
    };
    rollout.waves.get(index.saturating_add(1))?;
    settled_at.checked_add(rollout.waves.get(*index)?.soak).ok()
}

/// The waves with their hosts. What selected the hosts is added by who keeps it.
#[must_use]
pub fn waves(rollout: &Rollout, hosts: &[HostFacts], now: Timestamp) -> Vec<WaveView> {
    let now = match &rollout.stage {
        Stage::Held { at, .. } | Stage::RollingBack { at, .. } => *at,
        Stage::Planned | Stage::Running(_) | Stage::Paused(_) | Stage::Aborted(_) | Stage::Finished => now,
    };
    let look = Look { rollout, open: open_wave(&rollout.stage), turns: turns(rollout, hosts, now), now };
    let wave = |(wave, limits): (usize, &WaveLimits)| WaveView {
        hosts: hosts.iter().filter(|host| host.wave == wave).map(|facts| look.host(limits, facts)).collect(),
        selects: None,
        max_failures: limits.max_failures,
        soak_s: seconds(limits.soak),
        timeout_s: seconds(limits.timeout),
    };
    rollout.waves.iter().enumerate().map(wave).collect()
}

fn seconds(time: SignedDuration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or_default()
}

/// A rollout at one time.
struct Look<'a> {
    rollout: &'a Rollout,
    open: Option<OpenWave>,
    turns: Vec<(HostId, Timestamp)>,
    now: Timestamp,
}

impl Look<'_> {
    fn host(&self, limits: &WaveLimits, facts: &HostFacts) -> RolloutHostView {
        let begun = self.open.filter(|open| facts.wave <= open.index);
        let (state, why) = match begun {
            Some(open) => match outcome(&open, limits, facts, self.now) {
                Outcome::Waiting => (RolloutHostState::Waiting, None),
                Outcome::Passed => (RolloutHostState::Done, None),
                Outcome::Failed(why) => (RolloutHostState::Failed, Some(why)),
                Outcome::Accepted(why) => (RolloutHostState::Accepted, Some(why)),
                Outcome::Gone => (RolloutHostState::Gone, None),
            },
            None => match (&facts.progress, facts.failures) {
                (Progress::Done, _) => (RolloutHostState::Done, None),
                (Progress::Gone, _) => (RolloutHostState::Gone, None),
                (Progress::Failed(why), Failures::Count) => (RolloutHostState::Failed, Some(why.clone())),
                (Progress::Failed(why), Failures::Accepted) => {
                    (RolloutHostState::Accepted, Some(why.clone()))
                }
                (Progress::Waiting | Progress::Silent, _) => (RolloutHostState::Waiting, None),
            },
        };
        let (state, why) = self.after_the_end(facts, state, why);
        let why = why.or_else(|| facts.failed_before.as_ref().map(|why| format!("before: {why}")));
        let wait = match state {
            RolloutHostState::Waiting => self.wait(limits, facts),
            RolloutHostState::Done
            | RolloutHostState::Failed
            | RolloutHostState::Accepted
            | RolloutHostState::Withdrawn
            | RolloutHostState::Back
            | RolloutHostState::Gone => None,
        };
        RolloutHostView { host: facts.name.clone(), state, why, offered_at: facts.offered_at, wait }
    }

    /// What became of a host whose offer ended, and where it is on the way back.
    fn after_the_end(
        &self,
        facts: &HostFacts,
        state: RolloutHostState,
        why: Option<String>,
    ) -> (RolloutHostState, Option<String>) {
        let goes_back = match &self.rollout.stage {
            Stage::RollingBack { .. } => true,
            Stage::Held { .. } | Stage::Aborted(_) => false,
            Stage::Planned | Stage::Running(_) | Stage::Paused(_) | Stage::Finished => return (state, why),
        };
        if facts.offered_at.is_none() {
            return (state, why);
        }
        match (&facts.back, state) {
            (Some(Progress::Done), _) if goes_back => (RolloutHostState::Back, None),
            (Some(Progress::Failed(why)), _) if goes_back => {
                (RolloutHostState::Failed, Some(format!("the way back failed: {why}")))
            }
            (_, RolloutHostState::Done) if goes_back => (RolloutHostState::Waiting, None),
            (_, RolloutHostState::Waiting) => (RolloutHostState::Withdrawn, None),
            (
                _,
                RolloutHostState::Done
                | RolloutHostState::Failed
                | RolloutHostState::Accepted
                | RolloutHostState::Withdrawn
                | RolloutHostState::Back
                | RolloutHostState::Gone,
            ) => (state, why),
        }
    }

    /// What a host waits for, in a rollout that goes on.
    fn wait(&self, limits: &WaveLimits, facts: &HostFacts) -> Option<HostWait> {
        let open = match &self.rollout.stage {
            Stage::Running(open) => open,
            // What is finished offers for good, in the same times.
            Stage::Finished => {
                let why = facts.allowed.closed_by(self.now).unwrap_or(WaitReason::Host);
                return Some(HostWait { why, until: facts.allowed.opens_at(self.now) });
            }
            Stage::RollingBack { .. } => {
                let is_asked = facts.offered_at.is_some();
                return is_asked.then_some(HostWait { why: WaitReason::Back, until: None });
            }
            Stage::Planned | Stage::Paused(_) | Stage::Held { .. } | Stage::Aborted(_) => return None,
        };
        if facts.wave > open.index {
            let is_next = facts.wave == open.index.saturating_add(1);
            let until = next_wave_at(self.rollout).filter(|_| is_next);
            return Some(HostWait { why: WaitReason::Wave, until });
        }
        if let Some(why) = facts.allowed.closed_by(self.now) {
            return Some(HostWait { why, until: facts.allowed.opens_at(self.now) });
        }
        if facts.offered_at.is_none() {
            let turn = self.turns.iter().find(|(host, _)| *host == facts.host).map(|(_, at)| *at);
            return Some(HostWait { why: WaitReason::Rate, until: turn });
        }
        Some(HostWait { why: WaitReason::Host, until: deadline(open, limits, facts) })
    }
}
