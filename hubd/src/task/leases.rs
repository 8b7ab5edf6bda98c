//! The task that holds this hub's leases of duties.
//!
//! In: leases from the database. Out: a [`Lease`] for the task of each duty. A hub asks for every duty at each renewal, so
//! one that ended is replaced within [`LEASE`] and a renewal. A renewal that fails is repeated; until then the hub acts by
//! what it may still trust.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::json::chain;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Rest, rest};
use crate::store::duty::DutyType;
use crate::store::{Duty, HolderId, LEASE, Lease, RENEW_EVERY, SharedStore, StoreError, Tenure};

/// Where tasks find the leases of this hub.
#[derive(Clone)]
pub struct LeaseDesk {
    tenures: Arc<BTreeMap<Duty, watch::Receiver<Option<Tenure>>>>,
}

impl LeaseDesk {
    /// The lease of a duty.
    #[must_use]
    pub fn lease<D: DutyType>(&self) -> Lease<D> {
        match self.tenures.get(&D::DUTY) {
            Some(tenure) => Lease::new(tenure.clone()),
            // Every duty has its place; a lease that nobody renews would be no lie either.
            None => Lease::new(watch::channel(None).1),
        }
    }
}

/// Holds the leases.
pub struct LeaseKeeper {
    store: SharedStore,
    holder: HolderId,
    tenures: BTreeMap<Duty, watch::Sender<Option<Tenure>>>,
}

impl LeaseKeeper {
    #[must_use]
    pub fn new(store: SharedStore, holder: HolderId) -> (Self, LeaseDesk) {
        let (mut tenures, mut places) = (BTreeMap::new(), BTreeMap::new());
        for duty in Duty::ALL {
            let (tenure, place) = watch::channel(None);
            tenures.insert(duty, tenure);
            places.insert(duty, place);
        }
        (Self { store, holder, tenures }, LeaseDesk { tenures: Arc::new(places) })
    }

    /// Renews until `stop`. The leases stay: tasks that end later may still need them.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        while rest(&mut stop, RENEW_EVERY).await == Rest::Over {
            self.ask().await;
        }
    }

    /// Asks once; a failure is logged, and repeated at the next time.
    pub async fn ask(&self) {
        if let Err(error) = self.renew().await {
            tracing::warn!(action = "hold_leases", result = "failed", error = %chain(&error));
        }
    }

    /// Asks for every duty once.
    async fn renew(&self) -> Result<(), StoreError> {
        let asked_at = Instant::now();
        let wanted: Vec<Duty> =
            self.tenures.keys().copied().filter(|duty| !self.is_for_good(*duty)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let grants = self.store.hold_leases(self.holder, &wanted, LEASE).await?;
        let (mut taken, mut lost) = (Vec::new(), Vec::new());
        for duty in wanted {
            let Some(place) = self.tenures.get(&duty) else { continue };
            let tenure = grants.iter().find(|grant| grant.duty() == duty).map(|grant| grant.tenure(asked_at));
            let before = place.send_replace(tenure).map(|tenure| tenure.epoch());
            match tenure.map(|tenure| tenure.epoch()) {
                now if now == before => {}
                Some(epoch) => taken.push(format!("{} (epoch {})", duty.as_str(), epoch.number())),
                None => lost.push(duty.as_str()),
            }
        }
        if !taken.is_empty() {
            tracing::info!(action = "lease", result = "taken", duties = taken.join(", "));
        }
        if !lost.is_empty() {
            tracing::info!(action = "lease", result = "lost", duties = lost.join(", "));
        }
        Ok(())
    }

    fn is_for_good(&self, duty: Duty) -> bool {
        self.tenures
            .get(&duty)
            .is_some_and(|place| place.borrow().is_some_and(|tenure| tenure.is_unbounded()))
    }
}
