//! Hosts as operators see them.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::HostName;
use holdfast_protocol::operator::{HostDetail, HostView};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;

use super::idempotency::By;
use super::{StoreError, WriteError};
use crate::domain::host::HostRef;

/// A host in the list, with its place in it.
#[derive(Clone, Debug)]
pub struct HostRecord {
    pub view: HostView,
    /// Its number; with the name it is the place in the list.
    pub number: i64,
}

/// Hosts as operators see them.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Hosts by name, those after `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn hosts(
        &self,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<HostRecord>, StoreError> {
        self.hosts_within(AccessScope::Everything {}, after, limit, now).await
    }

    /// The same of hosts within a scope. No host is a customer's.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn hosts_within(
        &self,
        scope: AccessScope,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<HostRecord>, StoreError>;

    /// The same with the guests that each last reported. Hosts that were let go are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn reported_guests(
        &self,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<(HostRecord, Vec<GuestReport>)>, StoreError> {
        self.reported_guests_within(AccessScope::Everything {}, after, limit, now).await
    }

    /// The same of guests within a scope, and of hosts that have any or could.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn reported_guests_within(
        &self,
        scope: AccessScope,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<(HostRecord, Vec<GuestReport>)>, StoreError>;

    /// One host with its last report.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn host(&self, host: HostRef, now: Timestamp) -> Result<Option<HostDetail>, StoreError>;

    /// Lets a host go. Letting it go twice changes nothing.
    ///
    /// # Errors
    /// [`WriteError`]; `None` when there is no such host.
    async fn revoke_host(
        &self,
        by: By,
        host: HostRef,
    ) -> Result<Option<HostView>, WriteError<std::convert::Infallible>>;
}
