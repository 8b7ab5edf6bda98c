//! Leases of duties where one hub has the database.
//!
//! The hub's folder is locked, so whoever asks is the only hub there is: it gets every lease, for as long as it runs. The
//! epoch and the fence are those of the other engine.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::params;

use super::columns::Id;
use super::settled::Scope;
use super::writer::Shape;
use super::{Failed, Sqlite};
use crate::store::{Duty, Epoch, Fence, Grant, HolderId, LeaseLength, Leases, StoreError};

const TAKE: &str = "INSERT INTO hub_leases (duty, holder, epoch, expires_at) VALUES (?1, ?2, 1, ?3)
    ON CONFLICT (duty) DO UPDATE SET epoch = epoch + (holder <> excluded.holder), holder = excluded.holder,
        expires_at = excluded.expires_at
    RETURNING epoch";

#[async_trait]
impl Leases for Sqlite {
    async fn hold_leases(
        &self,
        holder: HolderId,
        duties: &[Duty],
        _length: Duration,
    ) -> Result<Vec<Grant>, StoreError> {
        let duties = duties.to_vec();
        let held = self.write_within("hold leases", Shape::Several, Scope::NoHost, move |tx| {
            let mut grants = Vec::new();
            for duty in duties {
                let asked = params![duty.as_str(), Id(holder.uuid()), i64::MAX];
                let epoch: i64 = tx.prepare_cached(TAKE)?.query_row(asked, |row| row.get(0))?;
                let epoch = Epoch::new(u64::try_from(epoch).unwrap_or_default());
                grants.push(Grant::new(Fence { duty, holder, epoch }, LeaseLength::Unbounded));
            }
            Ok::<_, Failed<std::convert::Infallible>>(grants)
        });
        held.await.map_err(StoreError::from)
    }

    async fn end_leases(&self, holder: HolderId) -> Result<(), StoreError> {
        let ended = self.write_within("end leases", Shape::Single, Scope::NoHost, move |tx| {
            tx.execute("UPDATE hub_leases SET expires_at = 0 WHERE holder = ?1", [Id(holder.uuid())])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        ended.await.map_err(StoreError::from)
    }
}
