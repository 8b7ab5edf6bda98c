//! Leases of duties, and terms: the proof that this hub holds one.
//!
//! In: what the database granted, and when it was asked. Out: a [`Term`] that effects of a duty take. The transaction of
//! each effect holds the term against the database (its [`Fence`]) and writes nothing where it is over. What leaves the
//! hub cannot be fenced there, so a hub stops trusting a term by its own clock before the lease ends. Deliberately absent:
//! any choice of who should have a duty. Whoever asks first after the end of a lease gets it.

use std::marker::PhantomData;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::duty::{Duty, DutyType};

/// How long a lease lasts, by the database's clock. A hub that ended is replaced within this and one renewal, so that an
/// alarm still comes within three polls and a minute.
pub const LEASE: Duration = Duration::from_secs(6);

/// How often a lease is renewed.
pub const RENEW_EVERY: Duration = Duration::from_secs(2);

/// A hub trusts a lease for so much less than it lasts: clocks run at different speeds, and a thread may be late.
const MARGIN: Duration = Duration::from_secs(1);

/// One start of a hub. A hub that starts again is another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderId(Uuid);

impl HolderId {
    /// The id must be random, and new at each start.
    #[must_use]
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

/// The number of a term. It rises with each new holder and never falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

impl Epoch {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// What must hold in the database while an effect is written: this holder has this duty in this epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub duty: Duty,
    pub holder: HolderId,
    pub epoch: Epoch,
}

/// How long a granted lease may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseLength {
    /// No other hub can ask for it.
    Unbounded,
    For(Duration),
}

/// A lease, as the database granted it. Only a store makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    fence: Fence,
    length: LeaseLength,
}

impl Grant {
    pub(crate) const fn new(fence: Fence, length: LeaseLength) -> Self {
        Self { fence, length }
    }

    #[must_use]
    pub const fn duty(&self) -> Duty {
        self.fence.duty
    }

    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.fence.epoch
    }

    /// What this hub may believe of it. The lease began after the question, so trust that counts from the question ends
    /// before the lease does.
    #[must_use]
    pub fn tenure(self, asked_at: Instant) -> Tenure {
        let trusted = match self.length {
            LeaseLength::Unbounded => Trust::Unbounded,
            LeaseLength::For(length) => Trust::Until(asked_at + length.saturating_sub(MARGIN)),
        };
        Tenure { fence: self.fence, trusted }
    }
}

/// Until when this hub acts by a lease, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Unbounded,
    Until(Instant),
}

/// A lease that this hub has, and how long it trusts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    fence: Fence,
    trusted: Trust,
}

impl Tenure {
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.fence.epoch
    }

    /// Whether it needs no renewal.
    #[must_use]
    pub fn is_unbounded(&self) -> bool {
        self.trusted == Trust::Unbounded
    }

    fn is_trusted(&self) -> bool {
        match self.trusted {
            Trust::Unbounded => true,
            Trust::Until(end) => Instant::now() < end,
        }
    }
}

/// Where a task looks whether its hub has the duty.
pub struct Lease<D> {
    tenure: watch::Receiver<Option<Tenure>>,
    duty: PhantomData<fn() -> D>,
}

impl<D: DutyType> Lease<D> {
    /// The lease of this duty, where `tenure` is about it.
    #[must_use]
    pub fn new(tenure: watch::Receiver<Option<Tenure>>) -> Self {
        Self { tenure, duty: PhantomData }
    }

    /// A lease that was granted once and is not renewed.
    #[must_use]
    pub fn granted(grants: &[Grant], asked_at: Instant) -> Self {
        let grant = grants.iter().find(|grant| grant.duty() == D::DUTY);
        Self::new(watch::channel(grant.map(|grant| grant.tenure(asked_at))).1)
    }

