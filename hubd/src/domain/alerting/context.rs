//! Rules and listening time of the alert engine.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use alerts::{Ruleset, Setting, Silence};
use holdfast_protocol::id::{CustomerId, HostName};
use jiff::Timestamp;

/// The rules, and since when the hub listens. Shared by all parts of the hub.
#[derive(Clone, Debug)]
pub struct AlertContext {
    rules: Arc<RwLock<Arc<Ruleset>>>,
    listening_since_ms: Arc<AtomicI64>,
}

/// The rules of one decision. Rules that are read meanwhile do not change it.
#[derive(Clone, Debug)]
pub struct RulesInForce {
    rules: Arc<Ruleset>,
    listening_since: Timestamp,
}

/// The host of a scope; nothing for the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOfScope {
    pub name: Option<HostName>,
    /// The customer of all its guests, where they are of one.
    pub customer: Option<CustomerId>,
}

impl AlertContext {
    /// Of a hub that starts now.
    #[must_use]
    pub fn new(rules: Ruleset, now: Timestamp) -> Self {
        let rules = Arc::new(RwLock::new(Arc::new(rules)));
        Self { rules, listening_since_ms: Arc::new(AtomicI64::new(now.as_millisecond())) }
    }

    /// The default rules without a channel, for a program that only changes operators.
    #[must_use]
    pub fn without_channels(now: Timestamp) -> Self {
        Self::new(Ruleset::without_channels(), now)
    }

    /// The checked rules, as they are now.
    #[must_use]
    pub fn rules(&self) -> Arc<Ruleset> {
        // A thread that panicked left one whole value behind, the old or the new.
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the rules for all decisions from now on.
    pub fn use_rules(&self, rules: Ruleset) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// What a decision of this moment needs.
    #[must_use]
    pub fn in_force(&self) -> RulesInForce {
        RulesInForce { rules: self.rules(), listening_since: self.listening_since() }
    }

    /// Since when the hub listens without a gap.
    #[must_use]
    pub fn listening_since(&self) -> Timestamp {
        let since = self.listening_since_ms.load(Ordering::Relaxed);
        Timestamp::from_millisecond(since).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Writes down since when the hub listens.
    pub fn listens_since(&self, since: Timestamp) {
        self.listening_since_ms.store(since.as_millisecond(), Ordering::Relaxed);
    }
}

impl RulesInForce {
    /// What a decision depends on besides the state.
    #[must_use]
    pub fn setting<'a>(&'a self, silences: &'a [Silence], host: &'a HostOfScope) -> Setting<'a> {
        let listening_since = self.listening_since;
        let (host, customer) = (host.name.as_ref(), host.customer.as_ref());
        Setting { rules: &self.rules, silences, host, customer, listening_since }
    }
}
