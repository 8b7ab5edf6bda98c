//! The usable target of a tier, and room for its snapshots.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::StorageName;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::Condition;
use holdfast_protocol::storage::{StorageRole, TargetState};

use super::facts::{Promised, ScheduleFacts};
use super::outstanding::scheduled;
use super::space;
use crate::model::limits;
use crate::model::observed::StorageFact;
use crate::model::policy::Policy;
use crate::model::records::Records;
use crate::plan::Inputs;

/// Whether a storage was approved for backups of a tier: root named it on this host, or an operator signed for the
/// target.
#[must_use]
pub fn is_approved(policy: &Policy, records: &Records, tier: Tier, target: &StorageName) -> bool {
    let of_role = |role: StorageRole| match tier {
        Tier::Snapshot => false,
        Tier::Local => role == StorageRole::LocalBackup,
        Tier::OffSite => role == StorageRole::OffsiteBackup,
    };
    policy.backup_storage.as_ref() == Some(target)
        || records.storage.iter().any(|known| {
            known.approval.name.as_str() == target.as_str()
                && known.status == TargetState::Attached
                && of_role(known.approval.role)
        })
}

/// What keeps one more from being kept. What its retention releases is removed first.
pub(super) fn has_room(
    inputs: &Inputs<'_>,
    known: &ScheduleFacts<'_>,
    promised: &Promised<'_>,
) -> Result<(), Condition> {
    if let Some(target) = promised.target {
        return space::judge(inputs.observed, known.backups, (target, promised.tier))
            .map_err(|full| Condition { code: full.code, message: full.message });
    }
    let (stand, most) = (scheduled(known.snapshots).count(), limits::SCHEDULED_SNAPSHOTS_PER_GUEST);
    if promised.tier != Tier::Snapshot || stand < most {
        return Ok(());
    }
    let message = format!(
        "no snapshot is taken by its schedule: {stand} of these stand, no more than {most} may, and its retention ({}) lets none \
         go: an operator signs `loosen_policy` for less",
        promised.retention
    );
    Err(Condition { code: ErrorCode::Quota, message })
}

/// What keeps the tier's backups from being taken.
pub(super) fn judge(inputs: &Inputs<'_>, promised: &Promised<'_>) -> Result<(), Condition> {
    let Some(target) = promised.target else { return Ok(()) };
    let tier = promised.tier;
    if !is_approved(inputs.policy, inputs.records, tier, target) {
        let message = format!(
            "no {tier} backup can be taken: storage {target} is no approved target for it; an operator signs `attach_storage`, or root \
             names it as backup_storage in agent.toml"
        );
        return Err(Condition { code: ErrorCode::StorageGone, message });
    }
    if inputs.observed.storages.get(target) == Some(&StorageFact::Inactive) {
        let message =
            format!("no {tier} backup can be taken: Proxmox says that storage {target} is not there");
        return Err(Condition { code: ErrorCode::StorageGone, message });
    }
    Ok(())
}
