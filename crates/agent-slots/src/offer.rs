//! Whether the agent fetches a release that it is offered.
//!
//! In: the offer, the version that runs, the state of the slots. Out: fetch it, or why not. The gate judges again, by
//! signature and digest; this only spares the host a download and a restart that would change nothing.

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use jiff::{SignedDuration, Timestamp};

use crate::state::{RefusalCause, Returning, SlotsState};

/// Each attempt is a download and a restart. Somebody may have laid down keys or made room since.
const TRY_AGAIN: SignedDuration = SignedDuration::from_hours(24);

/// A release that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub version: VersionNumber,
    /// SHA-256 of the signed manifest.
    pub manifest: Sha256Text,
}

/// Why an offer is not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFetched {
    /// It is what runs, or older.
    NotNewer,
    /// A build is on trial, or the one before is watched after a failure.
    Busy,
    /// It failed here, and was not signed anew.
    Failed,
    /// The gate refused it: for good, or less than a day ago.
    Refused,
}

/// Judges an offer.
///
/// # Errors
/// [`NotFetched`].
pub fn judge_offer(
    offer: &Offer,
    packaged: VersionNumber,
    state: Option<&SlotsState>,
    now: Timestamp,
) -> Result<(), NotFetched> {
    let nothing = SlotsState::default();
    let state = state.unwrap_or(&nothing);
    if state.trial.is_some() || state.returning != Returning::No {
        return Err(NotFetched::Busy);
    }
    let installed = state.confirmed_build().map_or(packaged, |build| build.version.max(packaged));
    if offer.version <= installed || state.floor.is_some_and(|floor| offer.version < floor) {
        return Err(NotFetched::NotNewer);
    }
    let failed = state.failures.iter().filter(|failure| failure.reason.blames_build());
    if failed.into_iter().any(|failure| failure.build.manifest == offer.manifest) {
        return Err(NotFetched::Failed);
    }
    let refused = state.refused.iter().find(|refused| refused.manifest.as_ref() == Some(&offer.manifest));
    match refused.map(|refused| (refused.cause, refused.at)) {
        None => Ok(()),
        Some((RefusalCause::Host, Some(at))) if now.duration_since(at) >= TRY_AGAIN => Ok(()),
        Some((RefusalCause::Host | RefusalCause::Release, _)) => Err(NotFetched::Refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Build, Content, FailReason, Failure, RefusedRelease, Slot, Trial};

    fn offer(number: u32) -> Offer {
        Offer { version: VersionNumber::new(number, 0, 0), manifest: Sha256Text::of(&number.to_be_bytes()) }
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn build(number: u32) -> Build {
        let Offer { version, manifest } = offer(number);
        Build { version, sha256: Sha256Text::of(b"program"), manifest }
    }

    #[test]
    fn only_what_the_gate_could_take_is_fetched() {
        let packaged = VersionNumber::new(1, 0, 0);
        let judge = |number, state: &SlotsState| judge_offer(&offer(number), packaged, Some(state), now());
        assert_eq!(judge_offer(&offer(2), packaged, None, now()), Ok(()));
        assert_eq!(judge_offer(&offer(1), packaged, None, now()), Err(NotFetched::NotNewer));
        let mut state = SlotsState { a: Content::Holds(build(3)), ..SlotsState::default() };
        state.trial = Some(Trial::new(Slot::A));
        assert_eq!(judge(4, &state), Err(NotFetched::Busy));
        (state.trial, state.confirmed, state.floor) = (None, Some(Slot::A), Some(build(3).version));
        assert_eq!((judge(3, &state), judge(4, &state)), (Err(NotFetched::NotNewer), Ok(())));
        state.failures =
            vec![Failure { build: build(4), reason: FailReason::StartsUsed, at: None, way_back: None }];
        assert_eq!((judge(4, &state), judge(5, &state)), (Err(NotFetched::Failed), Ok(())));
        state.failures[0].reason = FailReason::Damaged;
        assert_eq!(judge(4, &state), Ok(()), "its bytes were damaged here");
        let (code, why) = ("EXPIRED".to_owned(), String::new());
        let manifest = Some(offer(5).manifest);
        let refused = |cause, hours| {
            let at = Some(now() - SignedDuration::from_hours(hours));
            Some(RefusedRelease {
                manifest: manifest.clone(),
                code: code.clone(),
                why: why.clone(),
                cause,
                at,
            })
        };
        state.refused = refused(RefusalCause::Release, 25);
        assert_eq!((judge(5, &state), judge(6, &state)), (Err(NotFetched::Refused), Ok(())));
        state.refused = refused(RefusalCause::Host, 23);
        assert_eq!(judge(5, &state), Err(NotFetched::Refused));
        state.refused = refused(RefusalCause::Host, 25);
        assert_eq!(judge(5, &state), Ok(()), "the host may have keys now");
        state.returning = Returning::Watched { began: None };
        assert_eq!(judge(6, &state), Err(NotFetched::Busy));
    }
}
