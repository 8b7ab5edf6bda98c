//! *destroy*: a signed removal of a guest with its volumes.
//!
//! Until the destroy itself everything can be taken back; after it nothing can. What the operator saw is compared before
//! anything is done, and again right before each effect.

use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Guest, Holds, Spec, Subject, Takes};
use super::step::Step;
use crate::gate::Effect;
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
}

impl Spec for Destroy {
    fn facts(&self) -> Facts<'_> {
        let target = self.warrant.target();
        Facts {
            guest: Guest { uid: target.uid, name: &target.name, vmid: Some(target.vmid) },
            holds: Holds::Guest,
            takes: Takes::Nothing,
            // A signature for one guest is no bulk change.
        }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![
            Step::VerifyTarget,
            Step::ShutDown,
            Step::ConfirmStopped,
            Step::LiftProtection,
            Step::DestroyGuest,
            Step::ConfirmGone,
        ]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::StopOrRestart, Effect::DestroyGuest]
    }

    fn applied(&self) -> Option<AppliedBy> {
        None
    }
}
