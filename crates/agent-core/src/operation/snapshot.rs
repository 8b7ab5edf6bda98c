//! *snapshot* and *expire_snapshot*: a snapshot and its removal.

use holdfast_protocol::id::{OperationId, SnapshotName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::DuePoint;
use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::{Effect, Expiry};
use crate::model::records::TakenBy;

/// A snapshot to be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub target: Target,
    /// What it is called.
    pub name: SnapshotName,
    /// Its requester.
    pub taken_by: TakenBy,
    /// When it may be removed; none for what a schedule took, which the retention of its tier removes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The point of a schedule that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DuePoint>,
}

/// A snapshot of ours to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpireSnapshot {
    pub target: Target,
    /// What it is called.
    pub name: SnapshotName,
    /// The operation that made it. Another one of that name is left alone.
    pub made_by: OperationId,
    /// Why it is removed.
    pub why: ExpiryWhy,
}

/// Why a snapshot is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryWhy {
    /// Its time is over.
    PastItsTime,
    /// The guest that had asked for it does not need it any more.
    Asked,
    /// The schedule took it, and the retention in force keeps it no longer.
    OutsidePolicy,
}

impl Spec for Snapshot {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Snapshot(self.due.as_ref()) }
    }

    fn subject(&self) -> Subject {
        Subject::Snapshot(self.name.clone())
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::CheckRoom, Step::TakeSnapshot]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Snapshot]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}

impl Spec for ExpireSnapshot {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Snapshot(self.name.clone())
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::RemoveSnapshot]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::ExpireSnapshot(match self.why {
            ExpiryWhy::PastItsTime => Expiry::OwnPastItsTime,
            ExpiryWhy::Asked => Expiry::OwnAsked(self.target.uid),
            // This was judged by what is in force, and is judged again before the removal.
            ExpiryWhy::OutsidePolicy => Expiry::OwnOutsidePolicy,
        })]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
