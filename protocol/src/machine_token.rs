//! Tokens of machines: named, scoped, ending, and rotated with an overlap.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/tokens` | | [`crate::operator::Page`] of [`TokenView`] |
//! | `POST /v1/tokens` | [`TokenRequest`] | [`TokenMade`] |
//! | `POST /v1/tokens/{name}/rotate` | [`TokenRotation`] | [`TokenMade`] |
//! | `POST /v1/tokens/{name}/revoke` | | [`TokenView`] |
//!
//! A token's role and scope are at most its maker's. Names of tokens and of people are one set, so an author in the log
//! is one of them alone.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::AccessScope;
use crate::id::OperatorName;
use crate::operator::Role;
use crate::secret::Secret;
use crate::size::{OverlapHours, TokenDays};

/// Requests a token for a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// What the machine is called in the log.
    pub name: OperatorName,
    /// What it may do.
    pub role: Role,
    /// What it may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// How long it lives.
    pub days: TokenDays,
}

/// Requests the next secret of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRotation {
    /// How long the new secret lives.
    pub days: TokenDays,
    /// How long the secrets before it go on.
    pub overlap_hours: OverlapHours,
}

/// A secret of a token. It is shown this once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenMade {
    /// The token.
    pub name: OperatorName,
    /// What it may do.
    pub role: Role,
    /// What it may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// The secret.
    pub token: Secret,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When the secrets before it end, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_until: Option<Timestamp>,
}

/// A token, as the hub knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenView {
    /// Its name.
    pub name: OperatorName,
    /// Who made it. It ends with them.
    pub maker: OperatorName,
    /// What it may do.
    pub role: Role,
    /// What it may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the last of its secrets ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute; none where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}
