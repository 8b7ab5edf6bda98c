//! A quiesce window: transitions, end, and consistency of its backup.
//!
//! ```text
//!            Quiesced           Began             Captured
//! Granted ────────────▶ Quiesced ────▶ Capturing ──────────▶ Captured
//!    │                     │              │                     │
//!    ├──── Released ───────┴──────────────┴─────────────────────┴──▶ Released
//!    ├──── Cancelled ──────┴──▶ Cancelled ◀── CameToNothing ── any of the first three
//!    └──── (bound passed) ─┴──────────────┴──▶ Expired; from Granted sooner, when no event comes
//! ```
//! What comes in: a [`Window`] as it was kept, a [`WindowEvent`], and the moment on the clock that runs through
//! suspend. What goes out: the window as it is then, or why that event is refused. [`next`] is the only definition of
//! what may follow what. [`Window::apply`] finds out that the bound passed, and [`Window::reported`] reports it,
//! whichever is called first. Pure. Deliberately absent: waiting, and who sends which event (`execute::step_window`,
//! `api::windows`).

mod still;

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::StackName;
use holdfast_protocol::local::window::{Canary, DownStack, Label, Quiesced, Released, WindowPhase};
use holdfast_protocol::protection::Consistency;
use serde::{Deserialize, Serialize};

use crate::model::boot::BootMoment;
use crate::model::limits;
use crate::model::policy::QuiesceBound;
use crate::model::records::BackupWhy;

/// How long a grant is valid without a message of its controller: half of the bound that an operator chose for its
/// programs, since what takes long to stop was given a long one, and never less than the usual.
fn quiesced_wait(bound: QuiesceBound) -> Duration {
    let bound = bound.duration();
    (bound / 2).max(Duration::from_secs(limits::QUIESCED_WAIT_S)).min(bound)
}

/// What happened to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The controller said that everything stands still.
    Quiesced,
    /// The agent is about to ask for the backup.
    Began,
    /// The agent saw that what the backup holds is fixed.
    Captured,
    /// The controller said that everything runs again.
    Released,
    /// The controller gave it up.
    Cancelled,
    /// Its bound passed.
    BoundPassed,
    /// Its backup came to nothing, or was left for a person.
    CameToNothing,
}

impl Sign {
    /// Every one.
    pub const ALL: &'static [Self] = &[
        Self::Quiesced,
        Self::Began,
        Self::Captured,
        Self::Released,
        Self::Cancelled,
        Self::BoundPassed,
        Self::CameToNothing,
    ];
}

/// Why something may not be said of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is over.
    #[error("this window is over: start again what was stopped for it")]
    Over,
    /// Its backup has begun.
    #[error("the backup of this window has begun: start again what was stopped, and say `released`")]
    Begun,
    /// It was reported before, with another content.
    #[error("this was said of the window before, with other stacks or canaries: what was said first stands")]
    Otherwise,
}

/// What follows.
///
/// # Errors
/// When it may not be said there.
pub const fn next(phase: WindowPhase, sign: Sign) -> Result<WindowPhase, Refused> {
    use WindowPhase as P;
    match (phase, sign) {
        (P::Granted, Sign::Quiesced) => Ok(P::Quiesced),
        (P::Quiesced | P::Capturing | P::Captured, Sign::Quiesced) => Ok(phase),
        (_, Sign::Quiesced) => Err(Refused::Over),

        (P::Quiesced, Sign::Began) => Ok(P::Capturing),
        // It begins without its controller: whatever is stopped from now on is stopped in vain.
        (P::Granted, Sign::Began) => Ok(P::Expired),

        (P::Capturing, Sign::Captured) => Ok(P::Captured),

        (P::Granted | P::Quiesced | P::Capturing | P::Captured, Sign::Released) => Ok(P::Released),

        (P::Requested | P::Granted | P::Quiesced | P::Cancelled, Sign::Cancelled) => Ok(P::Cancelled),
        (P::Capturing, Sign::Cancelled) => Err(Refused::Begun),
        (P::Captured | P::Released | P::Expired, Sign::Cancelled) => Err(Refused::Over),

        (P::Granted | P::Quiesced | P::Capturing, Sign::BoundPassed) => Ok(P::Expired),
        (P::Requested | P::Granted | P::Quiesced | P::Capturing, Sign::CameToNothing) => Ok(P::Cancelled),

        // What is fixed stays fixed, and an end is an end.
        (_, Sign::Began | Sign::Captured | Sign::Released | Sign::BoundPassed | Sign::CameToNothing) => {
            Ok(phase)
        }
    }
}

