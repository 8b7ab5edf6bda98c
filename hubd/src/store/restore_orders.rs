//! Restore orders of a host: listing and withdrawal.
//!
//! The hub reads only the hash of an order. The hosts decide whether a withdrawal counts. The hub hands it over with
//! the order that it names, and gives no machine a place by an order that has one.

use async_trait::async_trait;
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::restore::RestoreOrder;

use jiff::SignedDuration;

use super::WriteError;
use super::idempotency::By;
use crate::domain::host::HostRef;

/// As long as signed jobs.
pub const RESTORE_ORDERS_SHOWN: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A host is lost less often.
pub const RESTORE_ORDERS_MAX: u32 = 20;

/// A withdrawal to be kept.
#[derive(Clone, Debug)]
pub struct NewWithdrawal {
    /// Whose order it is.
    pub host: HostRef,
    /// Whom the withdrawal names.
    pub ordered: HostId,
    /// The order that it takes back, by its hash.
    pub order: Sha256Text,
    /// The withdrawal, as it was left.
    pub withdrawal: String,
}

/// Why a withdrawal is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    /// The withdrawal is for another host.
    #[error("the withdrawal is for host {ordered}, and this is {here}: sign one for this host")]
    Other {
        /// Whom it names.
        ordered: HostId,
        /// The host that the request names.
        here: HostId,
    },
    /// No such order.
    #[error("no order to restore this host has the hash {0}: `holdfast host show` lists those that lie here")]
    Unknown(String),
}

/// Orders to replace a host, and their withdrawal.
#[async_trait]
pub trait RestoreOrders: Send + Sync {
    /// Stores the withdrawal of an order. The first one stays.
    ///
    /// # Errors
    /// [`WithdrawError`]; `None` when there is no such host.
    async fn withdraw_restore(
        &self,
        by: By,
        new: NewWithdrawal,
    ) -> Result<Option<RestoreOrder>, WriteError<WithdrawError>>;
}
