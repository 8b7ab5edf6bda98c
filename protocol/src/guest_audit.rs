//! Audit records about guests, for hub and operators.
//!
//! A record travels whole and with the hash of the line before it, as the guest itself reads it (`local::audit`). Each reader
//! can compute its hash, and compare it with the ends of the audit that the hub keeps. Only records about one guest travel; those about
//! the host do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::local::audit::AuditRecord;

/// Records of one request, at most.
pub const RECORDS_PER_PUT: usize = 100;

/// A record with a longer detail stays on its host.
pub const DETAIL_BYTES_MAX: usize = 4 * 1024;

/// A request is at most this long: each byte of a detail may be escaped.
pub const PUT_BYTES_MAX: usize = 1024 * 1024;

/// `PUT /v1/agent/guest-audit`: records about guests, and how far they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestAuditPut {
    /// Oldest first.
    #[schemars(length(max = 100))]
    pub records: Vec<AuditRecord>,
    /// With these records the hub has what the host sends of all lines up to this number. Left out, the host only asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
}

/// How far the hub is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestAuditKept {
    /// The number of the last line that was sent, 0 without any.
    pub through: u64,
}

/// `GET /v1/hosts/{host}/guests/{guest}/audit`: what the hub keeps of one guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestAuditView {
    /// Of the present epoch of its host, oldest first. A host that was set back to older records may have sent two of one number.
    pub records: Vec<AuditRecord>,
    /// Of earlier epochs: each has numbers of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<AuditRecord>,
}
