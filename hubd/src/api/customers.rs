//! `/v1/customers`: listing, adding, changing and removing customers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::customer::{CustomerChange, CustomerView, NewCustomer};
use holdfast_protocol::id::CustomerId;
use holdfast_protocol::json;
use holdfast_protocol::operator::{Page, Role};
use net::server::Answer;

use super::auth::Operator;
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::PAGE_MAX;

/// Notes, labels and an address, with room for escapes.
const CUSTOMER_BYTES_MAX: usize = 32 * 1024;

/// The methods of one customer.
pub(super) fn one() -> MethodRouter<Arc<Hub>> {
    get(show).patch(change).delete(remove)
}

fn etag(view: &CustomerView) -> [(HeaderName, HeaderValue); 1] {
    // A number in quotes is always a header value.
    let value = HeaderValue::from_str(&format!("\"{}\"", view.version));
    [(header::ETAG, value.unwrap_or(HeaderValue::from_static("\"0\"")))]
}

/// The version in `If-Match`.
fn seen(headers: &HeaderMap) -> Result<u64, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        let says = "a customer is changed with If-Match, the ETag of the one that you read";
        return Err(ApiError::new(ErrorCode::PreconditionRequired, says));
    };
    let text = value.to_str().unwrap_or_default();
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| {
        ApiError::new(ErrorCode::Range, "If-Match is the ETag of a customer, a number in quotes")
    })
}

fn customer_id(text: &str) -> Result<CustomerId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("customer"))
}

/// What the caller may see: a customer does not see what the provider notes.
fn seen_by(operator: &Operator, mut view: CustomerView) -> CustomerView {
    if operator.grant.role() == Role::Customer {
        view.fields.notes = None;
    }
    view
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<CustomerView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let after = query.cursor()?.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let all = hub.store.customers_within(operator.scope(), None, after, limit + 1).await?;
    let Page { items, next } = page(all, limit, |last| last.name.to_string());
    let items = items.into_iter().map(|view| seen_by(&operator, view)).collect();
    Ok(Answer(StatusCode::OK, Page { items, next }))
}

async fn show(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    Path(customer): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let view = one_view(&hub, &operator, &customer).await?;
    Ok((etag(&view), Answer(StatusCode::OK, view)))
}

/// A customer as the caller may see it.
pub(super) async fn one_view(
    hub: &Hub,
    operator: &Operator,
    customer: &str,
) -> Result<CustomerView, ApiError> {
    let only = Some(customer_id(customer)?);
    let found = hub.store.customers_within(operator.scope(), only, None, 1).await?.pop();
    Ok(seen_by(operator, found.ok_or_else(|| ApiError::not_found("customer"))?))
}

pub(super) async fn add(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<impl IntoResponse, ApiError> {
    let bytes = body::read("the customer", body, CUSTOMER_BYTES_MAX).await?;
    let new: NewCustomer = json::parse("the customer", &bytes, CUSTOMER_BYTES_MAX)?;
    let view = hub.store.add_customer(head.by(&hub, &bytes)?, new).await?;
    Ok((etag(&view), Answer(StatusCode::CREATED, view)))
}

async fn change(
    State(hub): State<Arc<Hub>>,
    Path(customer): Path<String>,
    headers: HeaderMap,
    head: Head,
    body: Body,
) -> Result<impl IntoResponse, ApiError> {
    let version = seen(&headers)?;
    let bytes = body::read("the change", body, CUSTOMER_BYTES_MAX).await?;
    let change: CustomerChange = json::parse("the change", &bytes, CUSTOMER_BYTES_MAX)?;
    let by = head.by(&hub, &bytes)?;
    let view = hub.store.change_customer(by, customer_id(&customer)?, version, change).await?;
    Ok((etag(&view), Answer(StatusCode::OK, view)))
}

async fn remove(
    State(hub): State<Arc<Hub>>,
    Path(customer): Path<String>,
    headers: HeaderMap,
    head: Head,
    body: Body,
) -> Result<Answer<CustomerView>, ApiError> {
    let version = seen(&headers)?;
    let bytes = body::read("the removal", body, EMPTY_BODY_MAX).await?;
    let by = head.by(&hub, &bytes)?;
    Ok(Answer(StatusCode::OK, hub.store.remove_customer(by, customer_id(&customer)?, version).await?))
}
