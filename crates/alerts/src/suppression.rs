//! Reasons why something is not sent.

use std::fmt;

use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::id::OperatorName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::group_key::GroupKey;
use crate::name::RuleName;
use crate::silence::SilenceId;

/// Why something is not sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why", deny_unknown_fields)]
pub enum Suppression {
    /// An operator acknowledged it.
    Acknowledged {
        /// Who.
        by: OperatorName,
        /// Until when, where that has an end.
        until: Option<Timestamp>,
    },
    /// It comes and goes, and is held open.
    Flapping {},
    /// It waits for the next notice of a group that others are in, too.
    Grouped {
        /// Which.
        into: Box<GroupKey>,
    },
    /// Another condition makes it superfluous.
    Inhibited {
        /// Which.
        by: ConditionCode,
    },
    /// The host is worked on.
    Maintenance {
        /// Until when.
        until: Timestamp,
    },
    /// The receiver never heard that it fired.
    NeverSent {},
    /// The receiver is a customer's, and it is not about this customer alone.
    OtherCustomer {},
    /// It is about this receiver itself: others hear of it.
    OwnFailure {},
    /// It is held until quiet hours are over.
    QuietHours {
        /// Which.
        rule: RuleName,
        /// Until when.
        until: Timestamp,
    },
    /// The receiver is not in the settings any more.
    ReceiverRemoved {},
    /// The receiver does not want to hear when an incident is over.
    ResolvedUnwanted {},
    /// An operator silenced it.
    Silenced {
        /// By which silence.
        id: SilenceId,
        /// Until when.
        until: Timestamp,
    },
    /// No route takes it.
    Unrouted {},
}

impl Suppression {
    /// When it ends by itself, where that is known.
    #[must_use]
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Acknowledged { until, .. } => *until,
            Self::Maintenance { until } | Self::QuietHours { until, .. } | Self::Silenced { until, .. } => {
                Some(*until)
            }
            Self::Flapping {}
            | Self::Grouped { .. }
            | Self::Inhibited { .. }
            | Self::NeverSent {}
            | Self::OtherCustomer {}
            | Self::OwnFailure {}
            | Self::ReceiverRemoved {}
            | Self::ResolvedUnwanted {}
            | Self::Unrouted {} => None,
        }
    }
}

impl fmt::Display for Suppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acknowledged { by, until: None } => write!(f, "acknowledged by {by}"),
            Self::Acknowledged { by, until: Some(until) } => {
                write!(f, "acknowledged by {by} until {until:.0}")
            }
            Self::Flapping {} => f.write_str("it comes and goes, and is held open"),
            Self::Grouped { into } => write!(f, "grouped into {into}"),
            Self::Inhibited { by } => write!(f, "inhibited by {by}"),
            Self::Maintenance { until } => write!(f, "the host is in maintenance until {until:.0}"),
            Self::NeverSent {} => f.write_str("the receiver never heard that it fired"),
            Self::OtherCustomer {} => {
                f.write_str("the receiver is of a customer, and this is not about it alone")
            }
            Self::OwnFailure {} => f.write_str("it is about this receiver itself"),
            Self::QuietHours { rule, until } => write!(f, "held by quiet hours {rule} until {until:.0}"),
            Self::ReceiverRemoved {} => f.write_str("the receiver is not in the settings any more"),
            Self::ResolvedUnwanted {} => f.write_str("the receiver has send_resolved = false"),
            Self::Silenced { id, until } => write!(f, "silenced by {id} until {until:.0}"),
            Self::Unrouted {} => f.write_str("no route takes it"),
        }
    }
}
