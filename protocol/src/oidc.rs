//! Links of operators with persons of a provider.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::OperatorName;

/// Who a provider's person is, to be linked with an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProviderPerson {
    /// By the subject, which the provider never gives to anybody else.
    Subject {
        /// The claim `sub` of their tokens.
        #[schemars(length(min = 1, max = 255))]
        subject: String,
    },
    /// By a claim that the hub's settings name, such as an e-mail address: at the first sign-in, whose subject is kept.
    Claim {
        /// The value of the claim.
        #[schemars(length(min = 1, max = 254))]
        value: String,
    },
}

/// Who made a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkOrigin {
    /// An admin, for an operator who was there.
    Admin,
    /// A group of the provider, which made the operator and says what they may do.
    Group,
}

/// The link of one operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderLink {
    /// The operator.
    pub operator: OperatorName,
    /// The provider.
    pub issuer: String,
    /// Who they are there.
    pub person: ProviderPerson,
    /// Who made the link.
    pub origin: LinkOrigin,
    /// Since when.
    pub linked_at: Timestamp,
}
