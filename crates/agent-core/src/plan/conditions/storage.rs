//! Conditions of storage targets and storages.

use holdfast_protocol::condition::{ConditionCode, Severity, Subject};
use holdfast_protocol::report::{StorageReport, StorageState};
use holdfast_protocol::storage::report::{TargetReport, TargetStatus};

use super::{Finding, HostKnowledge};
use crate::plan::fill_level::{FULL_PERCENT, REPORTED_PERCENT, gib, percent};

/// With fewer days left than this, a storage is reported although there is room yet.
const DAYS_LEFT: u64 = 5;

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let targets = known.storage.targets.iter().filter_map(target);
    let storages = known.view.host.iter().flat_map(|host| &host.storages);
    targets.chain(storages.filter_map(|storage| filling(known, storage))).collect()
}

fn target(target: &TargetReport) -> Option<Finding> {
    let code = match target.status {
        TargetStatus::Wrong => ConditionCode::StorageWrong,
        TargetStatus::Absent | TargetStatus::Dropped | TargetStatus::Refused => ConditionCode::StorageGone,
        // A disk that cannot be marked is reported with its reason; nothing says that it is another.
        TargetStatus::Unmarked
        | TargetStatus::Mounted
        | TargetStatus::ByProxmox
        | TargetStatus::Held
        | TargetStatus::Detached => return None,
    };
    let name = &target.name;
    let label = target.label.as_ref().map(|label| format!(", labelled {label}")).unwrap_or_default();
    let message = format!("storage {name}{label} is {}: {}", target.status.as_str(), target.reason);
    let subject = Subject::StorageTarget { target: name.clone() };
    Some(Finding::new(code, subject, message).since(target.since))
}

fn filling(known: &HostKnowledge<'_>, storage: &StorageReport) -> Option<Finding> {
    match storage.state {
        StorageState::Active => {}
        StorageState::Inactive | StorageState::Unknown => return None,
    }
    let (total, used) = (storage.total_bytes?, storage.used_bytes?);
    let level = percent(used, total)?;
    let days = known.fill_history.days_left(storage, known.now).filter(|days| *days <= DAYS_LEFT);
    if level < REPORTED_PERCENT && days.is_none() {
        return None;
    }
    let forecast = days.map(|days| format!(", and full within {} days at its present rate", days + 1));
    let subject = Subject::Storage { storage: storage.name.parse().ok()? };
    let message = format!(
        "storage {} of {} is {level} % full{}; from {FULL_PERCENT} % on nothing new is made on it",
        storage.name,
        gib(total),
        forecast.unwrap_or_default()
    );
    let severity = (level >= FULL_PERCENT).then_some(Severity::Critical);
    Some(Finding { severity, ..Finding::new(ConditionCode::StorageFilling, subject, message) })
}
