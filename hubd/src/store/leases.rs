//! Leases of duties in the database.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;
use super::duty::Duty;
use super::term::{Grant, HolderId};

/// Leases of duties.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes or renews the leases of these duties, each where no other holder has it. The end of a lease is judged by the
    /// database's clock, which all hubs share; where no other hub can be there, none is waited for.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn hold_leases(
        &self,
        holder: HolderId,
        duties: &[Duty],
        length: Duration,
    ) -> Result<Vec<Grant>, StoreError>;

    /// Ends all leases of a holder now, so that another hub need not wait for their end.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn end_leases(&self, holder: HolderId) -> Result<(), StoreError>;
}
