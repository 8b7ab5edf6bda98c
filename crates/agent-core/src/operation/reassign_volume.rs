//! *reassign_volume*: a signed move of a bulk volume between guests.
//!
//! Proxmox moves the volume by renaming it. It lets it leave a protected guest; to let it into one, protection comes off
//! there first: with it on, the worker would take the volume out of the one guest and then fail at the other.

use holdfast_protocol::id::MountPath;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::records::VolumeId;
use crate::model::warrant::{SignedState, Warrant, WrongWarrant};

/// Where the volume is mounted, on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mounts {
    /// Which mount of the guest that gives.
    pub from: u8,
    /// Which mount of the guest that takes. It must be free.
    pub to: u8,
    /// Its path in either.
    pub path: MountPath,
}

/// A volume to be handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
    volume: VolumeId,
    to: SignedState,
    mounts: Mounts,
}

impl HandOver {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(warrant: Warrant, mounts: Mounts) -> Result<Self, WrongWarrant> {
        let (volume, to) = warrant.hands_over()?;
        let (volume, to) = (volume.clone(), to.clone());
        Ok(Self { warrant, volume, to, mounts })
    }

    /// What was signed.
    #[must_use]
    pub const fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// The guest that gives, as it was signed for.
    #[must_use]
    pub const fn from(&self) -> &SignedState {
        self.warrant.target()
    }

    /// The guest that takes, as it was signed for.
    #[must_use]
    pub const fn to(&self) -> &SignedState {
        &self.to
    }

    /// The volume's name at the guest that gives.
    #[must_use]
    pub const fn volume(&self) -> &VolumeId {
        &self.volume
    }

    /// Where it is mounted.
    #[must_use]
    pub const fn mounts(&self) -> &Mounts {
        &self.mounts
    }
}

impl Spec for HandOver {
    fn facts(&self) -> Facts<'_> {
        let target = self.from();
        Facts {
            guest: Guest { uid: target.uid, name: &target.name, vmid: Some(target.vmid) },
            holds: Holds::Also(self.to().uid),
            takes: Takes::Nothing,
            // A signature is no bulk change.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![
            Step::VerifyBoth,
            Step::LiftOther,
            Step::ReassignVolumeTo,
            Step::ProtectOther,
            Step::ConfirmReassigned,
        ]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::ReassignVolume, Effect::LiftToAttach, Effect::Protect]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
