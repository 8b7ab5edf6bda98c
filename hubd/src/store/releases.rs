//! Signed releases and the digests that they name.

use std::collections::BTreeSet;
use std::convert::Infallible;

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{ReleaseFile, ReleaseManifest, VersionNumber};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::idempotency::By;
use super::{StoreError, WriteError};
use crate::domain::identity::{IdentityError, Presented};
use crate::domain::release::ReleasePutError;

/// A release to be kept.
#[derive(Clone, Debug)]
pub struct NewRelease {
    pub manifest: ReleaseManifest,
    /// SHA-256 of the manifest's signed bytes.
    pub manifest_sha256: Sha256Text,
    /// How many signatures it carries.
    pub signatures: u32,
    /// The signed release, as hosts get it.
    pub signed: String,
}

/// A release that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseRecord {
    pub version: VersionNumber,
    pub manifest_sha256: Sha256Text,
    pub issued_at: UtcSecond,
    pub expires_at: UtcSecond,
    pub signatures: u32,
    pub by: OperatorName,
    pub put_at: Timestamp,
    /// In the order of the manifest.
    pub files: Vec<ReleaseFile>,
}

/// A host that asks.
#[derive(Clone, Copy, Debug)]
pub struct AskingHost {
    /// The TLS certificate that the host presented.
    pub presented: Presented,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Signed releases.
#[async_trait]
pub trait Releases: Send + Sync {
    /// Keeps a release. All files that releases name have at most `bytes_max` bytes together.
    ///
    /// # Errors
    /// [`ReleasePutError`].
    async fn put_release(
        &self,
        by: By,
        new: NewRelease,
        bytes_max: u64,
    ) -> Result<ReleaseRecord, WriteError<ReleasePutError>>;

    /// All of them, the newest version first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn releases(&self) -> Result<Vec<ReleaseRecord>, StoreError>;

    /// Removes a release, and says what it was. `None` when there is none of that version.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn delete_release(
        &self,
        by: By,
        version: VersionNumber,
    ) -> Result<Option<ReleaseRecord>, WriteError<Infallible>>;

    /// The digests that releases name.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn named_artifacts(&self) -> Result<BTreeSet<Sha256Text>, StoreError>;

    /// The size that releases give for a digest. `None` when no release names it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn artifact_size(&self, digest: Sha256Text) -> Result<Option<u64>, StoreError>;

    /// The same for a host.
    ///
    /// # Errors
    /// [`IdentityError`].
    async fn artifact_size_for_host(
        &self,
        host: AskingHost,
        digest: Sha256Text,
    ) -> Result<Option<u64>, WriteError<IdentityError>>;

    /// The signed release that names a digest, for a host. Of several, the one that ends last.
    ///
    /// # Errors
    /// [`IdentityError`].
    async fn naming_release_for_host(
        &self,
        host: AskingHost,
        digest: Sha256Text,
    ) -> Result<Option<String>, WriteError<IdentityError>>;

    /// The signed release of a version, for a host.
    ///
    /// # Errors
    /// [`IdentityError`].
    async fn release_for_host(
        &self,
        host: AskingHost,
        version: VersionNumber,
    ) -> Result<Option<String>, WriteError<IdentityError>>;
}
