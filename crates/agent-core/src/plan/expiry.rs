//! Expired snapshots of ours, removed one by one.

use super::Context;
use super::made::Made;
use crate::operation::{ExpireSnapshot, ExpiryWhy, Operation, Target};

/// The snapshot to remove next, and why. When none is due, the plan records when one will be.
pub(super) fn due(context: &Context<'_>, made: &Made<'_>) -> Option<(Operation, String)> {
    let (records, uid) = (context.inputs.records, made.record.uid);
    let from = records.snapshots.partition_point(|one| one.guest < uid);
    let next = records.snapshots.get(from).filter(|one| one.guest == uid)?;
    let expires_at = next.expires_at?;
    if expires_at > context.inputs.now {
        context.again(expires_at);
        return None;
    }
    let target = Target { uid, name: made.record.name.clone(), vmid: made.vmid };
    let expiry = ExpireSnapshot {
        target,
        name: next.name.clone(),
        made_by: next.made_by,
        why: ExpiryWhy::PastItsTime,
    };
    let reason = format!("snapshot {} was to go at {expires_at}", next.name);
    Some((Operation::ExpireSnapshot(expiry), reason))
}
