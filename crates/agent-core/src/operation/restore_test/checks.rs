//! The checks of a restore test that passed, one by one.
//!
//! What comes in: the scratch guest's report, and the canaries that the guest reported when the backup was taken. What
//! goes out: what a restore certificate lists. It is called only for a test with the verdict *proved*. Pure.

use holdfast_protocol::local::restore_test::{StackHealth, TestReport};
use holdfast_protocol::local::window::Canary;
use holdfast_protocol::restore_certificate::{Check, StackState};

/// Lists them. A canary is listed where it was found unchanged.
#[must_use]
pub fn passed(report: &TestReport, reported: &[Canary]) -> Vec<Check> {
    let mut checks = vec![Check::Restored {}, Check::Isolated {}, Check::Reported {}];
    checks.extend(report.stacks.iter().filter_map(|stack| {
        let state = match &stack.health {
            StackHealth::Healthy => StackState::Healthy,
            StackHealth::Runs => StackState::Runs,
            StackHealth::Unhealthy { .. } => return None,
        };
        Some(Check::Stack { name: stack.stack.clone(), state, took_ms: stack.took_ms })
    }));
    let unchanged = reported.iter().filter(|was| report.canaries.contains(was));
    checks.extend(
        unchanged.map(|canary| Check::Canary { mount: canary.mount.clone(), sha256: canary.sha256.clone() }),
    );
    checks
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::local::restore_test::StackCheck;

    use super::*;

    fn canary(mount: Option<&str>, digit: &str) -> Canary {
        Canary {
            mount: mount.map(|mount| mount.parse().unwrap()),
            sha256: digit.repeat(64).try_into().unwrap(),
        }
    }

    #[test]
    fn what_did_not_pass_is_not_listed() {
        let stack = |name: &str, health| StackCheck { stack: name.parse().unwrap(), health, took_ms: 5 };
        let (root, data) = (canary(None, "a"), canary(Some("/srv/db"), "b"));
        let report = TestReport {
            guest: None,
            stacks: vec![
                stack("shop", StackHealth::Healthy),
                stack("blog", StackHealth::Runs),
                stack("mail", StackHealth::Unhealthy { why: "no answer".to_owned() }),
            ],
            canaries: vec![root.clone(), canary(Some("/srv/db"), "c")],
            reached: Vec::new(),
        };
        let listed = passed(&report, &[root.clone(), data]);
        let name = |name: &str| name.parse().unwrap();
        assert_eq!(
            listed,
            [
                Check::Restored {},
                Check::Isolated {},
                Check::Reported {},
                Check::Stack { name: name("shop"), state: StackState::Healthy, took_ms: 5 },
                Check::Stack { name: name("blog"), state: StackState::Runs, took_ms: 5 },
                Check::Canary { mount: None, sha256: root.sha256 },
            ]
        );
    }
}
