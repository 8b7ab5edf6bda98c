//! The outbox of notices, and what became of them.

use alerts::notice::{DedupeKey, Notice, NoticeIncident};
use async_trait::async_trait;
use holdfast_protocol::alert::DeliveryOutcome;
use holdfast_protocol::id::ReceiverName;
use jiff::Timestamp;

use super::duty::Deliveries;
use super::{By, StoreError, Term, WriteError};

/// A notice that is being sent. No other task sends it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingAlert {
    /// Its row.
    pub number: i64,
    pub notice: Notice,
    /// How often it was tried before.
    pub tries: u32,
}

/// How a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// The receiver has it.
    Delivered {
        /// What an operator should know of it.
        remark: Option<String>,
    },
    /// It is tried again then.
    Again { at: Timestamp, failure: String },
    /// The receiver refuses it for good.
    Refused { failure: String },
    /// It was tried for too long.
    GivenUp { failure: String },
}

/// A line of the delivery log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    pub number: u64,
    pub at: Timestamp,
    pub receiver: ReceiverName,
    pub key: DedupeKey,
    pub tries: u32,
    pub outcome: DeliveryOutcome,
    pub remark: Option<String>,
    /// The title of the message.
    pub title: String,
}

/// What waits for a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverQueue {
    pub receiver: ReceiverName,
    /// How many notices wait.
    pub waiting: u32,
    /// When the oldest was made.
    pub oldest: Timestamp,
    /// Why the last try failed, where one did.
    pub failure: Option<String>,
}

/// Why a receiver is not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestError {
    #[error("an earlier test of this receiver still waits: `holdfast alert receivers` shows why")]
    Waiting,
}

/// The outbox.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Takes for each receiver the oldest notice that is due. It is being sent from then on.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn take_outgoing(
        &self,
        term: &Term<Deliveries>,
        now: Timestamp,
    ) -> Result<Vec<OutgoingAlert>, StoreError>;

    /// When the next notice is due.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn next_outgoing_at(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Lets notices wait again that an earlier run of the hub, or another hub, was sending when it ended.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn release_outgoing(&self, term: &Term<Deliveries>) -> Result<(), StoreError>;

    /// Writes down how a delivery ended.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn delivery_ended(
        &self,
        term: &Term<Deliveries>,
        sent: OutgoingAlert,
        end: DeliveryEnd,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Puts two notices into the outbox that no incident made, to try a receiver. Answers their keys. The number makes the
    /// keys, and was never used before.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn queue_test(
        &self,
        by: By,
        receiver: ReceiverName,
        number: u64,
    ) -> Result<Vec<DedupeKey>, WriteError<TestError>>;

    /// The delivery log, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn deliveries(&self, before: Option<u64>, limit: u32) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// For each receiver the last notice that it took or refused.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn last_deliveries(&self) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// What a receiver was notified of that still fires, by host, at most so many.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn firing_at(&self, receiver: ReceiverName, limit: u32) -> Result<Vec<NoticeIncident>, StoreError>;

    /// What waits for each receiver.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn queues(&self) -> Result<Vec<ReceiverQueue>, StoreError>;
}
