//! *quiesced_backup*: a backup while the guest's stacks are stopped.
//!
//! The operation holds the guest's lane from the grant of the window to the end of the copy. It holds the host's one
//! place for backups from before the grant to the end of the copy. So no guest's programs stand still while a backup
//! waits for that place.

use serde::{Deserialize, Serialize};

use super::Backup;
use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::policy::QuiesceBound;

/// A backup to be taken within a quiesce window. The window's id is the operation's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuiescedBackup {
    pub backup: Backup,
    /// How long the guest's programs may stand still for it.
    pub bound: QuiesceBound,
}

impl QuiescedBackup {}

impl Spec for QuiescedBackup {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.backup.target.guest(), holds: Holds::Guest, takes: Takes::Backup(&self.backup) }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::GrantWindow, Step::AwaitQuiesced, Step::TakeBackup, Step::AwaitReleased]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Backup]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
