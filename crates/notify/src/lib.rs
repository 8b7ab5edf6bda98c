//! Delivery of one message through one channel.
//!
//! Input: a [`Channel`], a [`Message`], the id of its row in the caller's outbox, and the time. Output: a [`Receipt`],
//! or a [`DeliveryError`] that says by [`DeliveryError::retry`] whether and when to try again. Deliberately absent: the
//! outbox, rules, quiet hours, and the choice of channels. The caller has these.
//!
//! | module | contents |
//! | --- | --- |
//! | [`id`], [`message`] | what is delivered, within bounds |
//! | [`field`], [`channel`] | settings of each kind of channel, and its contract: request and verdict, both pure |
//! | [`channel_file`] | files and credentials that hold the settings |
//! | [`ping`] | pings of an external watcher |
//! | [`egress`] | which addresses deliveries may go to |
//! | [`send`] | the connections |
//!
//! Mail, ntfy and webhook are always there: an agent offers these. The feature `all` adds the others, for the hub.
#![forbid(unsafe_code)]

pub mod channel;
pub mod channel_file;
pub mod egress;
pub mod field;
mod fit;
pub mod http;
pub mod id;
pub mod message;
pub mod ping;
pub mod reason;
pub mod send;
mod text;
pub mod url;
pub mod verdict;

pub use channel::Channel;
pub use channel_file::{ChannelFileError, ChannelPlace};
pub use egress::EgressPolicy;
pub use holdfast_protocol::condition::Severity;
pub use id::{GroupId, IncidentId, OutboxId};
pub use message::{Alert, Draft, Link, Message, MessageState, Series};
pub use ping::Ping;
pub use send::{DeliveryError, Receipt, RetryDecision, Sender};
