//! Facts of objects that scopes are compared with.

use async_trait::async_trait;
use holdfast_protocol::access::ObjectFacts;
use holdfast_protocol::id::{GuestUid, JobId};

use super::StoreError;
use crate::domain::host::HostRef;

/// An object that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectRef {
    Host(HostRef),
    /// A guest, by its host.
    Guest(HostRef, GuestUid),
    /// A job of which a host has spoken.
    Job(JobId),
}

/// Facts of objects.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Where an object lies and whose it is. `None` when there is none. A guest's customer is that of its host's last
    /// report that named it, or else that of the newest document that did.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn object_facts(&self, object: ObjectRef) -> Result<Option<ObjectFacts>, StoreError>;
}
