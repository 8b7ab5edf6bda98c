//! *destroy*: a signed removal of a guest with its volumes.
//!
//! Until the destroy itself everything can be taken back; after it nothing can. What the operator saw is compared before
//! anything is done, and again right before each effect.

use holdfast_protocol::id::{GuestName, GuestUid, Vmid};
use serde::{Deserialize, Serialize};

use super::step::Step;
use crate::model::warrant::{Warrant, WrongWarrant};

/// A guest to be destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destroy {
    #[serde(with = "crate::model::warrant::journal")]
    warrant: Warrant,
}

impl Destroy {
    /// By a warrant, and by nothing else.
    ///
    /// # Errors
    /// When the warrant was signed for something else.
    pub fn new(warrant: Warrant) -> Result<Self, WrongWarrant> {
        warrant.destroys()?;
        Ok(Self { warrant })
    }

    /// What was signed.
    #[must_use]
    pub const fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    pub(super) fn about(&self) -> (GuestUid, &GuestName, Option<Vmid>) {
        let target = self.warrant.target();
        (target.uid, &target.name, Some(target.vmid))
    }

    /// Its steps, in order.
    pub(super) fn steps() -> Vec<Step> {
        vec![
            Step::VerifyTarget,
            Step::ShutDown,
            Step::ConfirmStopped,
            Step::LiftProtection,
            Step::DestroyGuest,
            Step::ConfirmGone,
        ]
    }
}
