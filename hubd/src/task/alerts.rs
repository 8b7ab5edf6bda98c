//! The timer of the alert engine and of the hub's own conditions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use alerts::incident::Scope;
use holdfast_protocol::condition::ReportedCondition;
use holdfast_protocol::id::CorrelationId;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use uuid::Uuid;

use super::hub_backup::BackupWatch;
use super::{Rest, log_failure, rest};
use crate::clock::Clock;
use crate::domain::alerting::own::{self, BackupState, DatabaseState, DiskRoom, HubFacts, SettingsState};
use crate::domain::deadman::TICK;
use crate::store::{Epoch, Lease, SharedStore, StoreError, Term, duty};

/// Scopes of one transaction. Check-ins wait no longer for it than for a batch of their own.
const SCOPES_A_STEP: u32 = 64;

/// How often the hub looks what is wrong by its own rows. Each of these conditions lasts for hours.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// The engine's timer.
pub struct AlertTimer {
    pub store: SharedStore,
    lease: Lease<duty::Alerts>,
    pub clock: Arc<dyn Clock>,
    /// The folder of the database.
    pub folder: PathBuf,
    /// Where the hub's own backups are, where the settings say so.
    pub backup: Option<BackupWatch>,
    /// What the last check of the database found.
    pub database: Option<watch::Receiver<DatabaseState>>,
    /// What became of settings that were read again.
    pub settings: Option<watch::Receiver<SettingsState>>,
    /// The term in which the rest was found: another hub may have found something else since.
    term: Option<Epoch>,
    /// What was last found; what did not change is not given to the engine again.
    found: BTreeMap<Scope, Vec<ReportedCondition>>,
    looked_at: Option<Timestamp>,
}

impl AlertTimer {
    #[must_use]
    pub fn new(
        store: SharedStore,
        lease: Lease<duty::Alerts>,
        clock: Arc<dyn Clock>,
        folder: PathBuf,
    ) -> Self {
        Self {
            store,
            lease,
            clock,
            folder,
            backup: None,
            database: None,
            settings: None,
            term: None,
            found: BTreeMap::new(),
            looked_at: None,
        }
    }

    /// The same, with the place of the hub's backups.
    #[must_use]
    pub fn with_backup(self, backup: Option<BackupWatch>) -> Self {
        Self { backup, ..self }
    }

    /// The same, with the checks of the database.
    #[must_use]
    pub fn with_checks(self, database: watch::Receiver<DatabaseState>) -> Self {
        Self { database: Some(database), ..self }
    }

    /// The same, with what becomes of settings that are read again.
    #[must_use]
    pub fn with_settings(self, settings: watch::Receiver<SettingsState>) -> Self {
        Self { settings: Some(settings), ..self }
    }

    /// Ticks until `stop`. A tick that fails is logged and repeated at the next.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        while rest(&mut stop, TICK).await == Rest::Over {
            if let Err(error) = self.tick().await {
                log_failure("alerts", &error);
            }
        }
    }

    /// Does what is due, where this hub has the duty.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tick(&mut self) -> Result<(), StoreError> {
        let Some(term) = self.lease.term() else { return Ok(()) };
        if self.term != Some(term.epoch()) {
            (self.term, self.looked_at) = (Some(term.epoch()), None);
            self.found.clear();
        }
        let now = self.clock.now();
        let is_due = |at: Timestamp| now < at || now.duration_since(at) >= LOOK_EVERY;
        if self.looked_at.is_none_or(is_due) {
            self.look(&term, now).await?;
            self.looked_at = Some(now);
        }
        let correlation = CorrelationId::new(Uuid::new_v4());
        while self.store.advance_alerts(&term, now, correlation, SCOPES_A_STEP).await? == SCOPES_A_STEP {}
        Ok(())
    }

    /// Looks what is wrong by the hub's own rows and its disk.
    async fn look(&mut self, term: &Term<duty::Alerts>, now: Timestamp) -> Result<(), StoreError> {
        let facts = self.store.own_facts(now).await?;
        let database = self.database.as_ref().map(|state| state.borrow().clone()).unwrap_or_default();
        let settings = self.settings.as_ref().map(|state| state.borrow().clone()).unwrap_or_default();
        let hub = HubFacts { disk: self.disk(), backup: self.backup(), database, settings, ..facts.hub };
        let hosts = facts.hosts.iter().map(|host| (Scope::Host(host.host), own::of_host(host, now)));
        let all: Vec<_> = hosts.chain([(Scope::Hub, own::of_hub(&hub, now))]).collect();
        // A host of which the store has no facts any more, because it was revoked, may come back with the same ones.
        self.found.retain(|scope, _| all.iter().any(|(present, _)| present == scope));
        let news: Vec<_> = all.into_iter().filter(|(scope, found)| !self.is_known(*scope, found)).collect();
        if news.is_empty() {
            return Ok(());
        }
        let correlation = CorrelationId::new(Uuid::new_v4());
        self.store.observe(term, news.clone(), now, correlation).await?;
        for (scope, found) in news {
            self.found.insert(scope, found);
        }
        self.found.retain(|scope, found| *scope == Scope::Hub || !found.is_empty());
        Ok(())
    }

    /// Times of such a condition are of no use here: only its coming and going is news.
    fn is_known(&self, scope: Scope, found: &[ReportedCondition]) -> bool {
        let same = |a: &ReportedCondition, b: &ReportedCondition| a.identity() == b.identity();
        self.found.get(&scope).is_some_and(|known| {
            known.len() == found.len() && known.iter().zip(found).all(|(a, b)| same(a, b))
        })
    }

    fn backup(&self) -> BackupState {
        self.backup.as_ref().map(BackupWatch::look).unwrap_or_default()
    }

    fn disk(&self) -> Option<DiskRoom> {
        let space = rustix::fs::statvfs(&self.folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Some(DiskRoom { free: bytes(space.f_bavail), total: bytes(space.f_blocks) })
    }
}
