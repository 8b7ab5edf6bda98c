//! The cause of an interrupted restore test.
//!
//! What comes in: the step that failed, and the code it failed with. What goes out: *failed* where Proxmox or our own
//! rules named the archive, or where what was restored of it did not come up or stay up; else *not run*. So a key that
//! is wrong or gone, rotten bytes and a backup of somebody else are red. The host's faults are a full pool, a number
//! that was taken, a network that somebody plugged in, a right that is missing, and every cause that cannot be
//! determined. These are tried again within the hour.
//!
//! In doubt it is *not run*. That protects nothing: only a proof does, and the last one grows old while tests do not run.
//! *Failed* without need would do harm: such a backup is never what a lost guest comes back from (`plan/survivor`), and an
//! older state, or nothing, would come back in its place. Pure.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::local::restore_test::TestVerdict;

use crate::operation::step::Step;

/// The verdict of a test that was taken back because of this.
#[must_use]
pub const fn verdict(failed: Step, why: ErrorCode) -> TestVerdict {
    match (failed, why) {
        (Step::CheckArchive | Step::Restore | Step::ConfirmIsolated, ErrorCode::ArchiveUnusable)
        | (Step::FirstStart | Step::ObserveBoot | Step::AwaitReport, ErrorCode::Broken) => {
            TestVerdict::Failed
        }
        _ => TestVerdict::NotRun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all pairs of a step and a code these alone speak against the backup.
    #[test]
    fn few_things_are_the_backups_fault() {
        let pairs = Step::ALL.iter().flat_map(|step| ErrorCode::ALL.iter().map(move |code| (*step, *code)));
        let blamed: Vec<String> = pairs
            .filter(|(step, code)| verdict(*step, *code) == TestVerdict::Failed)
            .map(|(step, code)| format!("{} {code}", step.name()))
            .collect();
        assert_eq!(
            blamed,
            [
                "judge_archive ARCHIVE_UNUSABLE",
                "restore ARCHIVE_UNUSABLE",
                "first_start BROKEN",
                "confirm_isolated ARCHIVE_UNUSABLE",
                "observe_boot BROKEN",
                "await_report BROKEN",
            ]
        );
    }
}
