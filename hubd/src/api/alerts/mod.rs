//! Alerts: what operators read of the engine, and request from it.
//!
//! | module | calls |
//! | --- | --- |
//! | [`incidents`] | `/v1/alerts`, `/v1/alerts/{id}…` |
//! | [`log`] | `/v1/alerts/log` |
//! | [`explain`] | `/v1/alerts/explain` |
//! | [`silences`] | `/v1/silences…` |
//! | [`maintenance`] | `/v1/hosts/{host}/maintenance…` |
//! | [`receivers`] | `/v1/receivers…`, `/v1/deliveries` |
//! | [`view`], [`sentence`] | the engine's types as wire types and as sentences |

mod explain;
pub(super) mod incidents;
pub(super) mod log;
mod maintenance;
pub(super) mod receivers;
mod sentence;
mod settings_files;
pub(super) mod silences;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use holdfast_protocol::code::ErrorCode;
use jiff::{SignedDuration, Timestamp};

pub(super) use incidents::firing;
pub use receivers::{ConfiguredReceiver, ConfiguredReceivers};
pub use settings_files::SettingsFiles;

use super::Hub;
use super::problem::ApiError;

/// Requests about alerts are short.
const BODY_MAX: usize = 16 * 1024;

/// A mute lasts at most so long. What is to be mute for longer is a rule in `hub.toml`.
const MUTED_FOR_MAX: SignedDuration = SignedDuration::from_hours(90 * 24);

pub(super) fn routes() -> Router<Arc<Hub>> {
    Router::new()
        .route("/v1/alerts", get(incidents::list))
        .route("/v1/alerts/log", get(log::list))
        .route("/v1/alerts/explain", post(explain::explain))
        .route("/v1/alerts/{id}", get(incidents::show))
        .route("/v1/alerts/{id}/acknowledge", post(incidents::acknowledge))
        .route("/v1/alerts/{id}/unacknowledge", post(incidents::unacknowledge))
        .route("/v1/silences", get(silences::list).post(silences::add))
        .route("/v1/silences/{id}/end", post(silences::end))
        .route("/v1/hosts/{host}/maintenance", post(maintenance::announce))
        .route("/v1/hosts/{host}/maintenance/end", post(maintenance::end))
        .route("/v1/receivers", get(receivers::list))
        .route("/v1/receivers/{name}/test", post(receivers::test))
        .route("/v1/deliveries", get(receivers::deliveries))
}

/// Checks that a mute ends in time: after now, and not too far ahead.
fn check_end(until: Timestamp, now: Timestamp) -> Result<(), ApiError> {
    let left = until.duration_since(now);
    let problem = if left <= SignedDuration::ZERO {
        format!("it would end at {until:.0}, which is over: give a later time")
    } else if left > MUTED_FOR_MAX {
        let days = MUTED_FOR_MAX.as_hours() / 24;
        format!("it would end in more than {days} days: give an earlier time, or write a rule in hub.toml")
    } else {
        return Ok(());
    };
    Err(ApiError::new(ErrorCode::Range, problem))
}
