//! Check-ins of hosts, and the answers to them.
//!
//! This is the hot path of every engine: ten thousand hosts come here each half minute.

use async_trait::async_trait;
use holdfast_protocol::checkin::Need;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::job::QueuedJob;
use holdfast_protocol::size::PollSeconds;
use holdfast_protocol::work_order::QueuedOrder;
use jiff::Timestamp;

use super::StoreError;
use super::checkin_request::Checkin;
use crate::domain::desired::Delivery;
use crate::domain::identity::{IdentityError, Presented};

/// The reply to a check-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckinReply {
    /// The newest report that is kept; 0 is none.
    pub acknowledged: u64,
    /// What the next report should carry.
    pub need: Need,
    /// How often the host should ask.
    pub poll: PollSeconds,
    /// Whether its desired document is delivered.
    pub delivery: Delivery,
    /// The document, where it is delivered.
    pub desired: Option<String>,
    /// Signed jobs that the host has not spoken of.
    pub jobs: Vec<QueuedJob>,
    /// Work orders that wait for the host.
    pub orders: Vec<QueuedOrder>,
    /// The highest number of an audit line that was ever heard from it.
    pub audit_seen: u64,
    /// Until when maintenance of it is announced.
    pub maintenance_until: Option<Timestamp>,
}

/// The answer to a held check-in after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Whether its desired document is delivered.
    pub delivery: Delivery,
    /// The document, where it is delivered.
    pub desired: Option<String>,
    /// Signed jobs that the host has not spoken of.
    pub jobs: Vec<QueuedJob>,
    /// Work orders that wait for the host.
    pub orders: Vec<QueuedOrder>,
    /// Until when maintenance of it is announced; it may be over.
    pub maintenance_until: Option<Timestamp>,
}

/// Check-ins of hosts.
#[async_trait]
pub trait Checkins: Send + Sync {
    /// Keeps a check-in. What it says is durable when this returns. Where it says nothing new, the time of this contact
    /// and its sequence number are durable at the next [`super::Contacts::listened_to`].
    ///
    /// # Errors
    /// [`StoreError`]; the inner error says that the certificate is not served.
    async fn check_in(&self, checkin: Checkin) -> Result<Result<CheckinReply, IdentityError>, StoreError>;

    /// The answer to a held check-in after a change.
    ///
    /// # Errors
    /// [`StoreError`]; the inner error says that the certificate is not served any more.
    async fn look_again(
        &self,
        presented: Presented,
        held: Generation,
    ) -> Result<Result<Update, IdentityError>, StoreError>;
}
