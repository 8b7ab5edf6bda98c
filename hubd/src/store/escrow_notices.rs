//! The queue of escrow notices to customers.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, CustomerId, HostId};
use jiff::Timestamp;

use super::{StoreError, Term, duty};

/// A notice that is to be sent.
#[derive(Clone, Debug)]
pub struct OutgoingNotice {
    pub number: u64,
    /// When the read was.
    pub at: Timestamp,
    /// Whom it is for.
    pub customer: CustomerId,
    /// Whose escrow was read.
    pub host: HostId,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
    /// The bytes to send.
    pub body: String,
}

/// What became of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeEnd {
    /// The receiver took it.
    Sent,
    /// Its receiver did not accept it before its time was over.
    GivenUp,
}

/// Notices about reads of wrapped keys.
#[async_trait]
pub trait EscrowNotices: Send + Sync {
    /// For each customer the oldest notice to send: a customer who cannot be reached delays no other.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn open_notices(&self) -> Result<Vec<OutgoingNotice>, StoreError>;

    /// Writes down what became of a notice.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn notice_ended(
        &self,
        term: &Term<duty::EscrowNotices>,
        notice: &OutgoingNotice,
        end: NoticeEnd,
        at: Timestamp,
    ) -> Result<(), StoreError>;
}
