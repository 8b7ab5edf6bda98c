//! A host certificate, as stored.

use holdfast_protocol::id::{HostId, HostName};
use jiff::Timestamp;

/// A host's certificate, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRecord {
    pub host: HostId,
    pub name: HostName,
    /// Which of its certificates.
    pub generation: u32,
    pub pem: String,
    /// When it begins.
    pub not_before: Timestamp,
    /// When it ends.
    pub not_after: Timestamp,
}
