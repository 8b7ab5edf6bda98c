//! Named, bounded readings of a host.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::WorkOrderId;

/// A text is at most 64 KiB.
pub const DIAGNOSTIC_BYTES_MAX: usize = 64 * 1024;

/// Which reading. The list is closed: there is no free command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticName {
    /// What is wrong with the host, as the agent finds it.
    Doctor,
    /// Storage targets and their states.
    Storage,
    /// Addresses, bridge and filters of guests.
    Network,
    /// Open operations and locks, with holder and time.
    Locks,
    /// The journal of the newest operations.
    Journal,
    /// What the guest agents said last.
    GuestAgent,
}

impl DiagnosticName {
    /// Every reading.
    pub const ALL: [Self; 6] =
        [Self::Doctor, Self::Storage, Self::Network, Self::Locks, Self::Journal, Self::GuestAgent];

    /// The name as written on the wire and typed by people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Doctor => "doctor",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Locks => "locks",
            Self::Journal => "journal",
            Self::GuestAgent => "guest_agent",
        }
    }
}

/// The text of one reading, on its way to the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticText {
    /// The order that it is for.
    pub order: WorkOrderId,
    /// When it was read.
    pub read_at: Timestamp,
    /// Lines for people, without secrets.
    #[schemars(length(max = 65536))]
    pub text: String,
}
