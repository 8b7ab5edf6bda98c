//! Retention limits of stored rows.

use jiff::{SignedDuration, Timestamp};
use rusqlite::params;

use super::columns::Time;
use super::writer::Shape;
use super::{Failed, Store, StoreError, restore_orders};

/// A repeat of a request comes within a day.
const ANSWERS_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// Used and ended invites.
const INVITES_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Pending requests of agents that stopped asking.
const ENROLLMENT_REQUESTS_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// At about 300 bytes each, some 60 MiB.
const EVENTS_KEPT: u32 = 200_000;
/// Versions of one host's document.
const VERSIONS_KEPT: u32 = 200;
/// Signed jobs: what became of them is in the host's own audit.
const JOBS_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Notices that were sent or given up.
const NOTICES_KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Certificates of one host: the one in use, the next, and a few to look at.
const CERTIFICATES_KEPT: u32 = 8;

impl Store {
    /// Drops what is past its time.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn prune(&self, now: Timestamp) -> Result<(), StoreError> {
        let before = move |kept: SignedDuration| now.checked_sub(kept).map_or(Time(Timestamp::MIN), Time);
        let pruned = self.write("drop what is past its time", Shape::Single, move |tx| {
            tx.execute("DELETE FROM idempotency WHERE at < ?1", [before(ANSWERS_KEPT)])?;
            tx.execute("DELETE FROM invites WHERE expires_at < ?1", [before(INVITES_KEPT)])?;
            tx.execute(
                "DELETE FROM restores WHERE used_at IS NULL AND created_at < ?1",
                [before(restore_orders::SHOWN)],
            )?;
            tx.execute("DELETE FROM tokens WHERE expires_at < ?1", [before(INVITES_KEPT)])?;
            tx.execute(
                "DELETE FROM enrollment_requests WHERE state = 'pending' AND last_at < ?1",
                [before(ENROLLMENT_REQUESTS_KEPT)],
            )?;
            tx.execute("DELETE FROM jobs WHERE submitted_at < ?1", [before(JOBS_KEPT)])?;
            tx.execute("DELETE FROM notices WHERE done_at < ?1", [before(NOTICES_KEPT)])?;
            tx.execute(
                "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?1",
                [EVENTS_KEPT],
            )?;
            tx.execute(
                "DELETE FROM desired WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER
                     (PARTITION BY host ORDER BY generation DESC) AS place FROM desired) WHERE place > ?1)",
                params![VERSIONS_KEPT],
            )?;
            tx.execute(
                "DELETE FROM certificates WHERE generation + ?1 <=
                     (SELECT used_generation FROM hosts WHERE number = host)",
                params![CERTIFICATES_KEPT],
            )?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        pruned.await.map_err(StoreError::from)
    }
}
