//! Use, records and orders for the pages of hosts and guests.
//!
//! In: a person who may see the page. Out: use, audit records, work orders and the restore certificate, each by its own call
//! and only where that call is answered to the person. Deliberately absent: how any of it looks.

use std::sync::Arc;

use axum::extract::{Path, State};
use holdfast_protocol::guest_audit::GuestAuditView;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{UsageSeries, UsageSpan};
use holdfast_protocol::work_order::WorkOrderView;
use hub_page::chart::ChartSpan;
use hub_page::guest::Certificate;
use hub_page::orders::ORDERS_SHOWN;
use net::server::Answer;
use uuid::Uuid;

use super::person::Person;
use crate::api::authorize::may_list;
use crate::api::hosts::host_ref;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::usage::SeriesQuery;
use crate::api::work_orders::OrderQuery;
use crate::api::{Hub, guest_audit, usage as usage_call, work_orders};

/// Orders of a host that are looked through for those of one guest.
const ORDERS_READ: u32 = 100;

/// What was chosen in the address.
pub(super) fn span(query: Option<&str>) -> ChartSpan {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(name, _)| name == "span").map_or(ChartSpan::default(), |(_, value)| ChartSpan::read(&value))
}

/// What makes the orders of one page one.
pub(super) fn once() -> String {
    Uuid::new_v4().to_string()
}

pub(super) async fn usage(
    hub: &Arc<Hub>,
    person: &Person,
    host: &str,
    guest: Option<&str>,
    span: UsageSpan,
) -> Result<Option<UsageSeries>, ApiError> {
    if !may_list(&person.operator, "/v1/hosts/{host}/usage") {
        return Ok(None);
    }
    let query = SeriesQuery { span: Some(span.as_str().to_owned()), guest: guest.map(str::to_owned) };
    let (state, operator) = (State(Arc::clone(hub)), person.operator.clone());
    let Answer(_, series) =
        usage_call::show(state, operator, Path(host.to_owned()), CheckedQuery(query)).await?;
    Ok(Some(series))
}

/// The newest orders of a host, or of one of its guests.
pub(super) async fn orders(
    hub: &Arc<Hub>,
    person: &Person,
    host: &str,
    guest: Option<GuestUid>,
) -> Result<Vec<WorkOrderView>, ApiError> {
    if !may_list(&person.operator, "/v1/hosts/{host}/work-orders") {
        return Ok(Vec::new());
    }
    let limit = if guest.is_some() { ORDERS_READ } else { ORDERS_SHOWN };
    let query = OrderQuery { limit: Some(limit), ..OrderQuery::default() };
    let (state, operator) = (State(Arc::clone(hub)), person.operator.clone());
    let Answer(_, found) =
        work_orders::list(state, operator, Path(host.to_owned()), CheckedQuery(query)).await?;
    let mut orders = found.items;
    orders.retain(|order| guest.is_none() || order.act.guest() == guest);
    orders.truncate(ORDERS_SHOWN as usize);
    Ok(orders)
}

pub(super) async fn audit(
    hub: &Arc<Hub>,
    person: &Person,
    host: &str,
    guest: &str,
) -> Result<Option<GuestAuditView>, ApiError> {
    if !may_list(&person.operator, "/v1/hosts/{host}/guests/{guest}/audit") {
        return Ok(None);
    }
    let path = Path((host.to_owned(), guest.to_owned()));
    let Answer(_, audit) = guest_audit::newest(State(Arc::clone(hub)), person.operator.clone(), path).await?;
    Ok(Some(audit))
}

pub(super) async fn certificate(
    hub: &Arc<Hub>,
    person: &Person,
    host: &str,
    guest: &str,
) -> Result<Certificate, ApiError> {
    if !may_list(&person.operator, "/v1/hosts/{host}/guests/{guest}/restore-certificate") {
        return Ok(Certificate::None);
    }
    let guest = guest.parse().map_err(|_| ApiError::not_found("guest"))?;
    let kept = hub.store.restore_certificate(host_ref(host)?, guest).await?;
    Ok(if kept.is_some() { Certificate::Kept } else { Certificate::None })
}
