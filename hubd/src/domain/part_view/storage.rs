//! Storage targets, as reported next to the document.

use holdfast_protocol::id::TargetName;
use holdfast_protocol::report::Sections;
use holdfast_protocol::resource::view::PartReport;
use holdfast_protocol::storage::report::{TargetReport, TargetStatus};
use holdfast_protocol::storage::{StorageTarget, TargetState};

use super::{ReportedPart, differs};

pub(super) fn reported(
    name: &TargetName,
    content: Option<&StorageTarget>,
    sections: &Sections,
) -> ReportedPart {
    let report = sections.storage.iter().flatten().find(|report| report.name == *name);
    let Some(report) = report else { return ReportedPart::default() };
    let mut differences = Vec::new();
    if let Some(target) = content {
        let mut compare = |path: &str, desired: String, current: String| {
            if desired != current {
                differences.push(differs(path, Some(desired), Some(current)));
            }
        };
        compare("backend", target.backend.to_string(), report.backend.clone());
        compare("class", target.class.to_string(), report.class.to_string());
        compare("role", target.role.to_string(), report.role.to_string());
        if !is_as_desired(target.state, report) {
            let why = if report.reason.is_empty() { String::new() } else { format!(": {}", report.reason) };
            let current = format!("{}{why}", report.status.as_str());
            differences.push(differs("state", Some(target.state.to_string()), Some(current)));
        }
    }
    let value = Some(PartReport::StorageTarget(Box::new(report.clone())));
    ReportedPart { value, differences, applied: Vec::new() }
}

fn is_as_desired(state: TargetState, report: &TargetReport) -> bool {
    let is_used = match report.status {
        TargetStatus::Mounted | TargetStatus::ByProxmox => true,
        TargetStatus::Unmarked
        | TargetStatus::Held
        | TargetStatus::Absent
        | TargetStatus::Dropped
        | TargetStatus::Wrong
        | TargetStatus::Refused
        | TargetStatus::Detached => false,
    };
    match state {
        TargetState::Attached => is_used,
        TargetState::Disconnected | TargetState::Decommissioned => report.status == TargetStatus::Detached,
    }
}
