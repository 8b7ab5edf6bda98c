//! The root helper and its disks, as checks.
//!
//! Input: the helper's answer, or why there is none. Output: [`Check`]s with the command that fixes the fault. Pure.

use holdfast_protocol::json::chain;

use super::{Check, State};
use crate::port::helper::{HelperError, HelperStatus, HelperTarget};

const NAME: &str = "the root helper";

/// One line for the helper, one for each disk of its policy, one for each mount that is not its own.
#[must_use]
pub fn judge(answer: Result<HelperStatus, HelperError>) -> Vec<Check> {
    let status = match answer {
        Ok(status) => status,
        // A host without disks of its own needs none.
        Err(error @ HelperError::NotInstalled { .. }) => {
            return vec![Check::new(State::Unknown, NAME, chain(&error))];
        }
        Err(error) => return vec![Check::new(State::Failed, NAME, chain(&error))],
    };
    let named = format!("answers, and its policy names {} disks", status.targets.len());
    let mut checks = vec![Check::new(State::Good, NAME, named)];
    checks.extend(status.targets.iter().map(disk));
    checks.extend(status.foreign.iter().map(|point| {
        let detail = "is a mount that the helper did not make, where only its own belong";
        Check { mend: vec![format!("umount {point}")], ..Check::new(State::Failed, point, detail) }
    }));
    checks
}

fn disk(target: &HelperTarget) -> Check {
    let name = format!("disk {}", target.target);
    match (target.mounted, &target.device, &target.refusal) {
        (true, Some(device), _) => Check::new(State::Good, name, format!("mounted, {device}")),
        (true, None, refusal) => {
            let why = refusal.as_ref().map_or("its device is gone", |refusal| refusal.message.as_str());
            Check::new(State::Failed, name, format!("mounted, but {why}"))
        }
        (false, Some(device), _) => {
            Check::new(State::Failed, name, format!("attached as {device}, and not mounted"))
        }
        (false, None, Some(refusal)) => {
            Check::new(State::Failed, name, format!("not mounted, {}: {}", refusal.code, refusal.message))
        }
        (false, None, None) => {
            Check::new(State::Failed, name, "not mounted, and the helper does not say why")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::helper::HelperRefusal;

    fn target(mounted: bool, device: Option<&str>, code: Option<&str>) -> HelperTarget {
        let refusal = code.map(|code| HelperRefusal { code: code.to_owned(), message: "no disk".to_owned() });
        HelperTarget { target: "usb1".to_owned(), mounted, device: device.map(str::to_owned), refusal }
    }

    #[test]
    fn only_a_mounted_and_attached_disk_is_good() {
        for (target, expected) in [
            (target(true, Some("/dev/sdb1"), None), State::Good),
            (target(true, None, Some("E_DEVICE_ABSENT")), State::Failed),
            (target(false, Some("/dev/sdb1"), None), State::Failed),
            (target(false, None, Some("E_DEVICE_ABSENT")), State::Failed),
            (target(false, None, None), State::Failed),
        ] {
            assert_eq!(disk(&target).state, expected, "{target:?}");
        }
    }

    #[test]
    fn a_box_without_a_helper_is_no_failure_and_a_foreign_mount_is() {
        let (socket, program) = ("/run/a".into(), "/usr/lib/b".into());
        let none = judge(Err(HelperError::NotInstalled { socket, program }));
        assert_eq!(none.iter().map(|check| check.state).collect::<Vec<_>>(), [State::Unknown]);
        assert_eq!(judge(Err(HelperError::Silent))[0].state, State::Failed);
        let status = HelperStatus { targets: Vec::new(), foreign: vec!["/mnt/holdfast/x".to_owned()] };
        let checks = judge(Ok(status));
        assert_eq!(checks.iter().map(|check| check.state).collect::<Vec<_>>(), [State::Good, State::Failed]);
        assert_eq!(checks[1].mend, ["umount /mnt/holdfast/x"]);
    }
}
