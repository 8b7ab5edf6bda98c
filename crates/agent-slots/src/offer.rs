//! Whether the agent fetches a release that it is offered.
//!
//! In: the offer, the version that runs, the state of the slots. Out: fetch it, or why not. The gate judges again, by
//! signature and digest; this only spares the host a download and a restart that would change nothing.

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;

use crate::state::{Returning, SlotsState};

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
    /// The gate refused it.
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
    if state.refused.as_ref().is_some_and(|refused| refused.manifest.as_ref() == Some(&offer.manifest)) {
        return Err(NotFetched::Refused);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Build, Content, FailReason, Failure, RefusedRelease, Slot, Trial};

    fn offer(number: u32) -> Offer {
        Offer { version: VersionNumber::new(number, 0, 0), manifest: Sha256Text::of(&number.to_be_bytes()) }
    }

    fn build(number: u32) -> Build {
        let Offer { version, manifest } = offer(number);
        Build { version, sha256: Sha256Text::of(b"program"), manifest }
    }

    #[test]
    fn only_what_the_gate_could_take_is_fetched() {
        let packaged = VersionNumber::new(1, 0, 0);
        let judge = |number, state: &SlotsState| judge_offer(&offer(number), packaged, Some(state));
        assert_eq!(judge_offer(&offer(2), packaged, None), Ok(()));
        assert_eq!(judge_offer(&offer(1), packaged, None), Err(NotFetched::NotNewer));
        let mut state = SlotsState { a: Content::Holds(build(3)), ..SlotsState::default() };
        state.trial = Some(Trial { slot: Slot::A, starts_left: 3, began: None });
        assert_eq!(judge(4, &state), Err(NotFetched::Busy));
        (state.trial, state.confirmed, state.floor) = (None, Some(Slot::A), Some(build(3).version));
        assert_eq!((judge(3, &state), judge(4, &state)), (Err(NotFetched::NotNewer), Ok(())));
        state.failures =
            vec![Failure { build: build(4), reason: FailReason::StartsUsed, at: None, way_back: None }];
        assert_eq!((judge(4, &state), judge(5, &state)), (Err(NotFetched::Failed), Ok(())));
        state.failures[0].reason = FailReason::Damaged;
        assert_eq!(judge(4, &state), Ok(()), "its bytes were damaged here");
        let (code, why) = ("EXPIRED".to_owned(), String::new());
        state.refused = Some(RefusedRelease { manifest: Some(offer(5).manifest), code, why, at: None });
        assert_eq!((judge(5, &state), judge(6, &state)), (Err(NotFetched::Refused), Ok(())));
        state.returning = Returning::Watched { began: None };
        assert_eq!(judge(6, &state), Err(NotFetched::Busy));
    }
}
