//! Pings of the external watcher: who watches the hub.
//!
//! The watcher raises the alarm when pings stay away. A ping of success means that the database takes writes, so a hub
//! that runs and cannot do its work is noticed too.

use std::time::Duration;

use holdfast_protocol::json::chain;
use notify::url::SecretUrl;
use notify::{EgressPolicy, Ping, Sender};
use tokio::sync::watch;

use super::{Rest, rest};
use crate::store::SharedStore;

/// The external watcher of the hub.
#[derive(Clone, Debug)]
pub struct WatcherSettings {
    pub url: SecretUrl,
    pub every_s: u32,
}

/// Pings until `stop`. A ping that fails is logged, and the next one comes in its time.
pub async fn run(
    settings: WatcherSettings,
    reach: EgressPolicy,
    store: SharedStore,
    mut stop: watch::Receiver<bool>,
) {
    let sender = Sender::new(reach);
    let every = Duration::from_secs(settings.every_s.into());
    let mut ping = Ping::Start;
    loop {
        if let Err(error) = sender.ping(&ping, &settings.url).await {
            tracing::warn!(action = "ping", result = "failed", error = %chain(&error));
        }
        // The first success follows the start at once, so that a wrong address is noticed at the start.
        if ping != Ping::Start && rest(&mut stop, every).await == Rest::Stop {
            return;
        }
        ping = match store.ready().await {
            Ok(()) => Ping::Success,
            Err(error) => Ping::Fail { why: chain(&error) },
        };
    }
}
