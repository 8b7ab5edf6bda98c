//! Customers: those that were added, and those that are only named.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::customer::{Contact, CustomerChange, CustomerView, NewCustomer};
use holdfast_protocol::host_label::LabelError;
use holdfast_protocol::id::CustomerId;

use super::idempotency::By;
use super::{StoreError, WriteError};

/// Customers that are added at most.
pub const CUSTOMERS_MAX: u32 = 10_000;

/// Why a customer is not added, changed or removed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomerError {
    #[error("{name} is there already: change it with `holdfast customer set {name}`")]
    Taken { name: CustomerId },
    #[error("{CUSTOMERS_MAX} customers are there, as many as are possible: remove one first")]
    TooMany,
    #[error("there is no customer {name}: `holdfast customer list` shows all")]
    Unknown { name: CustomerId },
    #[error("nobody added {name}: documents name it alone. Add it first: `holdfast customer add {name}`")]
    OnlyNamed { name: CustomerId },
    #[error("{name} was changed meanwhile and is at version {current}: read it again and repeat the change")]
    Moved { name: CustomerId, current: u64 },
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// Something names it.
    #[error("{name} is not removed: {}", .by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    InUse { name: CustomerId, by: Vec<CustomerUse> },
}

/// What names a customer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomerUse {
    #[error("{0} guests in the newest documents or the last reports are theirs")]
    Guests(u32),
    #[error("{0} people or machine tokens have it as their scope")]
    Scopes(u32),
}

/// Customers.
#[async_trait]
pub trait Customers: Send + Sync {
    /// Customers by name, those after `after`; of one name alone where `only` is given.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn customers(
        &self,
        only: Option<CustomerId>,
        after: Option<CustomerId>,
        limit: u32,
    ) -> Result<Vec<CustomerView>, StoreError> {
        self.customers_within(AccessScope::Everything {}, only, after, limit).await
    }

    /// The same within a scope: its customer, or those with guests on its hosts, which alone are counted.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn customers_within(
        &self,
        scope: AccessScope,
        only: Option<CustomerId>,
        after: Option<CustomerId>,
        limit: u32,
    ) -> Result<Vec<CustomerView>, StoreError>;

    /// How a customer that was added is reached outside of the hub.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn customer_contact(&self, name: CustomerId) -> Result<Option<Contact>, StoreError>;

    /// Adds a customer.
    ///
    /// # Errors
    /// [`CustomerError`].
    async fn add_customer(&self, by: By, new: NewCustomer)
    -> Result<CustomerView, WriteError<CustomerError>>;

    /// Changes a customer that is at this version.
    ///
    /// # Errors
    /// [`CustomerError`].
    async fn change_customer(
        &self,
        by: By,
        name: CustomerId,
        version: u64,
        change: CustomerChange,
    ) -> Result<CustomerView, WriteError<CustomerError>>;

    /// Removes a customer that is at this version and that nothing names.
    ///
    /// # Errors
    /// [`CustomerError`].
    async fn remove_customer(
        &self,
        by: By,
        name: CustomerId,
        version: u64,
    ) -> Result<CustomerView, WriteError<CustomerError>>;
}
