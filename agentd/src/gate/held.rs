//! A wish that is held, with the text an operator would sign for it.
//!
//! The payload names verb, target and arguments. Who signs adds the job's id, times and nonce; those are not the
//! agent's to choose.

use holdfast_protocol::id::{GuestName, GuestUid, Vmid};
use holdfast_protocol::report::WaitingForSignature;
use serde::Serialize;

/// What a signature would be for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Lets a golden image or controller see customers' data.
    ApproveRelease,
    /// Takes over a guest that our records do not know.
    AdoptGuest,
    /// Destroys a guest.
    DestroyGuest,
    /// Makes a disk smaller, which means making it anew.
    Restore,
    /// Lets a bulk change through.
    ReleaseBrake,
}

/// What it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Always `guest` so far.
    pub kind: TargetKind,
    /// Our identity for it.
    pub uid: GuestUid,
    /// Its number, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// What the operator should see it as: name and volumes. If they change, the signature is void.
    pub fingerprint: Fingerprint,
}

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A guest.
    Guest,
}

/// By what a target is recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fingerprint {
    /// Its name.
    pub name: GuestName,
    /// Its volumes.
    pub volumes: Vec<String>,
}

#[derive(Serialize)]
struct Payload<'a> {
    schema: &'static str,
    verb: &'a Verb,
    target: &'a Target,
    args: &'a std::collections::BTreeMap<&'static str, String>,
}

/// One held wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What would happen, in words.
    pub effect: String,
    /// Why it needs a signature.
    pub reason: &'static str,
    /// What would be signed.
    pub verb: Verb,
    /// For what.
    pub target: Target,
    /// Arguments of the verb.
    pub args: std::collections::BTreeMap<&'static str, String>,
}

impl Held {
    /// As it is reported.
    #[must_use]
    pub fn report(&self) -> WaitingForSignature {
        let payload =
            Payload { schema: "holdfast.job/v1", verb: &self.verb, target: &self.target, args: &self.args };
        // These types hold nothing that JSON cannot say; were it otherwise, an empty payload can be signed by nobody.
        let payload = serde_json::to_string(&payload).unwrap_or_default();
        WaitingForSignature {
            guest: Some(self.target.uid),
            effect: self.effect.clone(),
            reason: self.reason.to_owned(),
            payload,
        }
    }
}
