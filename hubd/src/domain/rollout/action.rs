//! What an operator may do with a rollout, and at which stage.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use holdfast_protocol::release::rollout::RolloutState;
use jiff::Timestamp;

use super::next::{Outcome, outcome};
use super::{HostFacts, OpenWave, Rollout, Stage};

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    /// Hosts that have the release on trial go on.
    Pause,
    /// Pauses it, and hosts that have the release on trial end that.
    TakeBack,
    Resume,
    Abort,
}

/// Why an action is refused. Nothing was changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a rollout that is {} cannot be {}, and nothing was changed: see `holdfast rollout list`",
    state_word(*state),
    past(*action)
)]
pub struct ActionError {
    pub action: Action,
    pub state: RolloutState,
}

impl ActionError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::PreconditionFailed
    }
}

const fn past(action: Action) -> &'static str {
    match action {
        Action::Start => "started",
        Action::Pause => "paused",
        Action::TakeBack => "taken back",
        Action::Resume => "resumed",
        Action::Abort => "aborted",
    }
}

const fn state_word(state: RolloutState) -> &'static str {
    match state {
        RolloutState::Planned => "planned",
        RolloutState::Running => "running",
        RolloutState::Paused => "paused",
        RolloutState::Held => "held",
        RolloutState::RollingBack => "rolling back",
        RolloutState::Aborted => "aborted",
        RolloutState::Finished => "finished",
    }
}

/// The stage after an action.
///
/// # Errors
/// [`ActionError`].
pub fn act(stage: &Stage, action: Action, now: Timestamp) -> Result<Stage, ActionError> {
    let refused = || Err(ActionError { action, state: stage.state() });
    match (action, stage) {
        (Action::Start, Stage::Planned) => {
            Ok(Stage::Running(OpenWave { index: 0, opened_at: now, settled_at: None }))
        }
        (Action::Pause, Stage::Running(open)) | (Action::TakeBack, Stage::Running(open) | Stage::Paused(open)) => {
            Ok(Stage::Paused(*open))
        }
        // What passed while nothing was offered counts against no host.
        (Action::Resume, Stage::Paused(open) | Stage::Held { open, .. }) => {
            Ok(Stage::Running(OpenWave { opened_at: now, settled_at: None, ..*open }))
        }
        (Action::Abort, Stage::Planned) => Ok(Stage::Aborted(None)),
        (
            Action::Abort,
            Stage::Running(open)
            | Stage::Paused(open)
            | Stage::Held { open, .. }
            | Stage::RollingBack { open, .. },
        ) => Ok(Stage::Aborted(Some(*open))),
        (
            Action::Start,
            Stage::Running(_)
            | Stage::Paused(_)
            | Stage::Held { .. }
            | Stage::RollingBack { .. }
            | Stage::Aborted(_)
            | Stage::Finished,
        )
        | (
            Action::Pause,
            Stage::Planned
            | Stage::Paused(_)
            | Stage::Held { .. }
            | Stage::RollingBack { .. }
            | Stage::Aborted(_)
            | Stage::Finished,
        )
        // Of one that is held, trials end by themselves.
        | (
            Action::TakeBack,
            Stage::Planned
            | Stage::Held { .. }
            | Stage::RollingBack { .. }
            | Stage::Aborted(_)
            | Stage::Finished,
        )
        // Hosts that went back run a higher number than the release: nothing is left to go on with.
        | (
            Action::Resume,
            Stage::Planned
            | Stage::Running(_)
            | Stage::RollingBack { .. }
            | Stage::Aborted(_)
            | Stage::Finished,
        )
        | (Action::Abort, Stage::Aborted(_) | Stage::Finished) => refused(),
    }
}

/// The hosts whose failures an operator accepts by resuming a rollout that is held. Otherwise it would be held again at
/// once.
#[must_use]
pub fn accepted_by_resuming(rollout: &Rollout, hosts: &[HostFacts]) -> Vec<HostId> {
    let Stage::Held { open, at, reason: _ } = &rollout.stage else { return Vec::new() };
    let has_failed = |host: &&HostFacts| {
        let limits = rollout.waves.get(host.wave).filter(|_| host.wave <= open.index);
        limits.is_some_and(|limits| matches!(outcome(open, limits, host, *at), Outcome::Failed(_)))
    };
    hosts.iter().filter(has_failed).map(|host| host.host).collect()
}
