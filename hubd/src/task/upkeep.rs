//! Hourly maintenance: retention, and renewal of the listener certificate.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use tokio::sync::watch;

use super::{Rest, log_failure, rest};
use crate::authority::{Authority, ServerCertificate};
use crate::clock::Clock;
use crate::store::{Lease, SharedStore, StoreError, Term, Thinned, duty};

const EVERY: Duration = Duration::from_secs(3600);

/// The parts that need upkeep.
pub struct Upkeep {
    /// The store.
    pub store: SharedStore,
    /// Of what is done once for all hubs.
    pub lease: Lease<duty::Upkeep>,
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
pub async fn thin_usage(
    store: &SharedStore,
    term: &Term<duty::Upkeep>,
    bytes_max: u64,
) -> Result<(), StoreError> {
    for thinned in 0..THINNED_HOURS_MAX {
        if store.thin_usage(term, bytes_max).await? == Thinned::Nothing {
            if thinned > 0 {
                tracing::info!(action = "thin_usage", result = "ok", hours = thinned);
            }
            return Ok(());
        }
    }
    tracing::warn!(action = "thin_usage", result = "unfinished", hours = THINNED_HOURS_MAX);
    Ok(())
}

async fn remove_old(upkeep: &Upkeep, term: &Term<duty::Upkeep>, now: Timestamp) {
    if let Err(error) = upkeep.store.prune(term, now).await {
        log_failure("prune", &error);
    }
    if let Err(error) = thin_usage(&upkeep.store, term, upkeep.usage_bytes_max).await {
        log_failure("thin_usage", &error);
    }
}

/// Runs until `stop`. What fails is logged and repeated in an hour.
pub async fn run(upkeep: Upkeep, mut stop: watch::Receiver<bool>) {
    while rest(&mut stop, EVERY).await == Rest::Over {
        let now = upkeep.clock.now();
        if let Some(term) = upkeep.lease.term() {
            remove_old(&upkeep, &term, now).await;
        }
        // Each hub has a certificate of its own.
        let renewed = upkeep.certificate.renew_when_due(&upkeep.authority, &upkeep.provider, now);
        if let Err(error) = renewed {
            tracing::error!(action = "renew_own_certificate", result = "failed", error = %chain(&error));
        }
    }
}
