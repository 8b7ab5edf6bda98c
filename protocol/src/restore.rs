//! A box that takes the place of a lost one: the operators' order, the invite, and what the hub hands over.
//!
//! | call | by | asks | answer |
//! | --- | --- | --- | --- |
//! | `POST /v1/hosts/{id or name}/restore` | an operator | [`RestoreRequest`] | `InviteCreated` |
//! | `POST /v1/restore` | the new box, with the invite | [`RestoreRedeem`] | [`Restored`] |
//! | `POST /v1/agent/replacement` | the old box, by its certificate | | [`Replacement`] |
//!
//! The order is a signed job (`restore_host`) for the life of the host's state that is over. The new box does not become
//! that host without it, and the old one does not stand still without it: the hub, which hands all of this over, can make
//! none. The invite line names the order by its hash, so the hub cannot put another one in its place either.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::enrol::Enrolled;
use crate::envelope::Problem;
use crate::escrow::EscrowFound;
use crate::report::Sections;
use crate::secret::Secret;

/// Asks for an invite that lets a new box take a host's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The signed job, as text.
    pub order: String,
}

/// Redeems such an invite.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreRedeem {
    /// The invite's secret.
    pub secret: Secret,
    /// The new box's CSR, PEM. Only its public key and its own signature are looked at.
    pub csr_pem: String,
}

/// The place of a lost host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    /// The identity: the host's id and name, with a certificate for the new box's key.
    pub enrolled: Enrolled,
    /// The signed job, as the operators left it.
    pub order: String,
    /// What the lost box leaves.
    pub handover: HandOver,
}

/// What a lost box leaves, as far as the hub knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// What it should have been: the newest document, as text, exactly as the operator put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What it last said of itself: its guests, its storage targets.
    pub sections: Sections,
    /// Its wrapped backup keys: of each key the newest version. The customer was told that they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escrows: Vec<EscrowFound>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Problem>,
}

/// By what another box took this one's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The signed job, as the operators left it.
    pub order: String,
}