/// The same with what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowEvent {
    /// [`Sign::Quiesced`], with what was stopped.
    Quiesced(QuiescedStacks),
    /// [`Sign::Began`].
    Began,
    /// [`Sign::Captured`].
    Captured,
    /// [`Sign::Released`], with what would not start, and since when.
    Released(Restarted),
    /// [`Sign::Cancelled`].
    Cancelled,
    /// [`Sign::CameToNothing`], and why.
    CameToNothing(ErrorBody),
}

impl WindowEvent {
    const fn sign(&self) -> Sign {
        match self {
            Self::Quiesced(_) => Sign::Quiesced,
            Self::Began => Sign::Began,
            Self::Captured => Sign::Captured,
            Self::Released(_) => Sign::Released,
            Self::Cancelled => Sign::Cancelled,
            Self::CameToNothing(_) => Sign::CameToNothing,
        }
    }
}

/// What a controller said that it stopped and wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuiescedStacks {
    pub stacks: Vec<StackName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<Canary>,
}

impl From<Quiesced> for QuiescedStacks {
    fn from(said: Quiesced) -> Self {
        Self { stacks: said.stacks, canaries: said.canaries }
    }
}

/// What a controller said that it started again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restarted {
    /// What would not start.
    pub down: Vec<DownStack>,
    /// How long ago it began to start things, by its own clock; none where it does not know.
    pub begun_ago: Option<Duration>,
}

impl From<Released> for Restarted {
    fn from(said: Released) -> Self {
        Self { down: said.down, begun_ago: said.begun_ms_ago.map(Duration::from_millis) }
    }
}

/// One window from its grant on, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// How long programs may stand still.
    pub bound: QuiesceBound,
    /// Since when that counts.
    pub granted: BootMoment,
    /// How far it is. That its bound passed may not be written here yet: [`Window::reported`].
    phase: WindowPhase,
    /// What stood still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quiesced_stacks: Option<QuiescedStacks>,
    /// When it was seen that what the backup holds is fixed, in milliseconds from the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    captured_ms: Option<u64>,
    /// When the controller first said that all runs again, in milliseconds from the grant; a reboot makes it the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    released_ms: Option<u64>,
    /// When the controller began to start things again, as it reported, in milliseconds from the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restarted_ms: Option<u64>,
    /// What would not start, as it was last said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    down: Vec<DownStack>,
    /// Why its backup came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<ErrorBody>,
}

impl Window {
    /// One that is granted now.
    #[must_use]
    pub const fn granted(bound: QuiesceBound, granted: BootMoment) -> Self {
        Self {
            bound,
            granted,
            phase: WindowPhase::Granted,
            quiesced_stacks: None,
            captured_ms: None,
            released_ms: None,
            restarted_ms: None,
            down: Vec::new(),
            problem: None,
        }
    }

    /// What is left of its bound; nothing after a reboot of the host.
    #[must_use]
    pub fn left(&self, now: &BootMoment) -> Duration {
        let passed = now.since(&self.granted);
        passed.map_or(Duration::ZERO, |passed| self.bound.duration().saturating_sub(passed))
    }

    /// How long it may stay in its phase by itself: what is left of its bound, and without a message of its controller
    /// no longer than a controller needs to stop its stacks.
    #[must_use]
    pub fn patience(&self, now: &BootMoment) -> Duration {
        let left = self.left(now);
        if self.phase != WindowPhase::Granted {
            return left;
        }
        let passed = now.since(&self.granted);
        passed.map_or(Duration::ZERO, |passed| left.min(quiesced_wait(self.bound).saturating_sub(passed)))
    }

    /// How far it is at this moment.
    #[must_use]
    pub fn reported(&self, now: &BootMoment) -> WindowPhase {
        if self.patience(now).is_zero() {
            return next(self.phase, Sign::BoundPassed).unwrap_or(self.phase);
        }
        self.phase
    }

