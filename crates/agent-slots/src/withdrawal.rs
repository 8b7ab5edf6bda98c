//! Whether the build on trial is offered no more.
//!
//! In: what the hub says it stopped, and the state of the slots. Out: the end of the trial, which the agent on trial tells
//! root's gate when that asks. Deliberately absent: any choice of a build. The gate puts the confirmed one back, and a hub
//! that says nothing ends no trial.

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::{WithdrawalReason, WithdrawnRelease};
use serde::{Deserialize, Serialize};

use crate::state::SlotsState;

/// The end of a trial, as the agent on trial answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialWithdrawal {
    /// SHA-256 of the manifest of the release that was stopped.
    pub manifest: Sha256Text,
    pub reason: WithdrawalReason,
}

/// The end of the trial, where exactly the release on trial was stopped.
#[must_use]
pub fn ends_trial(
    withdrawn: Option<&WithdrawnRelease>,
    state: Option<&SlotsState>,
) -> Option<TrialWithdrawal> {
    let (withdrawn, trial) = (withdrawn?, state?.trial_build()?);
    (withdrawn.manifest_sha256 == trial.manifest)
        .then(|| TrialWithdrawal { manifest: trial.manifest.clone(), reason: withdrawn.reason })
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::release::VersionNumber;

    use super::*;
    use crate::state::{Build, Content, Slot, Trial};

    #[test]
    fn only_the_release_on_trial_ends_it() {
        let version = VersionNumber::new(2, 0, 0);
        let build = Build { version, sha256: Sha256Text::of(b"two"), manifest: Sha256Text::of(b"m2") };
        let mut state = SlotsState { a: Content::Holds(build), ..SlotsState::default() };
        let stopped = |manifest: &[u8]| WithdrawnRelease {
            version,
            manifest_sha256: Sha256Text::of(manifest),
            reason: WithdrawalReason::Held,
        };
        assert_eq!(ends_trial(Some(&stopped(b"m2")), Some(&state)), None, "nothing is on trial");
        state.trial = Some(Trial { slot: Slot::A, starts_left: 2, reboots_left: 9, began: None });
        let ended = ends_trial(Some(&stopped(b"m2")), Some(&state)).unwrap();
        assert_eq!((ended.manifest, ended.reason), (Sha256Text::of(b"m2"), WithdrawalReason::Held));
        assert_eq!(ends_trial(Some(&stopped(b"m3")), Some(&state)), None, "another edition");
        assert_eq!(ends_trial(None, Some(&state)), None, "the hub says nothing");
        assert_eq!(ends_trial(Some(&stopped(b"m2")), None), None);
        (state.trial, state.confirmed) = (None, Some(Slot::A));
        assert_eq!(ends_trial(Some(&stopped(b"m2")), Some(&state)), None, "it is confirmed");
    }
}
