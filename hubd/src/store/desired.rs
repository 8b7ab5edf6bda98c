//! Desired documents: history and compare-and-set.

use async_trait::async_trait;
use holdfast_protocol::desired::{Desired, Reason};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::DesiredVersion;
use serde::{Deserialize, Serialize};

use super::idempotency::By;
use super::{StoreError, WriteError};
use crate::domain::desired::{IfMatch, PutError};
use crate::domain::host::HostRef;

/// A document to be put.
#[derive(Clone, Debug)]
pub struct Put {
    pub host: HostRef,
    /// What the operator saw.
    pub seen: IfMatch,
    pub reason: Reason,
    /// The document, checked.
    pub desired: Desired,
    /// The document's text.
    pub text: String,
}

/// A document that was put, or was there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutDone {
    /// The host it is for.
    pub host: HostId,
    pub version: DesiredVersion,
}

/// Desired documents and their history.
#[async_trait]
pub trait DesiredDocuments: Send + Sync {
    /// The current document of a host: the outer `None` is no host, the inner no document.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn desired(&self, host: HostRef) -> Result<Option<Option<DesiredVersion>>, StoreError>;

    /// A host's documents, newest first, those before `before`.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn desired_history(
        &self,
        host: HostRef,
        before: Option<Generation>,
        limit: u32,
    ) -> Result<Option<Vec<DesiredVersion>>, StoreError>;

    /// Puts the next document. `None` when there is no such host.
    ///
    /// # Errors
    /// [`PutError`].
    async fn put_desired(&self, by: By, put: Put) -> Result<Option<PutDone>, WriteError<PutError>>;
}
