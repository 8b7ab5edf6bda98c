//! *backup*: one whole backup of one guest.

use holdfast_protocol::id::StorageName;
use serde::{Deserialize, Serialize};

use super::Target;
use crate::model::record::BackupWhy;

/// A backup to be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// The guest.
    pub target: Target,
    /// Where it goes.
    pub storage: StorageName,
    /// Why it is taken.
    pub why: BackupWhy,
}
