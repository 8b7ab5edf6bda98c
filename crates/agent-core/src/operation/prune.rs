//! *prune_backup*: the removal of one backup.

use holdfast_protocol::id::{OperationId, StorageName};
use holdfast_protocol::protection::Tier;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::{Effect, Prune};
use crate::model::records::VolumeId;
use crate::model::warrant::{Warrant, WrongWarrant};

/// A backup to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneBackup {
    pub target: Target,
    pub archive: VolumeId,
    /// Where it is stored.
    pub storage: StorageName,
    /// The tier whose retention removes it.
    pub tier: Tier,
    /// The operation that took it. Another archive of that name is left alone.
    pub taken_by: OperationId,
    /// One that stays, which must be listed in addition to it. By the retention a newer one of the same tier.
    pub successor: VolumeId,
    /// By which time it was judged. Much later, or earlier, it is judged anew.
    pub judged_at: Timestamp,
    /// What removes it.
    #[serde(default, skip_serializing_if = "PruneBy::is_retention")]
    pub by: PruneBy,
}

/// What removes a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneBy {
    /// The retention in force no longer keeps it.
    #[default]
    Retention,
    /// An operator signed for it.
    Signature(Deletion),
}

impl PruneBy {
    const fn is_retention(&self) -> bool {
        matches!(self, Self::Retention)
    }
}

/// A backup that an operator signed for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deletion {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
}

impl Deletion {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(warrant: Warrant) -> Result<Self, WrongWarrant> {
        warrant.deletes()?;
        Ok(Self { warrant })
    }

    /// What was signed.
    #[must_use]
    pub const fn warrant(&self) -> &Warrant {
        &self.warrant
    }
}

impl Spec for PruneBackup {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::RemoveBackup]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![match self.by {
            // This was judged by what is in force, and is judged again before the removal.
            PruneBy::Retention => Effect::PruneBackup(Prune::OutsidePolicy),
            PruneBy::Signature(_) => Effect::DeleteBackup,
        }]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
