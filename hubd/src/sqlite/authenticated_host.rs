//! The row of a host with a valid certificate.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostName;
use holdfast_protocol::size::PollSeconds;
use jiff::Timestamp;

use crate::domain::merge;
use crate::store::HostFacts;

/// A host whose certificate is served.
pub(super) struct AuthenticatedHost {
    pub number: i64,
    pub name: HostName,
    pub issued: u32,
    pub liveness: String,
    pub kept: Option<merge::StoredReport>,
    pub poll: PollSeconds,
    pub wanted: Generation,
    pub refused: Option<Generation>,
    pub audit_seen: u64,
    pub seen_at: Option<Timestamp>,
}

impl AuthenticatedHost {
    /// What its check-in is judged by.
    pub(super) fn facts(&self) -> HostFacts<'_> {
        HostFacts {
            name: &self.name,
            liveness: &self.liveness,
            report: self.kept,
            refused: self.refused,
            audit_seen: self.audit_seen,
            seen_at: self.seen_at,
        }
    }
}