    /// Whether its controller said that everything runs again.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.released_ms.is_some()
    }

    /// Whether its controller gave it up: then no backup is wanted. One whose backup came to nothing can be taken up again.
    #[must_use]
    pub const fn is_given_up(&self) -> bool {
        matches!(self.phase, WindowPhase::Cancelled) && self.problem.is_none()
    }

    /// What would not start again.
    #[must_use]
    pub fn down(&self) -> &[DownStack] {
        &self.down
    }

    /// What stood still, once that was said.
    #[must_use]
    pub const fn quiesced_stacks(&self) -> Option<&QuiescedStacks> {
        self.quiesced_stacks.as_ref()
    }

    /// Takes in what was said at this moment. The same said twice changes nothing.
    ///
    /// # Errors
    /// When it may not be said; nothing of the window is changed then.
    pub fn apply(&self, said: &WindowEvent, now: &BootMoment) -> Result<Self, Refused> {
        let phase = next(self.reported(now), said.sign())?;
        let mut after = Self { phase, ..self.clone() };
        let at_ms = now.since(&self.granted).unwrap_or_else(|| self.bound.duration());
        let at_ms = millis(at_ms);
        match said {
            WindowEvent::Quiesced(quiesced_stacks) => match &self.quiesced_stacks {
                Some(first) if first != quiesced_stacks => return Err(Refused::Otherwise),
                Some(_) => {}
                None => after.quiesced_stacks = Some(quiesced_stacks.clone()),
            },
            WindowEvent::Captured if phase == WindowPhase::Captured => {
                after.captured_ms = after.captured_ms.or(Some(at_ms));
            }
            WindowEvent::Released(Restarted { down, begun_ago }) => {
                after.released_ms = after.released_ms.or(Some(at_ms));
                after.down.clone_from(down);
                // After a reboot of the host no clock reaches back to the grant.
                let passed = now.since(&self.granted);
                let restarted =
                    passed.zip(*begun_ago).map(|(passed, ago)| millis(passed.saturating_sub(ago)));
                // The earliest report counts.
                after.restarted_ms = after.restarted_ms.into_iter().chain(restarted).min();
            }
            WindowEvent::CameToNothing(problem) if phase == WindowPhase::Cancelled => {
                after.problem = after.problem.or_else(|| Some(problem.clone()));
            }
            WindowEvent::Captured
            | WindowEvent::CameToNothing(_)
            | WindowEvent::Began
            | WindowEvent::Cancelled => {}
        }
        Ok(after)
    }

    /// What its backup holds. Standing still counts only when it was said, and when the controller then said that it began to
    /// start things no sooner than the copy was seen to be fixed: that it said nothing proves nothing, since it starts them by
    /// its own bounds, and so does whatever comes after it when it dies.
    #[must_use]
    pub fn label(&self) -> Label {
        let crash = |why: &str| Label { consistency: Consistency::Crash, why: why.to_owned() };
        let bound_s = self.bound.seconds();
        let Some(quiesced_stacks) = &self.quiesced_stacks else {
            let why = match self.phase {
                WindowPhase::Released => "its controller let go of the window and stopped nothing".to_owned(),
                _ => format!(
                    "its controller did not say within {} s that the guest's programs stand still",
                    quiesced_wait(self.bound).as_secs()
                ),
            };
            return crash(&why);
        };
        let Some(captured_ms) = self.captured_ms else {
            return crash(&match self.released_ms {
                Some(_) => "the guest's programs ran again before the copy was fixed".to_owned(),
                None => format!("the copy was not seen to be fixed within the bound of {bound_s} s"),
            });
        };
        let sooner = |ms: Option<u64>| ms.is_some_and(|ms| ms < captured_ms);
        if sooner(self.restarted_ms) || sooner(self.released_ms) {
            return crash("the guest's programs ran again before the copy was fixed");
        }
        if self.restarted_ms.is_none() {
            return crash(match self.released_ms {
                Some(_) => "its controller did not say when it began to start the guest's programs again",
                None => {
                    "its controller did not say whether the guest's programs stood still until the copy was fixed"
                }
            });
        }
        let count = quiesced_stacks.stacks.len();
        let why = format!(
            "the guest's programs stood still until the copy was fixed, {} s after the grant ({count} stopped)",
            captured_ms.div_ceil(1000)
        );
        Label { consistency: Consistency::Application, why }
    }

    /// Whether the label of its backup is final: no better one is possible any more.
    #[must_use]
    pub fn is_settled(&self, now: &BootMoment) -> bool {
        self.released_ms.is_some() || self.quiesced_stacks.is_none() || self.left(now).is_zero()
    }

    /// What its controller or a person should know.
    #[must_use]
    pub fn problem(&self, now: &BootMoment) -> Option<ErrorBody> {
        match self.reported(now) {
            WindowPhase::Expired => {
                let text = format!(
                    "its bound of {} s passed, or its backup began without it, since nobody said within {} s that all stands \
                     still: start again what was stopped",
                    self.bound.seconds(),
                    quiesced_wait(self.bound).as_secs()
                );
                Some(ErrorBody::new(ErrorCode::WindowOver, text))
            }
            WindowPhase::Cancelled => Some(self.problem.clone().unwrap_or_else(|| {
                ErrorBody::new(ErrorCode::Cancelled, "its guest gave it up before its backup began")
            })),
            _ => None,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a backup holds that was taken without a window, and why.
#[must_use]
pub fn without(why: BackupWhy) -> Label {
    let text = match why {
        BackupWhy::First => "taken without its controller: the guest was just made",
        BackupWhy::Schedule => "taken without its controller: it was due, and no window was asked for",
        BackupWhy::Asked => "taken without its controller: it was asked for without a window",
    };
    Label { consistency: Consistency::Crash, why: text.to_owned() }
}

#[cfg(test)]
mod tests;
