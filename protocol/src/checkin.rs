//! The exchange between agent and hub: `POST /v1/agent/checkin?wait=25s`.
//!
//! The agent sends the changed sections of the report and the generation it holds; the hub answers with a newer
//! document when there is one. The hub holds the request open until something is new, so a change reaches the host at
//! once and a lost connection costs one poll. The client certificate alone identifies the caller; there is no host id
//! in the body.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::generation::Generation;
use crate::host_maintenance::HostMaintenanceOrder;
use crate::job::QueuedJob;
use crate::pin::Pin;
use crate::report::{ReportSchema, Sections};
use crate::size::PollSeconds;
use crate::usage::UsageSample;
use crate::work_order::{DiagnosticText, QueuedOrder};

/// How long the hub may hold a check-in open, in seconds, at most.
pub const WAIT_SECONDS_MAX: u32 = 55;

/// What the agent sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckinRequest {
    /// The version of the report.
    pub schema: ReportSchema,
    /// Counts this agent run's check-ins, so that a late copy of an old one is known.
    pub sequence: u64,
    /// The generation the agent holds; 0 is none.
    pub held: Generation,
    /// Whether the sections are all there are, or those that changed.
    pub coverage: Coverage,
    /// The sections.
    pub sections: Sections,
    /// Samples of use since the last answer, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<UsageSample>,
    /// The text of a reading that was ordered, and that the hub has not acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<DiagnosticText>,
}

/// Which sections a report carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All that the agent knows. What it has not checked yet stays as it was last reported.
    Full,
    /// Those that changed since the acknowledged report.
    Changed,
    /// The last report before the agent stops on purpose.
    Farewell,
}

/// What the hub answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckinAnswer {
    /// The report that is now kept.
    pub acknowledged: u64,
    /// What the next report should carry.
    pub need: Need,
    /// When to ask again if nothing is held open.
    pub poll_interval_s: PollSeconds,
    /// A newer desired document, as text, exactly as the operator put it. As text, a document that this agent does not
    /// understand is refused by itself, and the check-in continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// Signed jobs that the host has not reported on yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<QueuedJob>,
    /// Work orders that the host has not reported on yet, and those that it is to take back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<QueuedOrder>,
    /// The highest number of an audit line that the hub ever heard from this host. A host that is behind it was set back
    /// to an older copy of its own records.
    #[serde(default)]
    pub audit_seen: u64,
    /// That an operator announced maintenance of the host, while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<HostMaintenanceOrder>,
    /// While the hub's CA changes: the new one, under which the host should have its next certificate. The renewal
    /// brings the CA itself and its proof; this only says that it is time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_ca: Option<Pin>,
}

/// Jobs in one answer, at most. The rest come with the next.
pub const JOBS_PER_ANSWER: u32 = 4;

/// What the next report should carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// What changed.
    Changed,
    /// Everything: the hub has nothing to lay changes over.
    Full,
}
