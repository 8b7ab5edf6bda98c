//! Channels: their settings, and the contract of each kind.
//!
//! In: a message, the id of its outbox row, the time. Out: a request as data, and a verdict on its answer. All of it is
//! pure; [`crate::send`] performs. Secrets are wiped when dropped and hidden in `Debug`; they are serialised, so the
//! caller stores a channel sealed.

#[cfg(feature = "gotify")]
mod gotify;
#[cfg(feature = "matrix")]
mod matrix;
#[cfg(feature = "ntfy")]
mod ntfy;
#[cfg(feature = "slack")]
mod slack;
#[cfg(feature = "smtp")]
pub mod smtp;
#[cfg(feature = "teams")]
mod teams;
#[cfg(feature = "telegram")]
mod telegram;
#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "gotify")]
pub use gotify::Gotify;
#[cfg(feature = "matrix")]
pub use matrix::Matrix;
#[cfg(feature = "ntfy")]
pub use ntfy::Ntfy;
#[cfg(feature = "slack")]
pub use slack::Slack;
#[cfg(feature = "smtp")]
pub use smtp::Smtp;
#[cfg(feature = "teams")]
pub use teams::{CardForm, Teams};
#[cfg(feature = "telegram")]
pub use telegram::Telegram;
#[cfg(feature = "webhook")]
pub use webhook::{SIGNATURE_HEADER, Webhook};

#[cfg(feature = "http")]
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "http")]
use crate::{
    field::CaPem,
    http::{HttpAnswer, HttpRequest},
    id::OutboxId,
    message::Message,
    verdict::{Form, Verdict},
};

/// Where messages are delivered to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Channel {
    #[cfg(feature = "gotify")]
    Gotify(Gotify),
    #[cfg(feature = "matrix")]
    Matrix(Matrix),
    #[cfg(feature = "ntfy")]
    Ntfy(Ntfy),
    #[cfg(feature = "slack")]
    Slack(Slack),
    #[cfg(feature = "smtp")]
    Smtp(Smtp),
    #[cfg(feature = "teams")]
    Teams(Teams),
    #[cfg(feature = "telegram")]
    Telegram(Telegram),
    #[cfg(feature = "webhook")]
    Webhook(Webhook),
}

/// The kind of a channel, for logs and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Gotify,
    Matrix,
    Ntfy,
    Slack,
    Smtp,
    Teams,
    Telegram,
    Webhook,
}

impl Kind {
    /// As it is written in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
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

/// The contract of a channel over HTTP.
#[cfg(feature = "http")]
pub trait HttpChannel: Sync {
    /// The request for a message.
    fn request(&self, message: &Message, id: &OutboxId, now: Timestamp, form: Form) -> HttpRequest;

    /// What the answer to it means.
    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict;

    /// The CA that alone is trusted, instead of the system's.
    fn ca(&self) -> Option<&CaPem> {
        None
    }
}

/// How a channel is reached.
#[derive(Clone, Copy)]
pub enum Transport<'c> {
    #[cfg(feature = "http")]
    Http(&'c dyn HttpChannel),
    #[cfg(feature = "smtp")]
    Mail(&'c Smtp),
}

impl Channel {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            #[cfg(feature = "gotify")]
            Self::Gotify(_) => Kind::Gotify,
            #[cfg(feature = "matrix")]
            Self::Matrix(_) => Kind::Matrix,
            #[cfg(feature = "ntfy")]
            Self::Ntfy(_) => Kind::Ntfy,
            #[cfg(feature = "slack")]
            Self::Slack(_) => Kind::Slack,
            #[cfg(feature = "smtp")]
            Self::Smtp(_) => Kind::Smtp,
            #[cfg(feature = "teams")]
            Self::Teams(_) => Kind::Teams,
            #[cfg(feature = "telegram")]
            Self::Telegram(_) => Kind::Telegram,
            #[cfg(feature = "webhook")]
            Self::Webhook(_) => Kind::Webhook,
        }
    }

    /// How it is reached, with its contract.
    #[must_use]
    pub fn transport(&self) -> Transport<'_> {
        match self {
            #[cfg(feature = "gotify")]
            Self::Gotify(gotify) => Transport::Http(gotify),
            #[cfg(feature = "matrix")]
            Self::Matrix(matrix) => Transport::Http(matrix),
            #[cfg(feature = "ntfy")]
            Self::Ntfy(ntfy) => Transport::Http(ntfy),
            #[cfg(feature = "slack")]
            Self::Slack(slack) => Transport::Http(slack),
            #[cfg(feature = "smtp")]
            Self::Smtp(smtp) => Transport::Mail(smtp),
            #[cfg(feature = "teams")]
            Self::Teams(teams) => Transport::Http(teams),
            #[cfg(feature = "telegram")]
            Self::Telegram(telegram) => Transport::Http(telegram),
            #[cfg(feature = "webhook")]
            Self::Webhook(webhook) => Transport::Http(webhook),
        }
    }
}
