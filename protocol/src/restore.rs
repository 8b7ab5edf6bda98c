//! The replacement of a lost host: order, invite and records.
//!
//! | call | by | request | answer |
//! | --- | --- | --- | --- |
//! | `POST /v1/hosts/{id or name}/restore` | an operator | [`RestoreRequest`] | `InviteCreated` |
//! | `POST /v1/hosts/{id or name}/restore/withdraw` | an operator | [`WithdrawRequest`] | [`RestoreOrder`] |
//! | `POST /v1/restore` | the new machine, with the invite | [`RestoreRedeem`] | [`Restored`] |
//! | `POST /v1/agent/replacement` | the old machine, by its certificate | | [`Replacement`] |
//!
//! The order is a signed job (`restore_host`) for the life of the host's state that is over. Without it, the new
//! machine does not become that host, and the old one does not become inactive. The hub hands all of this over and can
//! make no order. The invite line names the order by its hash, so the hub cannot put another one in its place either.
//! The order names the new machine's key, so no other machine can follow it. Another signed job (`withdraw_restore`)
//! withdraws it, and names it by its hash.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::enrol::Enrolled;
use crate::envelope::ErrorBody;
use crate::escrow::EscrowFound;
use crate::id::OperatorName;
use crate::job::act::Sha256Text;
use crate::report::Sections;
use crate::secret::Secret;

/// Requests an invite that lets a new machine take a host's place.
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
    /// The new machine's CSR, PEM. Only its public key and its own signature are used.
    pub csr_pem: String,
}

/// The place of a lost host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    /// The identity: the host's id and name, with a certificate for the new machine's key.
    pub enrolled: Enrolled,
    /// The signed job, as the operators left it.
    pub order: String,
    /// What the hub hands over from the lost machine.
    pub handover: HandOver,
}

/// What is left of a lost machine, as far as the hub knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// What it should have been: the newest document, as text, exactly as the operator put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What it last said of itself: its guests, its storage targets.
    pub sections: Sections,
    /// Its wrapped backup keys: of each key the newest version. The customer was notified that they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escrows: Vec<EscrowFound>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<ErrorBody>,
}

/// How another machine took this one's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The signed job, as the operators left it.
    pub order: String,
    /// The signed job that takes the order back, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawal: Option<String>,
}

/// Takes an order back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithdrawRequest {
    /// The signed job, as text.
    pub withdrawal: String,
}

/// An order to restore a host, as the hub keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreOrder {
    /// What the signed bytes hash to.
    pub order: Sha256Text,
    /// Which operator left it.
    pub by: OperatorName,
    /// When.
    pub at: Timestamp,
    /// When its invite ends.
    pub expires_at: Timestamp,
    /// What became of it.
    pub state: RestoreState,
}

/// What became of an order to restore a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreState {
    /// A machine may still follow it.
    Unused,
    /// No machine followed it while its invite was good; none can now.
    Ended,
    /// A machine followed it.
    Used,
    /// Operators took it back.
    Withdrawn,
}

impl RestoreState {
    /// For people and for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Ended => "ended",
            Self::Used => "used",
            Self::Withdrawn => "withdrawn",
        }
    }
}
