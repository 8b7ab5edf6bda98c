//! Channels: their settings, and the contract of each kind.
//!
//! In: a message, the id of its outbox row, the time. Out: a request as data, and a verdict on its answer. All of it is
//! pure; [`crate::send`] performs. Secrets are wiped when dropped and hidden in `Debug`; they are serialised, so the
//! caller stores a channel sealed.

#[cfg(feature = "all")]
mod alertmanager;
#[cfg(feature = "all")]
mod gotify;
#[cfg(feature = "all")]
mod matrix;
mod ntfy;
#[cfg(feature = "all")]
mod slack;
pub mod smtp;
#[cfg(feature = "all")]
mod teams;
#[cfg(feature = "all")]
mod telegram;
mod webhook;

#[cfg(feature = "all")]
pub use alertmanager::Alertmanager;
#[cfg(feature = "all")]
pub use gotify::Gotify;
#[cfg(feature = "all")]
pub use matrix::Matrix;
pub use ntfy::Ntfy;
#[cfg(feature = "all")]
pub use slack::Slack;
pub use smtp::Smtp;
#[cfg(feature = "all")]
pub use teams::{CardForm, Teams};
#[cfg(feature = "all")]
pub use telegram::Telegram;
pub use webhook::{SIGNATURE_HEADER, Webhook};

use holdfast_protocol::alert::ReceiverKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::field::CaPem;
use crate::http::{HttpAnswer, HttpRequest};
use crate::id::OutboxId;
use crate::message::Message;
use crate::verdict::{Form, Verdict};

/// Where messages are delivered to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Channel {
    #[cfg(feature = "all")]
    Alertmanager(Alertmanager),
    #[cfg(feature = "all")]
    Gotify(Gotify),
    #[cfg(feature = "all")]
    Matrix(Matrix),
    Ntfy(Ntfy),
    #[cfg(feature = "all")]
    Slack(Slack),
    Smtp(Smtp),
    #[cfg(feature = "all")]
    Teams(Teams),
    #[cfg(feature = "all")]
    Telegram(Telegram),
    Webhook(Webhook),
}

/// The contract of a channel over HTTP.
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
    Http(&'c dyn HttpChannel),
    Mail(&'c Smtp),
}

impl Channel {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ReceiverKind {
        match self {
            #[cfg(feature = "all")]
            Self::Alertmanager(_) => ReceiverKind::Alertmanager,
            #[cfg(feature = "all")]
            Self::Gotify(_) => ReceiverKind::Gotify,
            #[cfg(feature = "all")]
            Self::Matrix(_) => ReceiverKind::Matrix,
            Self::Ntfy(_) => ReceiverKind::Ntfy,
            #[cfg(feature = "all")]
            Self::Slack(_) => ReceiverKind::Slack,
            Self::Smtp(_) => ReceiverKind::Smtp,
            #[cfg(feature = "all")]
            Self::Teams(_) => ReceiverKind::Teams,
            #[cfg(feature = "all")]
            Self::Telegram(_) => ReceiverKind::Telegram,
            Self::Webhook(_) => ReceiverKind::Webhook,
        }
    }

    /// How it is reached, with its contract.
    #[must_use]
    pub fn transport(&self) -> Transport<'_> {
        match self {
            #[cfg(feature = "all")]
            Self::Alertmanager(alertmanager) => Transport::Http(alertmanager),
            #[cfg(feature = "all")]
            Self::Gotify(gotify) => Transport::Http(gotify),
            #[cfg(feature = "all")]
            Self::Matrix(matrix) => Transport::Http(matrix),
            Self::Ntfy(ntfy) => Transport::Http(ntfy),
            #[cfg(feature = "all")]
            Self::Slack(slack) => Transport::Http(slack),
            Self::Smtp(smtp) => Transport::Mail(smtp),
            #[cfg(feature = "all")]
            Self::Teams(teams) => Transport::Http(teams),
            #[cfg(feature = "all")]
            Self::Telegram(telegram) => Transport::Http(telegram),
            Self::Webhook(webhook) => Transport::Http(webhook),
        }
    }
}
