//! The oldest point of a tier that nothing settled yet.
//!
//! A schedule whose points come faster than anything is done for them would otherwise begin each wait anew, and miss none.
//! So the wait for the guest agent counts from the oldest unsettled point of the last while, and what was due for longer
//! than its window, or than a few points, is missed. Points that are far apart have each a wait of their own.

use jiff::{SignedDuration, Timestamp};

use super::points::Around;
use super::tier::{DueBackup, Facts, PointOf, State};
use crate::model::limits;

/// Up to when everything is settled, or nothing was promised.
fn settled_until(facts: &Facts<'_>) -> Option<Timestamp> {
    let now = facts.time.at;
    // A time in the future was written by a clock that was wrong.
    let promised = facts.record.map(|record| record.since).filter(|since| *since <= now);
    let before = |at: Timestamp| at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at);
    let back = facts.renumbered.map(|one| one.at);
    facts.stands.into_iter().chain(promised.map(before)).chain(back).max()
}

/// Since when the guest agent is waited for: from the oldest unsettled point within two waits before the last one.
pub(super) fn waited_since(facts: &Facts<'_>, (point, since): (Timestamp, Timestamp)) -> Timestamp {
    // Most guests stop here: the calendar is not walked for what is settled.
    let Some(settled) = settled_until(facts).filter(|settled| *settled < point) else { return since };
    let recent = point.checked_sub(limits::CONTROLLER_GRACE * 2).unwrap_or(Timestamp::MIN);
    let oldest = facts.schedule.next(settled.max(recent)).filter(|oldest| *oldest < point);
    let begins = oldest.and_then(|oldest| {
        let around = Around::of(facts.schedule, oldest);
        around.last_begins(facts.schedule, facts.guest, facts.tier)
    });
    begins.map_or(since, |(_, begins)| begins.min(since))
}

/// The oldest unsettled point before the last one, once nothing came of it for longer than its window, or than three points.
pub(super) fn overdue(facts: &Facts<'_>, due: &DueBackup) -> Option<Timestamp> {
    if due.of != PointOf::Schedule || due.state == State::Settled {
        return None;
    }
    let oldest = facts.schedule.next(settled_until(facts)?).filter(|oldest| *oldest < due.point)?;
    let window = SignedDuration::from_mins(facts.schedule.window_min.get().into());
    let apart = facts.around.next.map_or(window, |next| next.duration_since(due.point));
    let patience = window.min((apart * 3).max(limits::OVERDUE_MIN));
    (facts.time.at.duration_since(oldest) > patience).then_some(oldest)
}
