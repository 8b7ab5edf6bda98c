//! The due point of one tier of one guest.
//!
//! ```text
//!  point ──jitter──▶ begins ─────────────── window ───────────────▶ ends ─────────────── next point
//!   │ nothing yet      │ waits for the controller, then begins;      │ missed, reported, caught up, whatever time
//!   │                  │ failed: again after a while                 │ was slept through; failed: again after a while
//! ```
//! A return from a loss is a point like those of the calendar, and so is a swap with a restored copy; no backup is
//! delayed for either. What the guest did since then is in no backup, the existing backups are under a former VMID, and
//! the calendar may be a week away. Only the last point is begun, so a thousand that were slept through are one. Waits
//! and what is missed count from the oldest that nothing settled ([`unsettled`]), and points may be closer than backups
//! can be ([`distance`]). There are as many tries after the window as in it: a weekly backup whose only late try failed
//! would be a week without one. Pure: what exists for a point, what was tried and what time it is come in.

use holdfast_protocol::protection::{Schedule, Tier};
use jiff::{SignedDuration, Timestamp};

use super::points::Around;
use super::{distance, unsettled};
use crate::model::clock_trust::TrustedTime;
use crate::model::limits;
use crate::model::records::{PointAttempt, Renumbered, RenumberedBy, TierRecord};
use crate::operation::Begun;
use holdfast_protocol::id::GuestUid;

/// What is known of a tier.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Of which guest.
    pub guest: GuestUid,
    pub tier: Tier,
    /// When it is due.
    pub schedule: &'a Schedule,
    /// Its points around now.
    pub around: Around,
    /// Since when it is promised, and what was tried.
    pub record: Option<&'a TierRecord>,
    /// How the guest came to its VMID, where an earlier one was its own.
    pub renumbered: Option<Renumbered>,
    /// The point that something covers already, or the time at which it was taken: the latest of them.
    pub stands: Option<Timestamp>,
    /// Whether the controller is waited for.
    pub controller: Controller,
    /// What time it is.
    pub time: TrustedTime,
}

/// Whether the guest's controller is waited for before a backup is begun without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Its programs shall stand still, and it was heard of lately.
    WaitedFor,
    /// They need not, or no controller is there that could stop them.
    NotWaitedFor,
}

/// What is owed of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingPoint {
    pub tier: Tier,
    /// The last point, put off by the jitter. None where none came yet.
    pub last: Option<DueBackup>,
    /// When the next one begins.
    pub next: Option<Timestamp>,
    /// The oldest point of which nothing came for so long that it is missed, where later ones came since.
    pub overdue: Option<Timestamp>,
    /// The least time between two backups, where the points are closer.
    pub left_out: Option<SignedDuration>,
}

/// What a point is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointOf {
    Schedule,
    /// The guest came back from a loss then.
    Return,
    /// A restored copy took its place then.
    Swap,
}

/// The last point of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueBackup {
    pub point: Timestamp,
    /// What it is of.
    pub of: PointOf,
    /// From then on it is due.
    pub since: Timestamp,
    /// Until then it should have begun.
    pub ends: Timestamp,
    /// From then on the controller is not waited for.
    pub waits_until: Timestamp,
    /// Whether it can still begin in time.
    pub begun: Begun,
    /// What was begun for it so far.
    pub tried: Option<PointAttempt>,
    /// What is to be done.
    pub state: State,
}

/// What is to be done for a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing: something covers it, or it was never promised.
    Settled,
    /// Nothing before this time.
    Later(Timestamp),
    /// The controller is waited for until this time.
    Waits(Timestamp),
    /// A try failed; the next one is then.
    Again(Timestamp),
    Now,
    /// Nothing more: the next point comes.
    GivenUp,
}

impl DueBackup {
    /// Whether it did not begin in time, or nothing came of it.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        match self.state {
            State::Settled | State::Later(_) => false,
            State::GivenUp => true,
            State::Waits(_) | State::Again(_) | State::Now => self.begun == Begun::Late,
        }
    }

    /// Whether it could be taken now.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Waits(_) | State::Again(_) | State::Now)
    }
}