    /// The term, where this hub has one now.
    #[must_use]
    pub fn term(&self) -> Option<Term<D>> {
        let tenure = *self.tenure.borrow();
        let fence = tenure.filter(|tenure| tenure.fence.duty == D::DUTY && tenure.is_trusted())?.fence;
        Some(Term { fence, tenure: self.tenure.clone(), duty: PhantomData })
    }

    /// Waits for a term.
    pub async fn taken(&mut self) -> Term<D> {
        loop {
            self.tenure.mark_unchanged();
            if let Some(term) = self.term() {
                return term;
            }
            if self.tenure.changed().await.is_err() {
                // The hub stops, and who waits here is stopped by that.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The proof that this hub has a duty. An effect of the duty takes it, and holds it against the database once more.
pub struct Term<D> {
    fence: Fence,
    tenure: watch::Receiver<Option<Tenure>>,
    duty: PhantomData<fn() -> D>,
}

impl<D> Clone for Term<D> {
    fn clone(&self) -> Self {
        Self { fence: self.fence, tenure: self.tenure.clone(), duty: PhantomData }
    }
}

impl<D: DutyType> Term<D> {
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.fence.epoch
    }

    fn current(&self) -> Option<Tenure> {
        let tenure = *self.tenure.borrow();
        tenure.filter(|tenure| tenure.fence == self.fence && tenure.is_trusted())
    }

    /// Whether the hub may act outside of the database.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.current().is_some()
    }

    /// Waits for the end of the term, which renewals put off.
    pub async fn over(&self) {
        let mut tenure = self.tenure.clone();
        loop {
            tenure.mark_unchanged();
            let Some(current) = self.current() else { return };
            let end = async {
                match current.trusted {
                    Trust::Until(end) => tokio::time::sleep_until(end).await,
                    Trust::Unbounded => std::future::pending().await,
                }
            };
            tokio::select! {
                () = end => {}
                changed = tenure.changed() => if changed.is_err() {
                    // Nobody renews it any more; it lasts as long as it was trusted.
                    match current.trusted {
                        Trust::Until(end) => tokio::time::sleep_until(end).await,
                        Trust::Unbounded => std::future::pending().await,
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::duty::{Alerts, Rollouts};
    use super::*;

    fn grant(epoch: u64, length: LeaseLength) -> Grant {
        let holder = HolderId::new(Uuid::from_u128(1));
        Grant::new(Fence { duty: Duty::Alerts, holder, epoch: Epoch::new(epoch) }, length)
    }

    #[tokio::test(start_paused = true)]
    async fn trust_ends_before_the_lease_and_a_renewal_puts_it_off() {
        let asked_at = Instant::now();
        let lease = LeaseLength::For(LEASE);
        let (renew, tenure) = watch::channel(Some(grant(3, lease).tenure(asked_at)));
        let alerts = Lease::<Alerts>::new(tenure.clone());
        assert!(Lease::<Rollouts>::new(tenure).term().is_none(), "it is about another duty");
        let term = alerts.term().unwrap();
        tokio::time::advance(LEASE - MARGIN - Duration::from_millis(1)).await;
        assert!(term.is_trusted());
        renew.send_replace(Some(grant(3, lease).tenure(Instant::now())));
        let renewed_at = Instant::now();
        term.over().await;
        assert!(Instant::now() - renewed_at >= LEASE - MARGIN && !term.is_trusted());
        renew.send_replace(Some(grant(5, lease).tenure(Instant::now())));
        assert!(!term.is_trusted(), "the next term is another one");
        assert_eq!(alerts.term().unwrap().epoch(), Epoch::new(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_is_alone_has_its_term_for_good() {
        let lease = Lease::<Alerts>::granted(&[grant(1, LeaseLength::Unbounded)], Instant::now());
        let term = lease.term().unwrap();
        tokio::time::advance(Duration::from_secs(1_000_000)).await;
        assert!(term.is_trusted());
        assert!(tokio::time::timeout(Duration::from_secs(99), term.over()).await.is_err());
    }
}
