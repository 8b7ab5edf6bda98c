//! The state of the agent's builds, as root's gate stores it.
//!
//! In: the gate's file, which only root writes and everybody reads. Out: what is confirmed, on trial or failed, and
//! whether this very process is on trial. Deliberately absent: writing.

use std::io::Read as _;
use std::path::Path;

use agent_slots::{FailReason, Failure, SlotsState};
use holdfast_protocol::json;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::report::{AgentBuilds, FailedRelease, RefusedRelease};

use crate::store::BuildStanding;

const SLOTS: &str = "/var/lib/holdfast-slots";

/// Twice what the gate stores at most.
const BYTES_MAX: usize = 256 * 1024;

/// The state; none before a first release, and where it cannot be read.
#[must_use]
pub fn read() -> Option<SlotsState> {
    read_in(Path::new(SLOTS))
}

/// The state as it is reported.
#[must_use]
pub fn builds() -> Option<AgentBuilds> {
    read().as_ref().map(reported)
}

fn reported(state: &SlotsState) -> AgentBuilds {
    let refused = state.refused.as_ref().map(|refused| RefusedRelease {
        manifest_sha256: refused.manifest.clone(),
        code: refused.code.clone(),
        why: refused.why.clone(),
        at: refused.at,
    });
    AgentBuilds {
        confirmed: state.confirmed_build().map(|build| build.version),
        trial: state.trial_build().map(|build| build.version),
        failed: newer_than_package(state.failures.iter().rev().find(|failure| !was_withdrawn(failure))),
        withdrawn: newer_than_package(state.failures.last().filter(|failure| was_withdrawn(failure))),
        refused,
    }
}

/// A trial that ended so says nothing of the build.
const fn was_withdrawn(failure: &Failure) -> bool {
    matches!(failure.reason, FailReason::Withdrawn { .. })
}

/// A trial that ended, unless a package brought what is newer since.
fn newer_than_package(failure: Option<&Failure>) -> Option<FailedRelease> {
    let own = env!("CARGO_PKG_VERSION").parse().unwrap_or(VersionNumber::new(0, 0, 0));
    failure.filter(|failure| failure.build.version > own).map(|failure| FailedRelease {
        version: failure.build.version,
        manifest_sha256: failure.build.manifest.clone(),
        why: failure.reason.to_string(),
        way_back: failure.way_back.as_ref().map(ToString::to_string),
        at: failure.at,
    })
}

/// Whether this process is a build on trial.
#[must_use]
pub fn own_standing() -> BuildStanding {
    let own = std::env::current_exe().unwrap_or_default();
    standing(Path::new(SLOTS), &own)
}

fn read_in(slots: &Path) -> Option<SlotsState> {
    let file = std::fs::File::open(slots.join("state.json")).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
    match json::parse("the state of the agent's builds", &bytes, BYTES_MAX) {
        Ok(state) => Some(state),
        Err(error) => {
            tracing::warn!(error = json::chain(&error), "the state of the agent's builds cannot be read");
            None
        }
    }
}

/// A build in a slot counts as on trial unless the state says that it is confirmed: then nothing is lost if it is taken
/// back.
fn standing(slots: &Path, own: &Path) -> BuildStanding {
    let Ok(inside) = own.strip_prefix(slots) else { return BuildStanding::Settled };
    let confirmed = read_in(slots).and_then(|state| state.confirmed);
    let is_confirmed = confirmed.is_some_and(|slot| inside.starts_with(slot.as_str()));
    if is_confirmed { BuildStanding::Settled } else { BuildStanding::OnTrial }
}

#[cfg(test)]
mod tests {
    use agent_slots::Build;
    use holdfast_protocol::job::act::Sha256Text;
    use holdfast_protocol::release::stored::WithdrawalReason;

    use super::*;

    #[test]
    fn a_build_in_a_slot_is_on_trial_until_it_is_confirmed() {
        let folder = tempfile::tempdir().unwrap();
        let (slots, own) = (folder.path(), folder.path().join("a/agentd"));
        assert_eq!(standing(slots, Path::new("/usr/bin/agentd")), BuildStanding::Settled);
        assert_eq!(standing(slots, &own), BuildStanding::OnTrial, "no state");
        let store = |state: &SlotsState| {
            std::fs::write(slots.join("state.json"), serde_json::to_string(state).unwrap()).unwrap();
        };
        store(&SlotsState::default());
        assert_eq!(standing(slots, &own), BuildStanding::OnTrial);
        store(&SlotsState { confirmed: Some(agent_slots::Slot::A), ..SlotsState::default() });
        assert_eq!(standing(slots, &own), BuildStanding::Settled);
        store(&SlotsState { confirmed: Some(agent_slots::Slot::B), ..SlotsState::default() });
        assert_eq!(standing(slots, &own), BuildStanding::OnTrial);
        std::fs::write(slots.join("state.json"), "{").unwrap();
        assert_eq!((read_in(slots), standing(slots, &own)), (None, BuildStanding::OnTrial));
    }

    /// A release that was withdrawn is no failure, and hides none.
    #[test]
    fn what_was_withdrawn_is_reported_apart_from_what_failed() {
        let ended = |number: u32, reason| {
            let version = VersionNumber::new(number, 0, 0);
            let (sha256, manifest) = (Sha256Text::of(b"program"), Sha256Text::of(&number.to_be_bytes()));
            Failure { build: Build { version, sha256, manifest }, reason, at: None, way_back: None }
        };
        let withdrawn = FailReason::Withdrawn { reason: WithdrawalReason::Held };
        let of = |failures: &[Failure]| {
            let builds = reported(&SlotsState { failures: failures.to_vec(), ..SlotsState::default() });
            let number = |ended: Option<FailedRelease>| ended.map(|ended| ended.version.to_string());
            (number(builds.failed), number(builds.withdrawn))
        };
        let (bad, stopped) = (ended(7, FailReason::StartsUsed), ended(8, withdrawn));
        let (seven, eight) = (Some("7.0.0".to_owned()), Some("8.0.0".to_owned()));
        assert_eq!(of(std::slice::from_ref(&stopped)), (None, eight.clone()));
        assert_eq!(of(&[bad.clone(), stopped.clone()]), (seven.clone(), eight));
        assert_eq!(of(&[stopped, bad]), (seven, None), "it was tried or replaced since");
        assert_eq!(of(&[ended(0, FailReason::StartsUsed)]), (None, None), "the package is newer");
    }
}
