//! *discard_copy*: the signed end of a copy next to its guest.
//!
//! A copy is what a restore made next to a guest, or what a guest was before a swap or a newer image. It is destroyed with its
//! own volumes, exactly as the operator saw it. It must be stopped: nothing here stops a container. Its guest is not touched.

use holdfast_protocol::id::OperationId;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::mark::Mark;
use crate::model::warrant::{SignedState, Warrant, WrongWarrant};

/// A copy to be destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscardCopy {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
    copy: SignedState,
    /// The operation that put it there, by our records.
    made_by: OperationId,
}

impl DiscardCopy {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(warrant: Warrant, made_by: OperationId) -> Result<Self, WrongWarrant> {
        let copy = warrant.discards()?.clone();
        Ok(Self { warrant, copy, made_by })
    }

    /// What was signed.
    #[must_use]
    pub const fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// The copy, as the operator saw it; its uid is its guest's.
    #[must_use]
    pub const fn copy(&self) -> &SignedState {
        &self.copy
    }

    #[must_use]
    pub const fn made_by(&self) -> OperationId {
        self.made_by
    }

    /// What it is known by, and no guest is.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        Mark::Copy { of: self.copy.uid, by: self.made_by }
    }
}

impl Spec for DiscardCopy {
    fn facts(&self) -> Facts<'_> {
        let copy = &self.copy;
        Facts {
            guest: Guest { uid: copy.uid, name: &copy.name, vmid: Some(copy.vmid) },
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // A signature for one copy is no bulk change.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![
            Step::VerifyTarget,
            Step::ConfirmStopped,
            Step::LiftProtection,
            Step::DestroyGuest,
            Step::ConfirmGone,
        ]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::DiscardCopy]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::{JobId, Vmid};

    use super::*;
    use crate::model::records::VolumeId;
    use crate::model::warrant::Allows;

    fn state(vmid: u32, name: &str) -> SignedState {
        SignedState {
            uid: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            vmid: Vmid::try_from(vmid).unwrap(),
            name: name.parse().unwrap(),
            volumes: [VolumeId::new(format!("tank:{vmid}/vm-{vmid}-disk-0.raw"))].into(),
        }
    }

    fn discard(allows: Allows) -> Result<DiscardCopy, WrongWarrant> {
        let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::nil()), allows, state(301, "web-1"));
        DiscardCopy::new(warrant, OperationId::new(uuid::Uuid::from_u128(7)))
    }

    #[test]
    fn only_the_signed_copy_is_its_subject_and_its_guest_is_in_no_part_of_it() {
        assert!(discard(Allows::DestroyGuest).is_err());
        let copy = Box::new(state(300, "web-1-former"));
        let discard = discard(Allows::DiscardCopy { copy }).unwrap();
        assert_eq!(discard.facts().guest.vmid.map(Vmid::number), Some(300));
        assert_eq!(discard.mark(), Mark::Copy { of: discard.copy().uid, by: discard.made_by() });
        let text = serde_json::to_string(&discard).unwrap();
        assert_eq!(serde_json::from_str::<DiscardCopy>(&text).unwrap(), discard);
    }
}
