//! *adopt_guest*: an unknown guest of our pool becomes ours.
//!
//! Our records are written first, as of a guest that is being made; the guest itself gets its mark and its protection, and
//! nothing else of it is touched. Until the protection all of it can be taken back: the marks that were found are kept in
//! the journal and put back. What no signature allows is looked for before anything is done, and again afterwards.

use holdfast_protocol::id::{BridgeName, CustomerId, GoldenVersion};
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
use crate::model::warrant::{SignedState, Warrant, WrongWarrant};

/// A guest to be taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adopt {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
    customer: CustomerId,
    golden: GoldenVersion,
    /// The one bridge that guests of ours may be on.
    pub bridge: BridgeName,
}

impl Adopt {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(warrant: Warrant, bridge: BridgeName) -> Result<Self, WrongWarrant> {
        let (customer, golden) = warrant.adopts()?;
        let (customer, golden) = (customer.clone(), golden.clone());
        Ok(Self { warrant, customer, golden, bridge })
    }

    /// What was signed.
    #[must_use]
    pub const fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// The guest, as the operator saw it.
    #[must_use]
    pub const fn guest(&self) -> &SignedState {
        self.warrant.target()
    }

    /// Who it belongs to.
    #[must_use]
    pub const fn customer(&self) -> &CustomerId {
        &self.customer
    }

    /// The golden image that it counts as made from.
    #[must_use]
    pub const fn golden(&self) -> &GoldenVersion {
        &self.golden
    }
}

impl Spec for Adopt {
    fn facts(&self) -> Facts<'_> {
        let guest = self.guest();
        Facts {
            guest: Guest { uid: guest.uid, name: &guest.name, vmid: Some(guest.vmid) },
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // A signature for one guest is no bulk change.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::VerifyUnmanaged, Step::TagGuest, Step::ConfirmTagged, Step::ProtectAgain]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Adopt, Effect::Protect]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
