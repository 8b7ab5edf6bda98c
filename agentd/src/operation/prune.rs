//! *prune_backup*: one backup that the retention in force no longer keeps.

use holdfast_protocol::id::{OperationId, StorageName};
use holdfast_protocol::protection::Tier;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Target;
use crate::model::record::VolumeId;

/// A backup to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneBackup {
    /// The guest.
    pub target: Target,
    /// The archive.
    pub archive: VolumeId,
    /// Where it lies.
    pub storage: StorageName,
    /// By which tier's retention it goes.
    pub tier: Tier,
    /// The operation that took it. Another archive of that name is left alone.
    pub taken_by: OperationId,
    /// A newer one of the same tier, which must be listed beside it.
    pub successor: VolumeId,
    /// By which time it was judged. Much later, or earlier, it is judged anew.
    pub judged_at: Timestamp,
}
