//! *roll_back*: a guest returns to one of our snapshots.
//!
//! Proxmox puts the configuration back together with the disks: an old bootstrap token in the environment, tags, protection,
//! sizes. So what is ours is set again before the guest runs; what the document wants otherwise, the plan corrects.

use holdfast_protocol::id::{OperationId, SnapshotName};
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::{self, Effect};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    pub target: Target,
    /// To which snapshot.
    pub snapshot: SnapshotName,
    /// The operation that made the snapshot.
    pub made_by: OperationId,
    /// The part of it that is in no backup.
    pub bulk: BulkRule,
}

/// Whether bulk volumes, which no backup holds, may go back as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkRule {
    /// There is none; if there is one after all, the rollback is refused.
    NoneThere,
    /// An operator signed for it.
    Signed,
}

impl RollBack {
    /// The tag before the effect that takes it away, and nothing runs before what came back was made fresh.
    pub(super) fn steps() -> Vec<Step> {
        vec![
            Step::VerifySnapshot,
            Step::ArmRollBack,
            Step::ShutDown,
            Step::RollBack,
            Step::Renew,
            Step::StartAgain,
            Step::ConfirmAgain,
        ]
    }
}

impl Spec for RollBack {
    fn facts(&self) -> Facts<'_> {
        Facts {
            guest: self.target.guest(),
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // A guest stops for it, but because it asked.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Snapshot(self.snapshot.clone())
    }

    fn steps(&self) -> Vec<Step> {
        Self::steps()
    }

    fn effects(&self) -> Vec<Effect> {
        let which = match self.bulk {
            BulkRule::NoneThere => gate::RollBack::Itself(self.target.uid),
            BulkRule::Signed => gate::RollBack::ItselfWithBulk,
        };
        vec![Effect::RollBack(which), Effect::Protect]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
