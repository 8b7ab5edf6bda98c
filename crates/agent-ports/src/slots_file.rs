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
        failed: newest_failure(state).filter(|failure| !was_withdrawn(failure)).map(ended),
        withdrawn: newest_failure(state).filter(|failure| was_withdrawn(failure)).map(ended),
        refused,
    }
}

/// A trial that ended so says nothing of the build.
const fn was_withdrawn(failure: &Failure) -> bool {
    matches!(failure.reason, FailReason::Withdrawn { .. })
}

fn ended(failure: &Failure) -> FailedRelease {
    FailedRelease {
        version: failure.build.version,
        manifest_sha256: failure.build.manifest.clone(),
        why: failure.reason.to_string(),
        way_back: failure.way_back.as_ref().map(ToString::to_string),
        at: failure.at,
    }
}

/// The last failure, unless a package brought what is newer since.
fn newest_failure(state: &SlotsState) -> Option<&Failure> {
    let own = env!("CARGO_PKG_VERSION").parse().unwrap_or(VersionNumber::new(0, 0, 0));
    state.failures.last().filter(|failure| failure.build.version > own)
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
}
