//! The check of storage entries against their approvals.
//!
//! Input: the admin socket. Output: one check for each target whose entry differs or is missing, with the command that
//! makes it. If the agent does not answer, the check of its records reports that.

use std::path::Path;

use holdfast_protocol::storage::report::TargetReport;

use super::row::{Check, State};
use crate::plan::entry::line_in;
use crate::port::admin_socket;

#[must_use]
pub fn checks(state: &Path) -> Vec<Check> {
    let status = admin_socket::ask(state).ok();
    let targets = status.and_then(|status| status.sections.storage).unwrap_or_default();
    targets.iter().filter(|target| !target.entry.is_empty()).map(check).collect()
}

fn check(target: &TargetReport) -> Check {
    let mend = target.entry.iter().filter_map(|words| line_in(words)).map(str::to_owned).collect();
    Check {
        state: State::Failed,
        name: format!("storage {} in Proxmox", target.name),
        detail: target.entry.join("; "),
        mend,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::entry::{add_line, differences};

    #[test]
    fn a_missing_entry_is_reported_with_the_line_that_makes_it() {
        let approval =
            serde_json::from_value(json!({ "name": "nas1", "class": "slow", "role": "local-backup",
            "backend": { "nfs": { "server": "nas", "export": "/srv/bk" } } }))
            .unwrap();
        let target: TargetReport =
            serde_json::from_value(json!({ "name": "nas1", "backend": "nfs nas:/srv/bk",
            "role": "local-backup", "class": "slow", "status": "by-proxmox", "since": "2026-11-22T00:00:00Z",
            "reason": "", "entry": differences(&approval, None) }))
            .unwrap();
        let found = check(&target);
        assert_eq!((found.state, found.mend), (State::Failed, vec![add_line(&approval)]));
    }
}
