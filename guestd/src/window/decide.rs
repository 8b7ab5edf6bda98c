//! What to do next in a window: pure, so that every case is one line of a table.

use std::time::Duration;

use holdfast_protocol::local::window::WindowPhase;

/// An agent that restarts is back in seconds. One that is silent for longer does not keep stacks stopped.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);

/// How long a window is waited for: longer than the agent keeps a wish, whose night of backups may be hours long. Nothing
/// stands still meanwhile.
pub const GRANT_WAIT_MAX: Duration = Duration::from_secs(25 * 3_600);

/// Less than this is not worth stopping anything.
pub const WORTH: Duration = Duration::from_secs(20);

/// What the agent last said of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// How far it is.
    Says(WindowPhase),
    /// It knows no such window, or will not have us.
    Refuses,
    /// Nothing, or nothing that can be read, for so long.
    Silent(Duration),
}

/// How our stacks stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was stopped.
    Running,
    /// They stand still, and the agent was not heard to know.
    Still,
    /// They stand still, and the agent knows.
    StillAndTold,
}

/// All that the decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub word: Word,
    pub standing: Standing,
    /// Until our own bound; none before a grant.
    pub left: Option<Duration>,
    /// Since the window was asked for.
    pub waited: Duration,
    /// Since all stands still.
    pub still_for: Duration,
    /// Whether a person, or our own end, wants the stacks back.
    pub wish: Wish,
}

/// Whether somebody wants the stacks back now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
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
    /// Say that they stand still.
    SayQuiesced,
    /// Start what was stopped, and tell the agent afterwards.
    Resume(Why),
    /// Nothing was stopped: call the window off.
    GiveUp(Why),
    /// Nothing was stopped, and the agent knows that it is over.
    Over(Why),
}

/// Why a window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The backup has what it needs.
    Captured,
    /// The agent ended it.
    Ended(WindowPhase),
    /// Our own bound.
    Bound,
    /// The agent is silent.
    Silence,
    /// The agent answers, and cannot be told that they stand still.
    Unheard,
    /// The agent refuses us.
    Refused,
    /// What is left is not worth it.
    Short,
    /// It was not granted within [`GRANT_WAIT_MAX`].
    NotGranted,
    /// The agent speaks of stacks that stand still, and none do.
    Absurd,
    /// Somebody wants the stacks back.
    Wished,
}

impl Why {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Captured => "the backup has what it needs",
            Self::Ended(WindowPhase::Expired) => "the agent says that the window's time is over",
            Self::Ended(WindowPhase::Cancelled) => "the agent cancelled it",
            Self::Ended(_) => "the agent says that it is over",
            Self::Bound => "its time is over",
            Self::Silence => "the agent was silent for too long",
            Self::Unheard => "the agent could not be told that the stacks stand still",
            Self::Refused => "the agent does not know the window",
            Self::Short => "too little of its time was left",
            Self::NotGranted => "it was not granted within 25 hours",
            Self::Absurd => "the agent takes the stacks for stopped, and they are not",
            Self::Wished => "somebody wanted the stacks back",
        }
    }
}

/// Decides.
pub fn decide(seen: Seen) -> Next {
    match seen.standing {
        Standing::Running => while_running(seen),
        Standing::Still | Standing::StillAndTold => while_still(seen),
    }
}

fn while_running(seen: Seen) -> Next {
    if seen.wish == Wish::Resume {
        return Next::GiveUp(Why::Wished);
    }
    match seen.word {
        Word::Refuses => Next::Over(Why::Refused),
        Word::Silent(silent) if silent >= SILENCE_MAX => Next::GiveUp(Why::Silence),
        Word::Silent(_) => Next::Wait,
        Word::Says(phase) if phase.is_over() => Next::Over(Why::Ended(phase)),
        Word::Says(WindowPhase::Granted) => match seen.left {
            Some(left) if left >= WORTH => Next::Quiesce,
            _ => Next::GiveUp(Why::Short),
        },
        Word::Says(WindowPhase::Requested) if seen.waited < GRANT_WAIT_MAX => Next::Wait,
        Word::Says(WindowPhase::Requested) => Next::GiveUp(Why::NotGranted),
        Word::Says(_) => Next::GiveUp(Why::Absurd),
    }
}

fn while_still(seen: Seen) -> Next {
    if seen.wish == Wish::Resume {
        return Next::Resume(Why::Wished);
    }
    if seen.left.is_none_or(|left| left.is_zero()) {
        return Next::Resume(Why::Bound);
    }
    let told = seen.standing == Standing::StillAndTold;
    match seen.word {
        Word::Refuses => Next::Resume(Why::Refused),
        Word::Silent(silent) if silent >= SILENCE_MAX => Next::Resume(Why::Silence),
        Word::Says(WindowPhase::Captured) => Next::Resume(Why::Captured),
        Word::Says(phase) if phase.is_over() => Next::Resume(Why::Ended(phase)),
        Word::Says(_) if !told && seen.still_for >= SILENCE_MAX => Next::Resume(Why::Unheard),
        // It forgot what it was told, or never heard it.
        Word::Says(WindowPhase::Requested | WindowPhase::Granted) => Next::SayQuiesced,
        Word::Silent(_) | Word::Says(_) if !told => Next::SayQuiesced,
        Word::Silent(_) | Word::Says(_) => Next::Wait,
    }
}

/// Until when our stacks may stand still: no later than the agent's bound, counted from before it was asked, and a little
/// earlier, so that starting begins in time. None when what the agent says cannot be.
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