impl OutstandingPoint {
    /// Whether there is nothing to begin and nothing to report.
    pub(super) fn is_quiet(&self) -> bool {
        let rests = |due: DueBackup| match due.state {
            State::Settled | State::Later(_) => true,
            State::Waits(_) | State::Again(_) | State::Now | State::GivenUp => false,
        };
        self.last.is_none_or(rests) && self.overdue.is_none() && self.left_out.is_none()
    }
}

/// Judges one tier.
#[must_use]
pub fn judge(facts: &Facts<'_>) -> OutstandingPoint {
    let Facts { guest, tier, schedule, around, .. } = *facts;
    let planned = around.last_begins(schedule, guest, tier);
    let planned = planned.map(|(point, since)| (point, since, PointOf::Schedule));
    let renumbered = facts.renumbered.map(|one| match one.by {
        RenumberedBy::Return => (one.at, one.at, PointOf::Return),
        RenumberedBy::Swap => (one.at, one.at, PointOf::Swap),
    });
    let last = planned.into_iter().chain(renumbered).max().map(|point| due(facts, point));
    OutstandingPoint {
        tier,
        last,
        next: around.next_begins(schedule, guest, tier),
        overdue: last.and_then(|due| unsettled::overdue(facts, &due)),
        left_out: distance::left_out(facts),
    }
}

fn due(facts: &Facts<'_>, (point, since, of): (Timestamp, Timestamp, PointOf)) -> DueBackup {
    let now = facts.time.at;
    let window = SignedDuration::from_mins(facts.schedule.window_min.get().into());
    let ends = point.checked_add(window).unwrap_or(Timestamp::MAX);
    let begun = if now > ends { Begun::Late } else { Begun::InTime };
    let tried = facts.record.and_then(|record| record.tried).filter(|tried| tried.point == point);
    let waited = match (of, facts.controller) {
        (PointOf::Schedule, Controller::WaitedFor) => unsettled::waited_since(facts, (point, since)),
        (_, Controller::NotWaitedFor) | (PointOf::Return | PointOf::Swap, _) => since,
    };
    // After an outage the controller's time begins when the agent can be reached again.
    let asked = waited.max(facts.time.since.min(now));
    let grace = match facts.controller {
        Controller::WaitedFor => limits::CONTROLLER_GRACE,
        Controller::NotWaitedFor => SignedDuration::ZERO,
    };
    let waits_until = asked.checked_add(grace).unwrap_or(Timestamp::MAX);
    // Within the window it is rather taken without the controller than missed.
    let waits_until = if asked < ends { waits_until.min(ends) } else { waits_until };
    let mut due = DueBackup { point, of, since, ends, waits_until, begun, tried, state: State::Settled };
    due.state = state(facts, &due);
    due
}

fn state(facts: &Facts<'_>, due: &DueBackup) -> State {
    let now = facts.time.at;
    // A time in the future was written by a clock that was wrong: it settles nothing.
    let promised_later = facts.record.is_some_and(|record| due.point < record.since && record.since <= now);
    let from = match due.of {
        PointOf::Schedule => due.point,
        PointOf::Return | PointOf::Swap => facts.renumbered.map_or(due.point, |one| one.began_at),
    };
    let stands = facts.stands.is_some_and(|stands| stands >= from);
    if promised_later || stands {
        return State::Settled;
    }
    if now < due.since {
        return State::Later(due.since);
    }
    if let Some(at) = distance::not_before(facts, (due.point, due.of)).filter(|at| now < *at) {
        return State::Later(at);
    }
    if let Some(tried) = due.tried {
        let spent = match due.begun {
            Begun::InTime => tried.times >= limits::BACKUP_TRIES,
            Begun::Late => tried.late >= limits::BACKUP_TRIES,
        };
        if spent {
            return State::GivenUp;
        }
        // There is no hurry after the window: the waits go on growing from where those within it end.
        let count = match tried.late {
            0 => tried.times,
            late => limits::BACKUP_TRIES.saturating_add(late).saturating_sub(1),
        };
        let wait = SignedDuration::from_secs(limits::retry_after_s(count).max(limits::BACKUP_RETRY_MIN_S));
        let again = tried.last.checked_add(wait).unwrap_or(Timestamp::MAX);
        if tried.last <= now && again > now {
            return State::Again(again);
        }
    }
    if now < due.waits_until { State::Waits(due.waits_until) } else { State::Now }
}
