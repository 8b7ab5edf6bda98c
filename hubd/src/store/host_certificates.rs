//! Certificates in use by host, and events of the CA.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId, HostName};
use jiff::Timestamp;

use super::StoreError;
use crate::domain::event::EventKind;

/// The certificate that a host uses, or was given and has not used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCertificate {
    pub host: HostId,
    pub name: HostName,
    /// None: this hub was restored from a backup that is older than the certificate.
    pub pem: Option<String>,
    /// When it ends; of one that is not on record, the newest that is.
    pub ends_at: Timestamp,
    /// When the host was last heard of.
    pub seen_at: Option<Timestamp>,
}

/// What became of a change of the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaEventKind {
    Begun,
    TakenBack,
    Finished,
}

impl CaEventKind {
    /// As an event of the hub.
    #[must_use]
    pub const fn event(self) -> EventKind {
        match self {
            Self::Begun => EventKind::CaChangeBegun,
            Self::TakenBack => EventKind::CaChangeTakenBack,
            Self::Finished => EventKind::CaChangeFinished,
        }
    }
}

/// An event of the hub's CA.
#[derive(Clone, Debug)]
pub struct CaEvent {
    pub kind: CaEventKind,
    pub message: String,
    pub at: Timestamp,
    pub correlation: CorrelationId,
}

/// Certificates of all hosts.
#[async_trait]
pub trait HostCertificates: Send + Sync {
    /// The certificate of each host that is not revoked, by name: the newest that it used, or its first one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn host_certificates(&self) -> Result<Vec<HostCertificate>, StoreError>;

    /// Records an event of the hub's CA.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn record_ca_event(&self, event: CaEvent) -> Result<(), StoreError>;
}
