//! The due backups of a guest: `GET /v1/backups/due`.
//!
//! A backup that the guest's policy wants with stopped programs waits a while for the controller, which requests a
//! window. If the controller does not, the agent takes the backup without it and says so in its label.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::PolicyName;
use crate::protection::{Consistency, Tier};

/// What is due, and when the next backup will be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DueView {
    /// Due now, the fastest tier first.
    pub due: Vec<DueBackup>,
    /// When the next one after these will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
}

/// One backup that is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DueBackup {
    /// Of which tier.
    pub tier: Tier,
    /// By which policy of the document; none, where the document no longer names one and an older promise is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// Since when.
    pub since: Timestamp,
    /// What the policy wants it to hold.
    pub consistency: Consistency,
    /// From then on the agent takes it without the controller.
    pub waits_until: Timestamp,
}
