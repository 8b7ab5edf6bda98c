//! `GET` and `PUT /v1/hosts/{id or name}/desired`, and its history.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DOCUMENT_BYTES_MAX, Desired};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::json;
use holdfast_protocol::operator::{DesiredPut, DesiredVersion, Page};
use net::server::Answer;

use super::auth::Operator;
use super::hosts::host_ref;
use super::mutation::Head;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::domain::desired::IfMatch;
use crate::store::Put;

/// The body holds the document as text: quotes and line ends take two bytes each.
const PUT_BODY_MAX: usize = 2 * DOCUMENT_BYTES_MAX + 64 * 1024;

/// Each version may be 1 MiB.
const HISTORY_PAGE_MAX: u32 = 20;

fn etag(generation: Generation) -> [(HeaderName, HeaderValue); 1] {
    // A number in quotes is always a header value.
    let value = HeaderValue::from_str(&format!("\"{generation}\""));
    [(header::ETAG, value.unwrap_or(HeaderValue::from_static("\"0\"")))]
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let found = hub.store.desired(host_ref(&host)?).await?;
    let version = found.ok_or_else(|| ApiError::not_found("host"))?;
    let version = version.ok_or_else(|| {
        ApiError::new(
            ErrorCode::NotFound,
            "this host has no desired document yet: put one with If-Match: \"0\"",
        )
    })?;
    Ok((etag(version.generation), Answer(StatusCode::OK, version)))
}

fn seen(headers: &HeaderMap) -> Result<IfMatch, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        let message =
            "a document is put with If-Match, the ETag of the one you changed, or \"0\" for the first";
        return Err(ApiError::new(ErrorCode::PreconditionRequired, message));
    };
    let text = value.to_str().unwrap_or_default();
    text.parse().map_err(|error: crate::domain::desired::IfMatchError| {
        ApiError::new(ErrorCode::Range, error.to_string())
    })
}

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    headers: HeaderMap,
    head: Head,
    body: Body,
) -> Result<impl IntoResponse, ApiError> {
    let seen = seen(&headers)?;
    let bytes = body::read("the desired document's request", body, PUT_BODY_MAX).await?;
    let request: DesiredPut = json::parse("the desired document's request", &bytes, PUT_BODY_MAX)?;
    let put = Put {
        host: host_ref(&host)?,
        seen,
        reason: request.reason,
        desired: Desired::parse(request.document.as_bytes())?,
        text: request.document,
    };
    let by = head.by(&hub, &bytes)?;
    drop(bytes);
    let done = hub.store.put_desired(by, put).await?.ok_or_else(|| ApiError::not_found("host"))?;
    hub.long_polls.wake(done.host);
    Ok((etag(done.version.generation), Answer(StatusCode::OK, done.version)))
}

pub(super) async fn history(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<DesiredVersion>>, ApiError> {
    let limit = query.limit(HISTORY_PAGE_MAX)?;
    let before = query.cursor()?.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let versions =
        hub.store.desired_history(host_ref(&host)?, before.map(Generation::new), limit + 1).await?;
    let versions = versions.ok_or_else(|| ApiError::not_found("host"))?;
    Ok(Answer(StatusCode::OK, page(versions, limit, |last| last.generation.to_string())))
}
