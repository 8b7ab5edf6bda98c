//! `/v1/hosts/{host}/maintenance`: announcing and ending work on a host.

use std::sync::Arc;

use alerts::signal::Maintenance;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::alert::{MaintenanceRequest, MaintenanceView, MaintenanceWindow};
use holdfast_protocol::json;
use net::server::Answer;

use super::{BODY_MAX, check_end};
use crate::api::hosts::{EMPTY_BODY_MAX, host_ref};
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::store::AnnouncedEnd;

pub(super) async fn announce(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<MaintenanceView>, ApiError> {
    let bytes = body::read("the announcement", body, BODY_MAX).await?;
    let MaintenanceRequest { until, reason } = json::parse("the announcement", &bytes, BODY_MAX)?;
    check_end(until, hub.clock.now())?;
    change(&hub, &host, head, &bytes, Some(AnnouncedEnd { until, reason })).await
}

pub(super) async fn end(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<MaintenanceView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    change(&hub, &host, head, &bytes, None).await
}

async fn change(
    hub: &Hub,
    host: &str,
    head: Head,
    bytes: &[u8],
    announced: Option<AnnouncedEnd>,
) -> Result<Answer<MaintenanceView>, ApiError> {
    let changed = hub.store.set_maintenance(head.by(hub, bytes)?, host_ref(host)?, announced).await?;
    let changed = changed.ok_or_else(|| ApiError::not_found("host"))?;
    // Its agent hears of it at once.
    hub.long_polls.wake(changed.id);
    let windows = changed.windows.into_iter().map(window).collect();
    Ok(Answer(StatusCode::OK, MaintenanceView { host: changed.host, windows }))
}

fn window(window: Maintenance) -> MaintenanceWindow {
    let Maintenance { from, until, by } = window;
    MaintenanceWindow { from, until, by }
}
