//! The notice to a customer about a read of their key.
//!
//! Signed as every webhook of the hub: `x-holdfast-signature: sha256=<hex>` of HMAC-SHA256 over the body. It may arrive
//! twice, with the same number in its header.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeNumber, EscrowNumber};
use crate::id::{CustomerId, HostId, HostName, KeyFingerprint};

/// The version of a notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NoticeSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.escrow-notice/v1")]
    V1,
}

/// Who read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reader {
    /// The host itself, by its certificate.
    Agent,
    /// A new machine that takes the place of a lost one, by a restore invite.
    Restore,
    /// An operator.
    Operator,
}

/// A wrapped key left the hub. It opens with the code alone, which only the customer has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowNotice {
    /// Which form this is.
    pub schema: NoticeSchema,
    /// When it was read.
    pub at: Timestamp,
    /// Whose key it is.
    pub customer: CustomerId,
    /// Of which host.
    pub host: HostId,
    /// As people call it.
    pub host_name: HostName,
    /// Which version.
    pub number: EscrowNumber,
    /// Which code opens it.
    pub code: CodeNumber,
    /// Which key is in it.
    pub fingerprint: KeyFingerprint,
    /// Who read it.
    pub reader: Reader,
    /// In words.
    pub message: String,
}
