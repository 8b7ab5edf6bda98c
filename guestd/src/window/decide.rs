//! Decision of the next step in a window. Pure.

use std::time::Duration;

use holdfast_protocol::local::window::WindowPhase;

/// An agent that restarts is back in seconds. One that is silent for longer does not keep stacks stopped.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);

/// How long to wait for a window: longer than the agent keeps a request, because its nightly backups may take hours.
/// Nothing is stopped meanwhile.
pub const GRANT_WAIT_MAX: Duration = Duration::from_secs(25 * 3_600);

/// Less than this is not worth stopping anything.
pub const WORTHWHILE_MIN: Duration = Duration::from_secs(20);

/// What the agent last said of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// How far it is.
    Phase(WindowPhase),
    /// It knows no such window, or will not have us.
    Refuses,
    /// No answer, or none that can be read, for this long.
    Silent(Duration),
}

/// The state of our stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackPhase {
    /// Nothing was stopped.
    Running,
    /// They are stopped, and the agent has not acknowledged it.
    Stopped,
    /// They are stopped, and the agent has acknowledged it.
    StoppedAndReported,
}

/// All that the decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    pub agent: AgentState,
    pub phase: StackPhase,
    /// Until our own bound; none before a grant.
    pub left: Option<Duration>,
    /// The time since the window was requested.
    pub waited: Duration,
    /// The time since all stacks are stopped.
    pub stopped_for: Duration,
    /// Whether a person, or our own end, requests the stacks back.
    pub request: ResumeRequest,
}

/// Whether a resume is requested now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeRequest {
    None,
    Resume,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask the agent again.
    Wait,
    /// Stop the stacks.
    Quiesce,
    /// Report that they are stopped.
    ReportQuiesced,
    /// Start what was stopped, and notify the agent afterwards.
    Resume(EndReason),
    /// Nothing was stopped: call the window off.
    GiveUp(EndReason),
    /// Nothing was stopped, and the agent knows that it is over.
    Over(EndReason),
}

/// Why a window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The backup has what it needs.
    Captured,
    /// The agent ended it.
    Ended(WindowPhase),
    /// Our own bound.
    Bound,
    /// The agent is silent.
    Silence,
    /// The agent answers, but does not accept the report that the stacks are stopped.
    NotAcknowledged,
    /// The agent refuses us.
    Refused,
    /// What is left is not worth it.
    Short,
    /// It was not granted within [`GRANT_WAIT_MAX`].
    NotGranted,
    /// The agent reports stopped stacks, and none are stopped.
    Contradiction,
    /// A resume was requested.
    Requested,
}

impl EndReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Captured => "the backup was captured",
            Self::Ended(WindowPhase::Expired) => "the agent ended the window: its time is over",
            Self::Ended(WindowPhase::Cancelled) => "the agent cancelled the window",
            Self::Ended(_) => "the agent ended the window",
            Self::Bound => "the bound of the window passed",
            Self::Silence => "the agent did not answer for too long",
            Self::NotAcknowledged => "the agent did not acknowledge that the stacks are stopped",
            Self::Refused => "the agent does not know the window",
            Self::Short => "too little time was left",
            Self::NotGranted => "it was not granted within 25 hours",
            Self::Contradiction => "the agent assumes stopped stacks, but they are running",
            Self::Requested => "guestd resume was requested",
        }
    }
}

pub fn decide(seen: Situation) -> Next {
    match seen.phase {
        StackPhase::Running => while_running(seen),
        StackPhase::Stopped | StackPhase::StoppedAndReported => while_still(seen),
    }
}

fn while_running(seen: Situation) -> Next {
    if seen.request == ResumeRequest::Resume {
        return Next::GiveUp(EndReason::Requested);
    }
    match seen.agent {
        AgentState::Refuses => Next::Over(EndReason::Refused),
        AgentState::Silent(silent) if silent >= SILENCE_MAX => Next::GiveUp(EndReason::Silence),
        AgentState::Silent(_) => Next::Wait,
        AgentState::Phase(phase) if phase.is_over() => Next::Over(EndReason::Ended(phase)),
        AgentState::Phase(WindowPhase::Granted) => match seen.left {
            Some(left) if left >= WORTHWHILE_MIN => Next::Quiesce,
            _ => Next::GiveUp(EndReason::Short),
        },
        AgentState::Phase(WindowPhase::Requested) if seen.waited < GRANT_WAIT_MAX => Next::Wait,
        AgentState::Phase(WindowPhase::Requested) => Next::GiveUp(EndReason::NotGranted),
        AgentState::Phase(_) => Next::GiveUp(EndReason::Contradiction),
    }
}

fn while_still(seen: Situation) -> Next {
    if seen.request == ResumeRequest::Resume {
        return Next::Resume(EndReason::Requested);
    }
    if seen.left.is_none_or(|left| left.is_zero()) {
        return Next::Resume(EndReason::Bound);
    }
    let status = seen.phase == StackPhase::StoppedAndReported;
    match seen.agent {
        AgentState::Refuses => Next::Resume(EndReason::Refused),
        AgentState::Silent(silent) if silent >= SILENCE_MAX => Next::Resume(EndReason::Silence),
        AgentState::Phase(WindowPhase::Captured) => Next::Resume(EndReason::Captured),
        AgentState::Phase(phase) if phase.is_over() => Next::Resume(EndReason::Ended(phase)),
        AgentState::Phase(_) if !status && seen.stopped_for >= SILENCE_MAX => {
            Next::Resume(EndReason::NotAcknowledged)
        }
        // The agent forgot the report, or never received it.
        AgentState::Phase(WindowPhase::Requested | WindowPhase::Granted) => Next::ReportQuiesced,
        AgentState::Silent(_) | AgentState::Phase(_) if !status => Next::ReportQuiesced,
        AgentState::Silent(_) | AgentState::Phase(_) => Next::Wait,
    }
}

/// Until when our stacks may stay stopped: no later than the agent's bound, counted from before the request, and a
/// little earlier, so that the start begins in time. None when the agent's values are impossible.
pub fn deadline(
    asked_at: Duration,
    bound_s: u32,
    left_s: Option<u32>,
    own_max: Option<Duration>,
) -> Option<Duration> {
    let left = left_s.unwrap_or(bound_s).min(bound_s).min(BOUND_SECONDS_MAX);
    let left = Duration::from_secs(u64::from(left)).min(own_max.unwrap_or(Duration::MAX));
    let margin = (left / 10).min(MARGIN_MAX);
    let deadline = asked_at.checked_add(left.saturating_sub(margin))?;
    (!left.is_zero()).then_some(deadline)
}

/// Two hours: an agent that allows more is not believed.
const BOUND_SECONDS_MAX: u32 = 7_200;

const MARGIN_MAX: Duration = Duration::from_secs(10);
