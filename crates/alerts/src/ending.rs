//! Reasons why an incident is over while its condition may still hold.

use std::fmt;

use holdfast_protocol::id::OperatorName;
use serde::{Deserialize, Serialize};

/// Why an incident was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum Ending {
    /// Its host was revoked.
    HostRevoked {
        /// By which operator.
        by: OperatorName,
    },
    /// Its guest was deleted by a signed job.
    GuestDeleted {
        /// Which operator gave the job to the hub; none, where the host got it in another way.
        by: Option<OperatorName>,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostRevoked { by } => write!(f, "the host was revoked by {by}"),
            Self::GuestDeleted { by: Some(by) } => write!(f, "the guest was deleted by a job of {by}"),
            Self::GuestDeleted { by: None } => f.write_str("the guest was deleted by a signed job"),
        }
    }
}
