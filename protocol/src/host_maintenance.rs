//! Maintenance of a whole host, as hub and agent exchange it.
//!
//! An operator announces it at the hub with its end. The agent then opens no operation of its own, lets what is under way end,
//! and says afterwards what did not come back. Deliberately absent: maintenance windows of guests (`maintenance`).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts;

/// As many names as a report has of what did not come back.
pub const NOT_BACK_MAX: usize = 64;

texts! {
    /// A guest or storage target, by its kind and name.
    NotBackText, 1..=96, "a guest or target is 1 to 96 characters without control characters",
        |text| !text.chars().any(char::is_control);
}

/// That the host is in maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostMaintenanceOrder {
    /// Until when, unless it is ended before. The agent has a bound of its own.
    pub until: Timestamp,
}

/// The maintenance of a host, as its agent carries it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostMaintenanceReport {
    /// How far it is.
    pub phase: HostMaintenancePhase,
    /// Since when.
    pub since: Timestamp,
    /// Until when the agent opens nothing; when it ended, once it did.
    pub until: Timestamp,
    /// Operations under way.
    pub open_operations: u32,
    /// What ran or was attached when it began, and does not or is not now; at most [`NOT_BACK_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_back: Vec<NotBackText>,
}

/// How far a maintenance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostMaintenancePhase {
    /// Nothing new is opened, and operations are still under way.
    Draining,
    /// No operation is under way: the host can be worked on.
    Drained,
    /// It is over, and something did not come back.
    Incomplete,
}
