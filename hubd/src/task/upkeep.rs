//! Hourly maintenance: retention, and renewal of the listener certificate.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use rustls::crypto::CryptoProvider;
use tokio::sync::watch;

use super::{Rest, rest};
use crate::authority::{Authority, ServerCertificate};
use crate::clock::Clock;
use crate::store::SharedStore;

const EVERY: Duration = Duration::from_secs(3600);

/// The parts that need upkeep.
pub struct Upkeep {
    /// The store.
    pub store: SharedStore,
    pub authority: Arc<Authority>,
    /// The listener's certificate.
    pub certificate: Arc<ServerCertificate>,
    /// The TLS library's cryptography.
    pub provider: Arc<CryptoProvider>,
    pub clock: Arc<dyn Clock>,
}

/// Runs until `stop`. What fails is logged and repeated in an hour.
pub async fn run(upkeep: Upkeep, mut stop: watch::Receiver<bool>) {
    while rest(&mut stop, EVERY).await == Rest::Over {
        let now = upkeep.clock.now();
        if let Err(error) = upkeep.store.prune(now).await {
            tracing::error!(action = "prune", result = "failed", error = %chain(&error));
        }
        let renewed = upkeep.certificate.renew_when_due(&upkeep.authority, &upkeep.provider, now);
        if let Err(error) = renewed {
            tracing::error!(action = "renew_own_certificate", result = "failed", error = %chain(&error));
        }
    }
}
