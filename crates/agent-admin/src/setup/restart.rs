//! Restarting an agent that runs, once it has other tokens or settings.
//!
//! Input: the steps of this run. Output: one step where a running agent would go on with the settings that it read at
//! its start. It loses no work by a restart: operations under way are resumed from the journal.

use std::path::Path;

use super::diff::{Step, StepState};
use super::local::{LocalAct, LocalStep};
use super::plan::Choices;
use super::write::Write;

/// The unit.
const UNIT: &str = "agentd.service";

/// Where systemd has an entry for each unit that is active.
const ACTIVE_UNITS: &str = "/run/systemd/units";

/// The step; none where no agent runs, or nothing changes that it read.
#[must_use]
pub fn step(choices: &Choices, steps: &[Step], local: &[LocalStep]) -> Option<LocalStep> {
    choices.system_user.as_ref()?;
    let is_active = Path::new(ACTIVE_UNITS).join(format!("invocation:{UNIT}")).symlink_metadata().is_ok();
    (is_active && reads_anew(steps, local)).then(|| LocalStep {
        what: format!("unit {UNIT}, restarted to take up what changed"),
        status: StepState::Missing,
        act: LocalAct::Command(["systemctl", "try-restart", UNIT].map(str::to_owned).to_vec()),
    })
}

/// Whether a token is made anew, or a file changes that the agent reads at its start.
fn reads_anew(steps: &[Step], local: &[LocalStep]) -> bool {
    let new_token = |step: &Step| step.writes.iter().any(|write| matches!(write, Write::AddToken { .. }));
    let is_read = |step: &LocalStep| match &step.act {
        LocalAct::Settings { .. } | LocalAct::TrustFile { .. } => step.status != StepState::Done,
        LocalAct::SystemUser { .. }
        | LocalAct::PrivateFolder(_)
        | LocalAct::OpenFolder(_)
        | LocalAct::PlainFile { .. }
        | LocalAct::GroupFile { .. }
        | LocalAct::HelperPolicy { .. }
        | LocalAct::Command(_) => false,
    };
    steps.iter().any(new_token) || local.iter().any(is_read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::pve::Role;

    fn settings(status: StepState) -> LocalStep {
        let act = LocalAct::Settings { path: "/etc/holdfast/agent.toml".into(), text: String::new() };
        LocalStep { what: "settings".to_owned(), status, act }
    }

    fn writes(writes: Vec<Write>) -> Step {
        Step { what: "a step".to_owned(), status: StepState::Missing, writes }
    }

    #[test]
    fn a_new_token_or_other_settings_are_read_anew_and_a_grant_is_not() {
        let token = Write::AddToken { user: "holdfast@pve".to_owned(), role: Role::Operate };
        let pool = Write::AddPool("holdfast".to_owned());
        assert!(reads_anew(&[writes(vec![token])], &[]));
        assert!(reads_anew(&[], &[settings(StepState::Differs("it says other things"))]));
        assert!(!reads_anew(&[writes(vec![pool])], &[settings(StepState::Done)]));
    }
}
