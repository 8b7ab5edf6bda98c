//! The row of a host with a valid certificate.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::HostName;
use holdfast_protocol::size::PollSeconds;
use jiff::Timestamp;

use crate::domain::merge;

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
