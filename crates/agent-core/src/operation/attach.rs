//! *attach_volume*: a desired volume for an existing guest.
//!
//! Proxmox refuses new volumes while protection is on, so it is taken off for that moment, in a step of its own, and
//! put back whatever happens: forwards by the next step, backwards by the undo.

use holdfast_protocol::desired::{DesiredVolume, VolumeKind};
use holdfast_protocol::id::StorageName;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::Effect;

/// A volume to be made and mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachVolume {
    pub target: Target,
    /// The volume, as the document names it.
    pub volume: DesiredVolume,
    /// Which mount it becomes.
    pub slot: u8,
    /// Where it is made.
    pub storage: StorageName,
}

impl AttachVolume {
    /// Where a volume of this kind is made: bulk ones where there is room for them, if this host has such a storage.
    #[must_use]
    pub fn storage<'a>(
        kind: &VolumeKind,
        hot: &'a StorageName,
        bulk: Option<&'a StorageName>,
    ) -> Option<&'a StorageName> {
        match kind {
            VolumeKind::Hot => Some(hot),
            VolumeKind::Bulk(_) => bulk,
        }
    }
}

impl Spec for AttachVolume {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::LiftProtection, Step::AddVolume, Step::ProtectAgain, Step::ReadBack]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::LiftToAttach, Effect::AttachNewVolume, Effect::Protect]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
