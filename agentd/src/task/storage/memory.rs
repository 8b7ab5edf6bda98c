//! Remembered states of targets between polls.
//!
//! In: what was observed, and the results of actions. Out: rows of the report, and which changes are in the audit.
//! Nothing of it is needed after a restart. Deliberately absent: decisions.

use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::StorageTarget;
use holdfast_protocol::storage::report::{TargetReport, TargetStatus};
use jiff::Timestamp;

use crate::execute::storage::Outcome;
use crate::model::storage::{MarkerSeen, TargetMemory, TargetRecord};
use crate::plan::storage::{Judged, TargetAction};

/// An action that was refused is tried again after this, doubled up to the longest; and whenever the disks change.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// What is remembered of one target.
#[derive(Default)]
pub struct Memory {
    pub target: TargetMemory,
    pub reported: Option<(TargetStatus, Timestamp)>,
    /// When it was last found mounted anew.
    pub mounted_at: Option<Timestamp>,
    /// The action whose line is in the audit: repeated tries of it are the same decision.
    pub noted: Option<TargetAction>,
    pub tries: u32,
    pub not_before: Duration,
}

impl Memory {
    /// Takes in the result of an action.
    pub fn heard(&mut self, outcome: Outcome, now: Duration, at: Timestamp) {
        let settled = match outcome {
            Outcome::Mounted { id, marker, .. } => {
                let settled = !matches!(marker, MarkerSeen::Unread(_) | MarkerSeen::Unwritable(_));
                self.target.refusal = None;
                self.target.was_mounted = true;
                self.mounted_at = Some(at);
                self.target.wrong =
                    matches!(marker, MarkerSeen::Missing | MarkerSeen::Other(_)).then(|| marker.clone());
                self.target.confirmed = Some((id, marker));
                settled
            }
            Outcome::Unmounted => {
                self.target.refusal = None;
                self.target.confirmed = None;
                true
            }
            Outcome::Refused(code, says) => {
                self.target.refusal = Some((code, says));
                false
            }
        };
        if settled {
            self.tries = 0;
            self.noted = None;
            self.not_before = Duration::ZERO;
        } else {
            let pause = RETRY_FIRST.saturating_mul(1 << self.tries.min(10)).min(RETRY_MAX);
            self.tries = self.tries.saturating_add(1);
            self.not_before = now.saturating_add(pause);
        }
    }

    /// What was said of the disks before is no longer so.
    pub fn disks_changed(&mut self) {
        self.target.wrong = None;
        self.tries = 0;
        self.not_before = Duration::ZERO;
    }
}

/// The line of the audit for a change; a target that is only not there yet has none. A share is not mounted by us: its
/// presence gets a line only after it was gone.
pub fn line(before: Option<TargetStatus>, status: TargetStatus) -> Option<&'static str> {
    match status {
        TargetStatus::ByProxmox if before.is_some_and(TargetStatus::is_gone) => Some("storage_returned"),
        TargetStatus::Mounted => Some("storage_mounted"),
        TargetStatus::Unmarked => Some("storage_unmarked"),
        TargetStatus::Dropped => Some("storage_dropped"),
        TargetStatus::Wrong => Some("storage_wrong"),
        TargetStatus::Refused => Some("storage_refused"),
        TargetStatus::Detached => Some("storage_detached"),
        TargetStatus::Absent | TargetStatus::Held | TargetStatus::ByProxmox => None,
    }
}

/// The backend in force is reported rather than the requested one. `None` when there is neither.
pub fn report(
    name: &TargetName,
    judged: &Judged,
    (wanted, record): (Option<&StorageTarget>, Option<&TargetRecord>),
    since: Timestamp,
    device: Option<String>,
) -> Option<TargetReport> {
    let in_force = record.map(|record| &record.approval);
    let backend = in_force.map(|approval| &approval.backend).or(wanted.map(|target| &target.backend))?;
    let held = (judged.status == TargetStatus::Held).then_some(wanted).flatten();
    let backend = held.map_or(backend, |target| &target.backend);
    let (role, class) = match (held, in_force, wanted) {
        (Some(target), _, _) | (None, None, Some(target)) => (target.role, target.class),
        (None, Some(approval), _) => (approval.role, approval.class),
        (None, None, None) => return None,
    };
    Some(TargetReport {
        name: name.clone(),
        backend: backend.to_string(),
        role,
        class,
        label: wanted.map(|target| target.label.as_str().to_owned()),
        status: judged.status,
        since,
        reason: judged.reason.clone(),
        entry: Vec::new(),
        device,
        off_site: None,
        iops: record.and_then(|record| record.marked).and_then(|marked| marked.iops),
    })
}
