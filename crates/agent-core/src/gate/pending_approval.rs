//! A held change, with the job draft that would allow it.
//!
//! The draft names verb, target and arguments. Who signs adds the host, the job's id, its times and its nonce; those are
//! not the agent's to choose. Some requests no job can grant yet: then the reason says who must do what.

use holdfast_protocol::id::{CustomerId, GuestName, GuestUid, Vmid};
use holdfast_protocol::job::{Act, Draft, Fingerprint, Target};
use holdfast_protocol::report::WaitingForSignature;

/// What would let a request pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A signature for exactly this.
    Sign(Draft),
    /// No job of today; a person does this instead.
    ByHand(&'static str),
}

/// One held request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingApproval {
    /// The guest that it is about.
    pub guest: GuestUid,
    /// What would happen, in words.
    pub effect: String,
    /// Why it needs a signature.
    pub reason: &'static str,
    /// What would let it pass.
    pub remedy: Remedy,
}

impl PendingApproval {
    /// As it is reported.
    #[must_use]
    pub fn report(&self) -> WaitingForSignature {
        let (payload, reason) = match &self.remedy {
            Remedy::Sign(draft) => (text(draft), self.reason.to_owned()),
            Remedy::ByHand(what) => (String::new(), format!("{}; {what}", self.reason)),
        };
        WaitingForSignature {
            guest: Some(self.guest),
            effect: self.effect.clone(),
            reason,
            payload,
            last_backup: None,
            last_proof: None,
        }
    }
}

/// JSON can represent every value of these types. If it could not, no operator could sign the empty text.
pub(super) fn text(draft: &Draft) -> String {
    draft.to_json().unwrap_or_default()
}

/// An act upon a guest as it is seen now.
#[must_use]
pub fn upon(
    act: Act,
    (uid, vmid): (GuestUid, Vmid),
    (name, customer): (GuestName, Option<CustomerId>),
    volumes: Vec<String>,
) -> Draft {
    let fingerprint = Fingerprint { name, customer, volumes: volumes.into_iter().collect() };
    Draft { target: Target::Guest { uid, vmid: Some(vmid), fingerprint }, act }
}
