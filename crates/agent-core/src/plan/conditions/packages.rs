//! Conditions of pending upgrades, package lists and due restarts.
//!
//! In: the last reading of root's service. Out: findings, and whether enough is known to end one. Where the reading is old, or
//! apt could not say what waits, conditions stay as they were.

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::report::{PackageText, PendingPackages, RestartReason, UpdatesSection};
use jiff::{SignedDuration, Timestamp};

use super::hardware::HardwareCoverage;
use super::{Finding, HostKnowledge};

/// It is read once an hour. After so long the reading says nothing of now.
const READING_OLD: SignedDuration = SignedDuration::from_hours(3);

/// Package lists that it was not tried to fetch for so long are old.
const LISTS_TRIED_OLD: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Package lists that did not change for so long are old, also where it was tried to fetch them: Debian's security lists
/// change every few days.
const LISTS_CHANGED_OLD: SignedDuration = SignedDuration::from_hours(21 * 24);

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let Some(section) = fresh(known.hardware.updates.as_ref(), known.wall) else { return Vec::new() };
    let pending = section.pending.iter().flat_map(|pending| [security(pending), waiting(pending)]);
    pending.flatten().chain(restart(section)).chain(lists(section)).collect()
}

fn fresh(section: Option<&UpdatesSection>, now: Timestamp) -> Option<&UpdatesSection> {
    section.filter(|section| now.duration_since(section.read_at) <= READING_OLD)
}

fn finding(code: ConditionCode, message: String) -> Finding {
    Finding::new(code, Subject::Host {}, message)
}

fn security(pending: &PendingPackages) -> Option<Finding> {
    // The list has them first.
    let named: Vec<&str> = pending.packages.iter().take(3).map(|package| package.name.as_str()).collect();
    let (count, names) =
        (pending.security, named.get(..named.len().min(pending.security as usize))?.join(", "));
    let message = format!("{count} security upgrades wait: {names}{}", if count > 3 { ", …" } else { "" });
    (count > 0).then(|| finding(ConditionCode::HostSecurityUpdates, message))
}

fn waiting(pending: &PendingPackages) -> Option<Finding> {
    let (total, proxmox) = (pending.total(), pending.proxmox);
    let removed = match pending.removals {
        0 => String::new(),
        count => format!("; {count} packages would be removed"),
    };
    let message = format!("{total} packages wait for an upgrade, {proxmox} of them from Proxmox{removed}");
    (total > 0).then(|| finding(ConditionCode::HostUpdatesPending, message))
}

fn restart(section: &UpdatesSection) -> Option<Finding> {
    let text = |text: Option<&PackageText>| text.map_or("another", PackageText::as_str).to_owned();
    let reason = |reason: &RestartReason| match reason {
        RestartReason::NewerKernel => format!(
            "kernel {} runs and {} is installed",
            text(section.running_kernel.as_ref()),
            text(section.newest_kernel.as_ref())
        ),
        RestartReason::Announced => {
            let names: Vec<&str> = section.restart_packages.iter().map(PackageText::as_str).collect();
            let names = if names.is_empty() { "/run/reboot-required".to_owned() } else { names.join(", ") };
            format!("upgraded packages ask for a restart ({names})")
        }
    };
    let message = section.restart.iter().map(reason).collect::<Vec<_>>().join("; ");
    (!message.is_empty()).then(|| finding(ConditionCode::HostRebootRequired, message))
}

/// By the time of the reading, so that a reading that stays says the same.
fn lists(section: &UpdatesSection) -> Option<Finding> {
    let age = |at: Timestamp| section.read_at.duration_since(at);
    let message = if let Some(failure) = &section.failure {
        format!("apt cannot say which upgrades wait: {}", failure.as_str())
    } else {
        match (section.lists_changed_at, section.lists_tried_at) {
            (None, _) => "there are no package lists".to_owned(),
            (Some(changed), None) if age(changed) > LISTS_TRIED_OLD => {
                format!(
                    "package lists are of {changed:.0}, and it is unknown whether they were fetched since"
                )
            }
            (Some(_), Some(tried)) if age(tried) > LISTS_TRIED_OLD => {
                format!("it was last tried to fetch package lists at {tried:.0}")
            }
            (Some(changed), Some(_)) if age(changed) > LISTS_CHANGED_OLD => {
                format!("package lists are of {changed:.0}, although it was tried since to fetch them")
            }
            (Some(_), _) => return None,
        }
    };
    Some(finding(ConditionCode::PackageListsOld, message))
}

impl HardwareCoverage<'_> {
    /// Whether root's service read the packages.
    pub(super) fn has_packages(&self) -> bool {
        fresh(self.view.updates.as_ref(), self.now).is_some()
    }

    /// Whether it is known what waits.
    pub(super) fn has_pending(&self) -> bool {
        fresh(self.view.updates.as_ref(), self.now).is_some_and(|section| section.pending.is_some())
    }
}
