//! Experience of guests with a build of the guest agent.
//!
//! In: what became of the build in each guest, and who was heard since. Out: one [`BuildState`] for one guest. A
//! guest's own report makes a build bad for that guest, and a second guest's report for all. Silence proves nothing
//! about the build: its guest waits for a person, and the others go on. Only when two guests are in trouble, not all by
//! their own report, all guests wait.

use holdfast_protocol::id::GuestUid;

use crate::model::policy::Sha256Hex;
use crate::model::records::{ControllerOutcome, ControllerVerdict, GuestRecord};

/// So many guests say something about a build that one says about itself alone.
const GUESTS: usize = 2;

/// What follows for one guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuildState<'a> {
    /// Nothing is known against it.
    Clear,
    /// This guest said that it is not well under it, and went back.
    BadHere(&'a ControllerVerdict),
    /// Two guests said so: it is bad for all.
    BadForAll(&'a ControllerVerdict, &'a ControllerVerdict),
    /// This guest was not heard since it fetched it.
    SilentHere(&'a ControllerVerdict),
    /// Two guests are in trouble with it, and not both by their own report: no other guest gets it until a person
    /// looked.
    Paused(&'a ControllerVerdict, &'a ControllerVerdict),
}

/// Judges a build for one guest.
pub(super) fn judge<'a>(
    verdicts: &'a [ControllerVerdict],
    guests: &[GuestRecord],
    sha256: &Sha256Hex,
    guest: GuestUid,
) -> BuildState<'a> {
    let stands = |verdict: &&ControllerVerdict| verdict.sha256 == *sha256 && !is_answered(verdict, guests);
    let mut bad = verdicts.iter().filter(stands).filter(|one| one.outcome == ControllerOutcome::Bad);
    if let (Some(first), Some(second)) = (bad.next(), bad.next()) {
        return BuildState::BadForAll(first, second);
    }
    if let Some(own) = verdicts.iter().filter(stands).find(|one| one.guest == guest) {
        return match own.outcome {
            ControllerOutcome::Bad => BuildState::BadHere(own),
            ControllerOutcome::Silent => BuildState::SilentHere(own),
        };
    }
    let trouble: Vec<_> = verdicts.iter().filter(stands).take(GUESTS).collect();
    match trouble.as_slice() {
        [first, second] => BuildState::Paused(first, second),
        _ => BuildState::Clear,
    }
}

/// Only the new controller's own message ends a silence. One that came back with the controller of before did not take
/// it.
fn is_answered(verdict: &ControllerVerdict, guests: &[GuestRecord]) -> bool {
    match verdict.outcome {
        ControllerOutcome::Bad => false,
        ControllerOutcome::Silent => {
            let Some(record) = guests.iter().find(|record| record.uid == verdict.guest) else {
                // A guest that is gone says nothing about a build either.
                return true;
            };
            let runs = record.hello.as_ref().and_then(|hello| hello.build.as_ref());
            runs == Some(&verdict.sha256) && is_heard_since(verdict, record)
        }
    }
}

/// Whether its guest spoke since, whichever controller it was.
pub(super) fn is_heard_since(verdict: &ControllerVerdict, record: &GuestRecord) -> bool {
    record.hello.as_ref().is_some_and(|hello| hello.at > verdict.at)
}
