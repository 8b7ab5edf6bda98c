//! A rollout as operators see it.

use holdfast_protocol::release::rollout::{OpenWaveView, RolloutHostState, RolloutHostView, WaveView};
use jiff::{SignedDuration, Timestamp};

use super::next::{Outcome, outcome};
use super::progress::Progress;
use super::{Failures, HostFacts, OpenWave, Rollout, Stage, WaveLimits};

/// The wave that is open, or was last.
#[must_use]
pub const fn open_wave(stage: &Stage) -> Option<OpenWave> {
    match stage {
        Stage::Running(open) | Stage::Paused(open) | Stage::Held { open, .. } => Some(*open),
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

/// The waves with their hosts.
#[must_use]
pub fn waves(rollout: &Rollout, hosts: &[HostFacts], now: Timestamp) -> Vec<WaveView> {
    let open = open_wave(&rollout.stage);
    let now = match &rollout.stage {
        Stage::Held { at, .. } => *at,
        Stage::Planned | Stage::Running(_) | Stage::Paused(_) | Stage::Aborted(_) | Stage::Finished => now,
    };
    let wave = |(wave, limits): (usize, &WaveLimits)| WaveView {
        hosts: hosts
            .iter()
            .filter(|host| host.wave == wave)
            .map(|facts| host(open.as_ref(), limits, facts, now))
            .collect(),
        max_failures: limits.max_failures,
        soak_s: seconds(limits.soak),
        timeout_s: seconds(limits.timeout),
    };
    rollout.waves.iter().enumerate().map(wave).collect()
}

fn seconds(time: SignedDuration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or_default()
}

fn host(open: Option<&OpenWave>, limits: &WaveLimits, facts: &HostFacts, now: Timestamp) -> RolloutHostView {
    let begun = open.filter(|open| facts.wave <= open.index);
    let (state, why) = match begun {
        Some(open) => match outcome(open, limits, facts, now) {
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
            (Progress::Failed(why), Failures::Accepted) => (RolloutHostState::Accepted, Some(why.clone())),
            (Progress::Waiting | Progress::Silent, _) => (RolloutHostState::Waiting, None),
        },
    };
    RolloutHostView { host: facts.name.clone(), state, why }
}
