//! The daily check of the hub's database.
//!
//! In: the database. Out: whether it is whole, for the hub's own conditions. A check reads every page, so it runs beside all
//! readers and delays no write. A check that cannot run says nothing: an engine that fails is in the log and at `/readyz`.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use tokio::sync::watch;

use super::{Rest, rest};
use crate::clock::Clock;
use crate::domain::alerting::own::DatabaseState;
use crate::store::SharedStore;

/// After a start others need the disk first.
const FIRST_AFTER: Duration = Duration::from_secs(600);

const EVERY: Duration = Duration::from_secs(24 * 3600);

/// Checks until `stop`.
pub async fn run(
    store: SharedStore,
    clock: Arc<dyn Clock>,
    state: watch::Sender<DatabaseState>,
    mut stop: watch::Receiver<bool>,
) {
    let mut wait = FIRST_AFTER;
    while rest(&mut stop, wait).await == Rest::Over {
        wait = EVERY;
        match store.check_database().await {
            Ok(faults) => {
                let now = clock.now();
                state.send_modify(|state| *state = DatabaseState::after(state, faults, now));
            }
            Err(error) => {
                tracing::error!(action = "check_database", result = "failed", error = %chain(&error));
            }
        }
    }
}
