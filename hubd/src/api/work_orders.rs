//! `/v1/hosts/{id or name}/work-orders`: ordering, listing, reading and cancelling.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::id::WorkOrderId;
use holdfast_protocol::json;
use holdfast_protocol::operator::Page;
use holdfast_protocol::work_order::{
    LIFE_S, TEXT_BYTES_MAX, WorkOrderDetail, WorkOrderRequest, WorkOrderState, WorkOrderView,
};
use net::server::Answer;
use serde::Deserialize;
use uuid::Uuid;

use super::auth::Operator;
use super::hosts::{EMPTY_BODY_MAX, host_ref};
use super::mutation::Head;
use super::page::{CheckedQuery, bad_cursor, limit, open, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::{NewWorkOrder, PAGE_MAX, WorkOrderFilter};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderQuery {
    pub(super) limit: Option<u32>,
    pub(super) cursor: Option<String>,
    pub(super) state: Option<WorkOrderState>,
}

/// A text that is no id names no order.
fn order_id(text: &str) -> Result<WorkOrderId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("work order"))
}

pub(super) async fn make(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<WorkOrderView>, ApiError> {
    let bytes = body::read("the work order", body, TEXT_BYTES_MAX).await?;
    let request: WorkOrderRequest = json::parse("the work order", &bytes, TEXT_BYTES_MAX)?;
    let new = NewWorkOrder {
        host: host_ref(&host)?,
        id: WorkOrderId::new(Uuid::now_v7()),
        act: request.act,
        life_s: request.life_s.map_or(LIFE_S, |life| life.get()),
    };
    let done = hub.store.order_work(head.by(&hub, &bytes)?, new).await?;
    let done = done.ok_or_else(|| ApiError::not_found("host"))?;
    hub.long_polls.wake(done.host);
    Ok(Answer(StatusCode::CREATED, done.order))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
    CheckedQuery(query): CheckedQuery<OrderQuery>,
) -> Result<Answer<Page<WorkOrderView>>, ApiError> {
    let limit = limit(query.limit, PAGE_MAX)?;
    let cursor = query.cursor.as_deref().map(open).transpose()?;
    let before = cursor.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let filter = WorkOrderFilter { state: query.state, before };
    let orders = hub.store.work_orders(host_ref(&host)?, filter, limit + 1).await?;
    let orders = orders.ok_or_else(|| ApiError::not_found("host"))?;
    let Page { items, next } = page(orders, limit, |(number, _)| number.to_string());
    Ok(Answer(StatusCode::OK, Page { items: items.into_iter().map(|(_, order)| order).collect(), next }))
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path((host, order)): Path<(String, String)>,
) -> Result<Answer<WorkOrderDetail>, ApiError> {
    let found = hub.store.work_order(host_ref(&host)?, order_id(&order)?).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(|| ApiError::not_found("work order"))?))
}

pub(super) async fn cancel(
    State(hub): State<Arc<Hub>>,
    Path((host, order)): Path<(String, String)>,
    head: Head,
    body: Body,
) -> Result<Answer<WorkOrderView>, ApiError> {
    let bytes = body::read("the cancellation", body, EMPTY_BODY_MAX).await?;
    let by = head.by(&hub, &bytes)?;
    let done = hub.store.cancel_work_order(by, host_ref(&host)?, order_id(&order)?).await?;
    let done = done.ok_or_else(|| ApiError::not_found("work order"))?;
    hub.long_polls.wake(done.host);
    Ok(Answer(StatusCode::OK, done.order))
}
