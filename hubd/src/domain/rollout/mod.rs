//! Rollouts of a release over hosts, in waves.
//!
//! In: a rollout as it is kept, and what its hosts reported. Out: the stage that follows, and who is offered the release.
//! Deliberately absent: the verdict on a build, which each host gives by itself, and any clock.
//!
//! ```text
//! planned ──start──► running ──last wave soaked──► finished
//!    │               │ ▲   │ ▲
//!    │          pause│ │   │ └──resume (failures so far are accepted)── held
//!    │               ▼ │   └──more failures than allowed──► held, or rolling back
//!    │            paused
//!    └──abort──► aborted ◄──abort── running, paused, held, rolling back
//! ```
//!
//! | module | decides |
//! | --- | --- |
//! | [`action`] | what an operator may do at which stage |
//! | [`guest_agent`] | what is asked for in a host's document, and where its guests are |
//! | [`image`] | where a golden image is on one host, and what speaks against it |
//! | [`next`] | whether a wave is done, opens the next, or is held |
//! | [`plan`] | which hosts are in which wave |
//! | [`progress`] | where one host is, by its reports |
//! | [`rate`] | which hosts are newly offered the release, a few in an hour |
//! | [`times`] | when one host may be offered it |
//! | [`view`] | what operators are shown |

pub mod action;
pub mod guest_agent;
pub mod image;
pub mod narrow;
pub mod next;
pub mod plan;
pub mod progress;
pub mod rate;
pub mod times;
pub mod view;

use std::num::NonZeroU32;
use std::sync::Arc;

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{OnFailure, RolloutState};
use holdfast_protocol::release::stored::WithdrawalReason;
use jiff::{SignedDuration, Timestamp};

use self::progress::Progress;
use self::times::AllowedTimes;

/// The bounds of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLimits {
    /// How many hosts may fail before the rollout is held.
    pub max_failures: u32,
    /// How long the wave is watched after its last host.
    pub soak: SignedDuration,
    /// After so long a host that is waited for counts as failed.
    pub timeout: SignedDuration,
}

/// The wave that is open. Those before it have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWave {
    /// From 0.
    pub index: usize,
    pub opened_at: Timestamp,
    /// Since when none of its hosts is waited for.
    pub settled_at: Option<Timestamp>,
}

/// Where a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Planned,
    Running(OpenWave),
    Paused(OpenWave),
    Held {
        open: OpenWave,
        reason: String,
        /// When. Nothing is offered from then on, so no host runs out of time later.
        at: Timestamp,
    },
    /// Held, and hosts that were offered the release are offered another one.
    RollingBack {
        open: OpenWave,
        reason: String,
        at: Timestamp,
        to: VersionNumber,
    },
    /// With the wave that was open, where it had begun.
    Aborted(Option<OpenWave>),
    Finished,
}

impl Stage {
    /// As it is shown.
    #[must_use]
    pub const fn state(&self) -> RolloutState {
        match self {
            Self::Planned => RolloutState::Planned,
            Self::Running(_) => RolloutState::Running,
            Self::Paused(_) => RolloutState::Paused,
            Self::Held { .. } => RolloutState::Held,
            Self::RollingBack { .. } => RolloutState::RollingBack,
            Self::Aborted(_) => RolloutState::Aborted,
            Self::Finished => RolloutState::Finished,
        }
    }

    /// Whether it may still offer the release to more hosts.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        match self {
            Self::Planned
            | Self::Running(_)
            | Self::Paused(_)
            | Self::Held { .. }
            | Self::RollingBack { .. } => true,
            Self::Aborted(_) | Self::Finished => false,
        }
    }

    /// Whether hosts of this wave are offered the release. A host that was off catches up, since earlier waves stay open.
    #[must_use]
    pub const fn offers(&self, wave: usize) -> bool {
        match self {
            Self::Running(open) => wave <= open.index,
            Self::Finished => true,
            Self::Planned
            | Self::Paused(_)
            | Self::Held { .. }
            | Self::RollingBack { .. }
            | Self::Aborted(_) => false,
        }
    }
}

/// What becomes of trials while a rollout is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausedTrials {
    GoOn,
    TakenBack,
}

/// Why a release that a host was offered is offered no more, where that was somebody's decision. The end of a window is
/// none.
#[must_use]
pub const fn withdrawal(stage: &Stage, paused: PausedTrials) -> Option<WithdrawalReason> {
    match (stage, paused) {
        (Stage::Held { .. } | Stage::RollingBack { .. }, _) => Some(WithdrawalReason::Held),
        (Stage::Aborted(_), _) => Some(WithdrawalReason::Aborted),
        (Stage::Paused(_), PausedTrials::TakenBack) => Some(WithdrawalReason::Paused),
        (Stage::Paused(_), PausedTrials::GoOn)
        | (Stage::Planned | Stage::Running(_) | Stage::Finished, _) => None,
    }
}

/// What the decision on the next stage depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    pub stage: Stage,
    /// In order; at least one.
    pub waves: Vec<WaveLimits>,
    /// How many hosts are newly offered the release in an hour; without it all of a wave at once.
    pub per_hour: Option<NonZeroU32>,
    pub on_failure: OnFailure,
}

/// One host of a rollout, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    pub host: HostId,
    pub name: HostName,
    /// From 0.
    pub wave: usize,
    pub progress: Progress,
    pub failures: Failures,
    /// When it was first offered the release.
    pub offered_at: Option<Timestamp>,
    /// Why it failed when it last did, whatever it reports since.
    pub failed_before: Option<String>,
    /// Where it is with the release to go back to, in a rollout that has one.
    pub back: Option<Progress>,
    /// Shared by hosts with the same windows.
    pub allowed: Arc<AllowedTimes>,
}

/// What decides on an offer to one host, besides the stage.
#[derive(Clone, Copy, Debug)]
pub struct HostPlace<'a> {
    /// From 0.
    pub wave: usize,
    pub offered_at: Option<Timestamp>,
    pub allowed: &'a AllowedTimes,
}

/// What a host is offered now by a rollout of a release. Where a time ends, the offer is withdrawn.
#[must_use]
pub fn offered(
    stage: &Stage,
    place: HostPlace<'_>,
    version: VersionNumber,
    now: Timestamp,
) -> Option<VersionNumber> {
    let had_its_turn = place.offered_at.is_some();
    let offers = match stage {
        // The way back waits for no window.
        Stage::RollingBack { to, .. } => return Some(*to).filter(|_| had_its_turn),
        // A rollout that is over keeps no rate.
        Stage::Finished => true,
        Stage::Running(_) | Stage::Planned | Stage::Paused(_) | Stage::Held { .. } | Stage::Aborted(_) => {
            had_its_turn
        }
    };
    (offers && stage.offers(place.wave) && place.allowed.is_open(now)).then_some(version)
}

/// Whether a failure of a host counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failures {
    Count,
    /// An operator went on without this host.
    Accepted,
}

#[cfg(test)]
mod tests;
