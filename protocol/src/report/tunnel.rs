//! Tunnels of a host, as its agent sees them.
//!
//! Each fact has its time. A fact that was not found is absent, and nothing is concluded from it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{TunnelName, UnitName};
use crate::text::texts;

/// As many tunnels as an agent looks after.
pub const TUNNELS_MAX: usize = 8;

texts! {
    /// A sentence about a tunnel.
    TunnelText, 1..=200, "a sentence is 1 to 200 characters without control characters",
        |text| !text.chars().any(char::is_control);
}

impl TunnelText {
    /// Of a text of others: what does not fit is left out.
    #[must_use]
    pub fn fitted(text: &str) -> Self {
        let fit: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        Self(if fit.is_empty() { "?".to_owned() } else { fit })
    }
}

/// One tunnel of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelReport {
    /// Its name in root's settings.
    pub name: TunnelName,
    /// Its service.
    pub unit: UnitName,
    /// How it is.
    pub state: TunnelState,
    /// Since when it is so, as this agent saw it.
    pub since: Timestamp,
    /// Why.
    pub why: TunnelText,
    /// When all of this was last found to be so; written anew every ten minutes where nothing changes.
    pub checked_at: Timestamp,
    /// The state of the service, where systemd answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<UnitReport>,
    /// Its connections, where root's settings name a port for them and it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionReport>,
    /// What came of the probe through it, where root's settings name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeReport>,
    /// Restarts that the agent asked root's service for, where it asked within a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<RestartReport>,
    /// Its token, where it arrives by a signed job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenReport>,
}

/// How a tunnel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TunnelState {
    /// A proof says that it carries traffic.
    Up,
    /// It carries traffic in part, or its proofs contradict each other.
    Degraded,
    /// It carries nothing.
    Down,
    /// Its service is stopped, and not by a failure.
    Stopped,
    /// Its service runs, and nothing proves that it carries traffic.
    Unproved,
    /// Nothing could be found out.
    Unknown,
}

impl TunnelState {
    /// For people and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Degraded => "degraded",
            Self::Down => "down",
            Self::Stopped => "stopped",
            Self::Unproved => "unproved",
            Self::Unknown => "unknown",
        }
    }
}

/// The service of a tunnel, as systemd has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitReport {
    /// Whether it runs.
    pub activity: UnitActivity,
    /// Since when, where systemd says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// How often systemd started it again by itself.
    pub restarted: u32,
}

/// Whether a service runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnitActivity {
    /// It runs.
    Active,
    /// It starts, stops, or waits to be started again.
    Changing,
    /// It failed.
    Failed,
    /// It is stopped.
    Inactive,
    /// There is no such service.
    NotFound,
}

impl UnitActivity {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Changing => "starting or stopping",
            Self::Failed => "failed",
            Self::Inactive => "inactive",
            Self::NotFound => "not installed",
        }
    }
}

/// The connections of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionReport {
    /// So many are ready.
    pub ready: u32,
    /// So many should be.
    pub wanted: u32,
    /// Since when so many are ready.
    pub since: Timestamp,
}

/// A probe through a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeReport {
    /// What came of it.
    pub result: ProbeResult,
    /// Since when.
    pub since: Timestamp,
    /// What the far end said, or why it did not.
    pub said: TunnelText,
}

/// What came of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeResult {
    /// The far end answered.
    Answered,
    /// It did not, or with an error of its own or of one in between.
    Failed,
}

/// Restarts of a tunnel's service, asked of root's service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartReport {
    /// When the last one was asked for.
    pub asked_at: Timestamp,
    /// How many within a day.
    pub asked_today: u32,
    /// What came of the last one.
    pub outcome: RestartOutcome,
}

/// What came of a restart that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartOutcome {
    /// Root's service did not say yet.
    Pending,
    /// The service was started anew.
    Restarted,
    /// Systemd could not start it.
    Failed,
    /// It was left, since it is stopped.
    Left,
    /// Root's list has no such tunnel.
    Unlisted,
    /// Root's service said nothing for minutes.
    Silent,
}

impl RestartOutcome {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Restarted => "restarted",
            Self::Failed => "systemd could not start it",
            Self::Left => "left, since it is stopped",
            Self::Unlisted => "refused: not in /etc/holdfast/tunnels",
            Self::Silent => "root's service did not answer",
        }
    }
}

/// The token of a tunnel that arrives by a signed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum TokenReport {
    /// There is none yet.
    Missing {},
    /// It is in its file.
    Present {
        /// When it was written.
        written_at: Timestamp,
    },
}
