//! Receivers, and what became of notices to them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ReceiverName;

/// A receiver of the hub's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiverView {
    /// Its name.
    pub name: ReceiverName,
    /// How it is reached.
    pub kind: ReceiverKind,
    /// How many notices wait for it.
    pub waiting: u32,
    /// When the oldest of them was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// Why the last try of a waiting notice failed, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The last notice that it took or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<DeliveryView>,
    /// The settings that are in force, which are those of all receivers; none at a hub of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<ReceiverSettings>,
}

/// The age of the settings of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiverSettings {
    /// Since when they are in force: a start of the hub, or a reload.
    pub since: Timestamp,
    /// When `hub.toml` or the file of a receiver was written, where it is another now than the one in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
}

/// How a receiver is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiverKind {
    /// A server of Alertmanager.
    Alertmanager,
    /// A server of Gotify.
    Gotify,
    /// A room of Matrix.
    Matrix,
    /// A topic of ntfy.
    Ntfy,
    /// A channel of Slack.
    Slack,
    /// Mail.
    Smtp,
    /// A channel of Microsoft Teams.
    Teams,
    /// A chat of Telegram.
    Telegram,
    /// Any HTTPS server.
    Webhook,
}

impl ReceiverKind {
    /// As written in settings and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Gotify => "gotify",
            Self::Matrix => "matrix",
            Self::Ntfy => "ntfy",
            Self::Slack => "slack",
            Self::Smtp => "smtp",
            Self::Teams => "teams",
            Self::Telegram => "telegram",
            Self::Webhook => "webhook",
        }
    }
}

/// What became of a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryView {
    /// Counts all deliveries of the hub.
    pub number: u64,
    /// When it ended.
    pub at: Timestamp,
    /// To which receiver.
    pub receiver: ReceiverName,
    /// The notice, as the log names it.
    pub notice: String,
    /// Its title.
    pub title: String,
    /// How it ended.
    pub outcome: DeliveryOutcome,
    /// How often it was tried.
    pub tries: u32,
    /// What the receiver answered, where that is worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// How the delivery of a notice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryOutcome {
    /// The receiver has it.
    Delivered,
    /// The receiver refused it for good.
    Refused,
    /// It was tried for a day.
    GivenUp,
    /// It was over before it was sent.
    Cancelled,
    /// It went into another notice, because too many waited.
    Combined,
}

impl DeliveryOutcome {
    /// As written on the wire and in the hub's database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::GivenUp => "given_up",
            Self::Cancelled => "cancelled",
            Self::Combined => "combined",
        }
    }
}

/// Two notices that try a receiver were queued: that something fires, and that it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestQueued {
    /// Which receiver.
    pub receiver: ReceiverName,
    /// The notices, as `GET /v1/deliveries` names them.
    pub notices: Vec<String>,
}
