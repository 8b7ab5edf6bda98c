//! New rules and receivers of alerts without a restart.
//!
//! In: requests to read the settings again, which the program makes of SIGHUP. Out: rules and receivers of all parts of
//! the hub, or nothing: settings that are refused change nothing, and are a condition of the hub until good ones are
//! read. Everything else in `hub.toml` is read at the start alone.

use std::sync::Arc;

use alerts::Ruleset;
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::json::chain;
use tokio::sync::{mpsc, watch};

use super::delivery::ReceiverSet;
use crate::api::ConfiguredReceivers;
use crate::clock::Clock;
use crate::domain::alerting::AlertContext;
use crate::domain::alerting::own::SettingsState;
use crate::store::SharedStore;

/// Why settings are refused.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// What is read again.
#[derive(Clone, Debug)]
pub struct AlertChannels {
    /// The rules, checked against the receivers.
    pub rules: Ruleset,
    pub set: ReceiverSet,
}

/// Where the settings come from, and who asks for them to be read again.
pub struct ReloadSource {
    pub read: Box<dyn Fn() -> Result<AlertChannels, Refusal> + Send + Sync>,
    pub requests: mpsc::Receiver<()>,
}

/// What takes the new settings.
pub struct Reload {
    pub store: SharedStore,
    pub clock: Arc<dyn Clock>,
    pub alerts: AlertContext,
    /// For deliveries.
    pub channels: watch::Sender<ReceiverSet>,
    /// For operators.
    pub configured: watch::Sender<ConfiguredReceivers>,
    /// For the hub's own conditions.
    pub state: watch::Sender<SettingsState>,
}

impl Reload {
    /// Reads the settings again at each request, until `stop`.
    pub async fn run(self, mut source: ReloadSource, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                asked = source.requests.recv() => if asked.is_none() { return },
            }
            match (source.read)() {
                Ok(channels) => self.take(channels).await,
                Err(refusal) => self.refuse(refusal.as_ref()),
            }
        }
    }

    async fn take(&self, new: AlertChannels) {
        let names = |set: &ReceiverSet| set.receivers().iter().map(|one| one.name.clone()).collect();
        let before: Vec<ReceiverName> = names(&self.channels.borrow());
        let after: Vec<ReceiverName> = names(&new.set);
        // The channels first: a notice for a new receiver is never without its channel.
        self.configured.send_replace(new.set.configured(self.clock.now()));
        self.channels.send_replace(new.set);
        self.alerts.use_rules(new.rules);
        self.state.send_replace(SettingsState::InForce);
        let list = |names: Vec<&ReceiverName>| {
            names.into_iter().map(ReceiverName::as_str).collect::<Vec<_>>().join(", ")
        };
        let added = list(after.iter().filter(|name| !before.contains(name)).collect());
        let removed = list(before.iter().filter(|name| !after.contains(name)).collect());
        tracing::info!(action = "reload", result = "ok", receivers = after.len(), added, removed);
        // Times of the new rules count from now on, and not only when the old ones are over.
        if let Err(error) = self.store.wake_alerts(self.clock.now()).await {
            tracing::error!(action = "reload", result = "failed", error = %chain(&error));
        }
    }

    fn refuse(&self, refusal: &(dyn std::error::Error + Send + Sync + 'static)) {
        let why = chain(refusal);
        tracing::error!(action = "reload", result = "refused", error = %why);
        let now = self.clock.now();
        self.state.send_modify(|state| *state = SettingsState::refused(state, why, now));
    }
}
