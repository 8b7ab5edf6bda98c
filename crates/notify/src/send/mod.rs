//! Deliveries over the network.
//!
//! Each delivery makes its own connection and drops it, with its trust and its addresses, when it ends: alerts are rare,
//! and a process that sends none holds none of it. Deliberately absent: retries beyond the fallbacks of a contract.

mod error;
mod http;
mod mail;
mod resolve;
mod tls;

pub use error::{DeliveryError, RetryDecision};

use jiff::Timestamp;

use crate::channel::{Channel, Transport};
use crate::egress::EgressPolicy;
use crate::http::HttpAnswer;
use crate::id::OutboxId;
use crate::message::Message;
use crate::ping::Ping;
use crate::url::SecretUrl;

/// What a receiver has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// What the operator should know of it; usually nothing.
    pub remarks: Vec<Remark>,
}

/// A delivery that succeeded with a difference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    #[error("the receiver did not understand the markup; the message was sent as plain text")]
    PlainText,
    #[error("the chat has the new number {0}: write it into the channel's settings")]
    ChatMoved(i64),
    /// The other recipients have it.
    #[error("the mail server refused the recipient {address} ({status})")]
    RecipientRefused {
        address: String,
        /// The reply code.
        status: u16,
    },
}

/// Delivers messages.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    policy: EgressPolicy,
}

impl Sender {
    /// A sender that reaches as far as the policy allows.
    #[must_use]
    pub const fn new(policy: EgressPolicy) -> Self {
        Self { policy }
    }

    /// Pings an external watcher.
    ///
    /// # Errors
    /// [`DeliveryError`].
    pub async fn ping(&self, ping: &Ping, url: &SecretUrl) -> Result<(), DeliveryError> {
        http::ping(ping, url, self.policy).await
    }

    /// Reads the status and the beginning of a page. No redirect is followed.
    ///
    /// # Errors
    /// [`DeliveryError`], where there is no answer at all.
    pub async fn page(&self, url: &str) -> Result<HttpAnswer, DeliveryError> {
        let url = url::Url::parse(url).map_err(|_| DeliveryError::Unwritable)?;
        http::page(url, self.policy).await
    }

    /// Posts a document as it is to an address that has no key of its own. A repeat has the same `id`.
    ///
    /// # Errors
    /// [`DeliveryError`], also where the receiver did not take it.
    pub async fn post(&self, url: &SecretUrl, id: &OutboxId, body: Vec<u8>) -> Result<(), DeliveryError> {
        http::post(url, id, body, self.policy).await
    }

    /// Delivers one message. `now` is the time that signatures and mails carry.
    ///
    /// # Errors
    /// [`DeliveryError`]; [`DeliveryError::retry`] says what to do. An error without an answer leaves open whether the
    /// receiver has the message; a repeat under the same `id` is known as one where the receiver supports it.
    pub async fn deliver(
        &self,
        channel: &Channel,
        message: &Message,
        id: &OutboxId,
        now: Timestamp,
    ) -> Result<Receipt, DeliveryError> {
        match channel.transport() {
            Transport::Http(contract) => http::deliver(contract, self.policy, (message, id), now).await,
            Transport::Mail(smtp) => mail::deliver(smtp, self.policy, (message, id), now).await,
        }
    }
}
