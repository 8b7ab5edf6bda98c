//! What is remembered of each target between looks, and what of it is told.
//!
//! What comes in: what was seen and what came of deeds. What goes out: rows of the report, and which changes stand in the
//! audit. Nothing of it is needed after a restart. Deliberately absent: decisions.

use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::StorageTarget;
use holdfast_protocol::storage::report::{TargetReport, TargetStanding};
use jiff::Timestamp;

use crate::execute::storage::Outcome;
use crate::model::storage::{MarkerSeen, TargetMemory, TargetRecord};
use crate::plan::storage::{Deed, Judged};

/// A deed that was refused is tried again after this, doubled up to the longest; and whenever the disks change.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// What is remembered of one target.
#[derive(Default)]
pub struct Memory {
    pub target: TargetMemory,
    pub told: Option<(TargetStanding, Timestamp)>,
    /// When it was last found mounted anew.
    pub mounted_at: Option<Timestamp>,
    /// The deed whose line stands in the audit: tries of it again are the same decision.
    pub noted: Option<Deed>,
    pub tries: u32,
    pub not_before: Duration,
}

impl Memory {
    /// Takes in what came of a deed.
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

/// The line of the audit for a change; what is only not there yet is none. A share is not mounted by us: that it is there is
/// a line where it was gone.
pub fn line(before: Option<TargetStanding>, standing: TargetStanding) -> Option<&'static str> {
    match standing {
        TargetStanding::ByProxmox if before.is_some_and(TargetStanding::is_gone) => Some("storage_returned"),
        TargetStanding::Mounted => Some("storage_mounted"),
        TargetStanding::Unmarked => Some("storage_unmarked"),
        TargetStanding::Dropped => Some("storage_dropped"),
        TargetStanding::Wrong => Some("storage_wrong"),
        TargetStanding::Refused => Some("storage_refused"),
        TargetStanding::Detached => Some("storage_detached"),
        TargetStanding::Absent | TargetStanding::Held | TargetStanding::ByProxmox => None,
    }
}

/// What is in force is told before what is wished. None, where there is neither.
pub fn report(
    name: &TargetName,
    judged: &Judged,
    (wanted, record): (Option<&StorageTarget>, Option<&TargetRecord>),
    since: Timestamp,
    device: Option<String>,
) -> Option<TargetReport> {
    let in_force = record.map(|record| &record.approval);
    let medium = in_force.map(|approval| &approval.medium).or(wanted.map(|target| &target.medium))?;
    let held = (judged.standing == TargetStanding::Held).then_some(wanted).flatten();
    let medium = held.map_or(medium, |target| &target.medium);
    let (role, class) = match (held, in_force, wanted) {
        (Some(target), _, _) | (None, None, Some(target)) => (target.role, target.class),
        (None, Some(approval), _) => (approval.role, approval.class),
        (None, None, None) => return None,
    };
    Some(TargetReport {
        name: name.clone(),
        medium: medium.to_string(),
        role,
        class,
        label: wanted.map(|target| target.label.as_str().to_owned()),
        standing: judged.standing,
        since,
        reason: judged.reason.clone(),
        entry: Vec::new(),
        device,
        off_site: None,
        iops: record.and_then(|record| record.marked).and_then(|marked| marked.iops),
    })
}
