//! Hourly maintenance: retention, and renewal of the listener certificate.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use rustls::crypto::CryptoProvider;
use tokio::sync::watch;

use super::{Rest, rest};
use crate::authority::{Authority, ServerCertificate};
use crate::clock::Clock;
use crate::store::{SharedStore, StoreError, Thinned};

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
    /// Bytes of kept use, at most.
    pub usage_bytes_max: u64,
}

/// Hours of kept use that are removed in one go: a month. More waits for the next one, so that nothing else waits long.
const THINNED_HOURS_MAX: u32 = 31 * 24;

/// Removes the oldest use until the bound is kept, each hour in a transaction of its own.
///
/// # Errors
/// [`StoreError`].
pub async fn thin_usage(store: &SharedStore, bytes_max: u64) -> Result<(), StoreError> {
    for thinned in 0..THINNED_HOURS_MAX {
        if store.thin_usage(bytes_max).await? == Thinned::Nothing {
            if thinned > 0 {
                tracing::info!(action = "thin_usage", result = "ok", hours = thinned);
            }
            return Ok(());
        }
    }
    tracing::warn!(action = "thin_usage", result = "unfinished", hours = THINNED_HOURS_MAX);
    Ok(())
}

/// Runs until `stop`. What fails is logged and repeated in an hour.
pub async fn run(upkeep: Upkeep, mut stop: watch::Receiver<bool>) {
    while rest(&mut stop, EVERY).await == Rest::Over {
        let now = upkeep.clock.now();
        if let Err(error) = upkeep.store.prune(now).await {
            tracing::error!(action = "prune", result = "failed", error = %chain(&error));
        }
        if let Err(error) = thin_usage(&upkeep.store, upkeep.usage_bytes_max).await {
            tracing::error!(action = "thin_usage", result = "failed", error = %chain(&error));
        }
        let renewed = upkeep.certificate.renew_when_due(&upkeep.authority, &upkeep.provider, now);
        if let Err(error) = renewed {
            tracing::error!(action = "renew_own_certificate", result = "failed", error = %chain(&error));
        }
    }
}
