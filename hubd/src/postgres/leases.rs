//! Leases of duties, by the database's clock.

use std::time::Duration;

use async_trait::async_trait;

use super::columns::Id;
use super::sql::params;
use super::{Failed, Postgres};
use crate::store::{Duty, Epoch, Fence, Grant, HolderId, LeaseLength, Leases, StoreError};

/// A lease whose end is further away than any lease lasts is of before the clock was set back.
const LONGEST_MS: i64 = 600_000;

/// A holder that comes back late, where nobody took the lease meanwhile, goes on in its epoch.
const TAKE: &str = "
    INSERT INTO hub_leases AS lease (duty, holder, epoch, expires_at) VALUES ($1, $2, 1, database_ms() + $3::bigint)
    ON CONFLICT (duty) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
        epoch = lease.epoch + (lease.holder <> excluded.holder)::int
    WHERE lease.holder = excluded.holder OR lease.expires_at <= database_ms()
        OR lease.expires_at > database_ms() + $4::bigint
    RETURNING epoch";

#[async_trait]
impl Leases for Postgres {
    async fn hold_leases(
        &self,
        holder: HolderId,
        duties: &[Duty],
        length: Duration,
    ) -> Result<Vec<Grant>, StoreError> {
        let (duties, length_ms) = (duties.to_vec(), i64::try_from(length.as_millis()).unwrap_or(LONGEST_MS));
        let held = self.write("hold leases", move |tx| {
            let mut grants = Vec::new();
            for duty in duties {
                let asked = params![duty.as_str(), Id(holder.uuid()), length_ms, LONGEST_MS];
                let rows = tx.prepare_cached(TAKE)?.query_map(asked, |row| row.get::<_, u64>(0))?;
                for epoch in rows {
                    let fence = Fence { duty, holder, epoch: Epoch::new(epoch?) };
                    grants.push(Grant::new(fence, LeaseLength::For(length)));
                }
            }
            Ok::<_, Failed<std::convert::Infallible>>(grants)
        });
        held.await.map_err(StoreError::from)
    }

    async fn end_leases(&self, holder: HolderId) -> Result<(), StoreError> {
        let ended = self.write("end leases", move |tx| {
            tx.execute("UPDATE hub_leases SET expires_at = 0 WHERE holder = $1", [Id(holder.uuid())])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        ended.await.map_err(StoreError::from)
    }
}
