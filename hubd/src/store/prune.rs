//! Retention limits of stored rows.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{StoreError, Term, duty};

/// A repeat of a request comes within a day.
pub const ANSWERS_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// Used and ended invites.
pub const INVITES_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Pending requests of agents that stopped repeating them.
pub const ENROLLMENT_REQUESTS_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// At about 300 bytes each, some 60 MiB.
pub const EVENTS_KEPT: u32 = 200_000;
/// Versions of one host's document.
pub const VERSIONS_KEPT: u32 = 200;
/// Signed jobs: what became of them is in the host's own audit.
pub const JOBS_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Work orders, and the texts that were read for them.
pub const WORK_ORDERS_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Texts of readings: they name a host's inner state.
pub const READINGS_KEPT: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Notices that were sent or given up.
pub const NOTICES_KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Entries of the log of alerts, at about 300 bytes each, some 60 MiB.
pub const ALERT_LOG_KEPT: u32 = 200_000;
/// Lines of the delivery log.
pub const DELIVERIES_KEPT: u32 = 50_000;
/// Silences that are over.
pub const SILENCES_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long audit records about guests are kept.
pub const AUDIT_RECORDS_KEPT: SignedDuration = SignedDuration::from_hours(400 * 24);
/// Certificates of one host: the one in use, the next, and those of about a month, by which a key that another host had
/// is known.
pub const CERTIFICATES_KEPT: u32 = 48;

/// Sessions that ended: addresses from which people signed in are known by them.
pub const SESSIONS_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The removal of expired records.
#[async_trait]
pub trait Pruning: Send + Sync {
    /// Removes expired records.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn prune(&self, term: &Term<duty::Upkeep>, now: Timestamp) -> Result<(), StoreError>;
}
