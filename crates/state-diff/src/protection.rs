//! Whether a guest's data is better or worse protected.

use holdfast_protocol::protection::{Protection, compare};
use holdfast_protocol::state::StateGuest;

use crate::change::{Area, Change, Direction};

/// Compares posture, promise and what is held.
pub(crate) fn protection(before: &StateGuest, after: &StateGuest) -> Vec<Change> {
    let mut found: Vec<Change> = posture(before, after).into_iter().collect();
    let promise =
        |guest: &StateGuest| guest.protection.as_ref().and_then(|protection| protection.in_force.clone());
    found.extend(promises(promise(before), promise(after)));
    let held = |guest: &StateGuest| {
        let held = guest.protection.as_ref().map(|protection| protection.held.join("; "));
        held.filter(|held| !held.is_empty())
    };
    let what = "held for a signature";
    found.extend(Change::of((Direction::Different, Area::Protection), what, held(before), held(after)));
    found
}

fn posture(before: &StateGuest, after: &StateGuest) -> Option<Change> {
    let of = |guest: &StateGuest| guest.protection.as_ref().and_then(|protection| protection.posture);
    let direction = match (of(before), of(after)) {
        // The worst is the least.
        (Some(before), Some(after)) if after < before => Direction::Worse,
        (Some(_), None) => Direction::Worse,
        (Some(_) | None, Some(_)) => Direction::Better,
        (None, None) => Direction::Different,
    };
    let words = |guest: &StateGuest| {
        let why = guest.observed.posture_why.first().map(|why| format!(" ({why})"));
        of(guest).map(|posture| (posture.as_str(), why.unwrap_or_default()))
    };
    let (old, new) = (words(before), words(after));
    // The reason may have figures that move: it is no change alone.
    if old.as_ref().map(|(word, _)| word) == new.as_ref().map(|(word, _)| word) {
        return None;
    }
    let text = |words: Option<(&str, String)>| words.map(|(word, why)| format!("{word}{why}"));
    Change::of((direction, Area::Protection), "posture", text(old), text(new))
}

fn promises(before: Option<Protection>, after: Option<Protection>) -> Vec<Change> {
    if before == after {
        return Vec::new();
    }
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let compared = compare(&before, &after);
    let change = |direction, one: holdfast_protocol::protection::compare::Change| Change {
        direction,
        area: Area::Protection,
        what: format!("promise, {} {}", one.part, one.facet),
        before: Some(one.from),
        after: Some(one.to),
    };
    let raised = compared.raised.into_iter().map(|one| change(Direction::Better, one));
    raised.chain(compared.loosened.into_iter().map(|one| change(Direction::Worse, one))).collect()
}
