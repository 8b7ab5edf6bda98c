//! *backup*: one whole backup of one guest.

use holdfast_protocol::id::{KeyFingerprint, MountPath, StorageName};
use holdfast_protocol::protection::Tier;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::Effect;
use crate::model::records::BackupWhy;

/// A backup to be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    pub target: Target,
    /// Where it is stored.
    pub storage: StorageName,
    /// Why it is taken.
    pub why: BackupWhy,
    /// The point of a schedule that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DuePoint>,
    /// The key it must be encrypted with; without it, it counts as none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyFingerprint>,
    /// The mounts of volumes whose data is for another target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves_out: Vec<MountPath>,
}

/// A point of the schedule of one of a guest's tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuePoint {
    /// Of which tier.
    pub tier: Tier,
    pub point: Timestamp,
    /// Whether it is begun in time.
    pub begun: Begun,
    /// When, by the clock that schedules go by.
    pub at: Timestamp,
}

/// Whether what is due is begun in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begun {
    /// Within its window.
    InTime,
    Late,
}

impl Spec for Backup {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Backup(self) }
    }

    fn subject(&self) -> Subject {
        if self.key.is_some() { Subject::OffSite } else { Subject::Guest }
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::TakeBackup]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Backup]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
