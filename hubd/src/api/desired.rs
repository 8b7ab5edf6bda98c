//! `GET` and `PUT /v1/hosts/{id or name}/desired`, its versions, and their differences.

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
use holdfast_protocol::resource::diff::PromisesInForce;
use holdfast_protocol::resource::requests::{ChangeAnswer, RollbackRequest};
use holdfast_protocol::resource::{DocumentDiff, diff};
use net::server::Answer;
use serde::Deserialize;

use super::auth::Operator;
use super::document_change::{Basis, DryRunQuery, Outcome, parsed, put_or_judge, version_of};
use super::hosts::host_ref;
use super::mutation::Head;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::domain::desired::IfMatch;
use crate::store::Put;

/// The body holds the document as text: quotes and line ends take two bytes each.
const PUT_BODY_MAX: usize = 2 * DOCUMENT_BYTES_MAX + 64 * 1024;

/// A generation and a reason, with room for white space.
const ROLLBACK_BODY_MAX: usize = 4 * 1024;

/// Each version may be 1 MiB.
const HISTORY_PAGE_MAX: u32 = 20;

pub(super) fn etag(generation: Generation) -> [(HeaderName, HeaderValue); 1] {
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

pub(super) fn seen(headers: &HeaderMap) -> Result<IfMatch, ApiError> {
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
    CheckedQuery(query): CheckedQuery<DryRunQuery>,
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
    let mode = query.mode();
    let outcome = put_or_judge(&hub, (head, &bytes), put, mode).await?;
    drop(bytes);
    Ok(version_answer(outcome))
}

/// A version that was put, or what it would do.
fn version_answer(outcome: Outcome) -> impl IntoResponse {
    match outcome {
        Outcome::Put(done) => {
            let tag = etag(done.version.generation);
            (Some(tag), Answer(StatusCode::OK, ChangeAnswer::Made(done.version)))
        }
        Outcome::Judged(preview) => (None, Answer(StatusCode::OK, ChangeAnswer::Preview(preview))),
    }
}

/// A number in a path or query that is no generation names no version.
fn generation(text: &str) -> Result<Generation, ApiError> {
    text.parse().map(Generation::new).map_err(|_| ApiError::not_found("version"))
}

pub(super) async fn version(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path((host, number)): Path<(String, String)>,
) -> Result<Answer<DesiredVersion>, ApiError> {
    let found = version_of(&hub, &host_ref(&host)?, generation(&number)?).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(|| ApiError::not_found("version"))?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffQuery {
    from: Option<u64>,
    to: Option<u64>,
}

/// From the version before the newest to the newest, where the query does not say it.
pub(super) async fn difference(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
    CheckedQuery(query): CheckedQuery<DiffQuery>,
) -> Result<Answer<DocumentDiff>, ApiError> {
    let host = host_ref(&host)?;
    let missing = || ApiError::not_found("version");
    let newest = hub.store.desired(host.clone()).await?.ok_or_else(|| ApiError::not_found("host"))?;
    let newest = newest.map_or(Generation::NONE, |version| version.generation);
    let to = query.to.map_or(newest, Generation::new);
    let later = version_of(&hub, &host, to).await?.ok_or_else(missing)?;
    let earlier = match query.from {
        Some(0) => None,
        Some(from) => Some(version_of(&hub, &host, Generation::new(from)).await?.ok_or_else(missing)?),
        None => hub
            .store
            .desired_history(host.clone(), Some(to), 1)
            .await?
            .and_then(|list| list.into_iter().next()),
    };
    let later = parsed(&later)?;
    let earlier = earlier.as_ref().map(parsed).transpose()?;
    let earlier = earlier.as_ref().map(Desired::document);
    Ok(Answer(StatusCode::OK, diff(earlier, later.document(), &PromisesInForce::new())))
}

/// An earlier content, put as the next generation with all checks of a document.
pub(super) async fn roll_back(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    headers: HeaderMap,
    head: Head,
    CheckedQuery(query): CheckedQuery<DryRunQuery>,
    body: Body,
) -> Result<impl IntoResponse, ApiError> {
    let seen = seen(&headers)?;
    let bytes = body::read("the rollback", body, ROLLBACK_BODY_MAX).await?;
    let request: RollbackRequest = json::parse("the rollback", &bytes, ROLLBACK_BODY_MAX)?;
    let basis = Basis::read(&hub, host_ref(&host)?, seen).await?;
    let earlier = version_of(&hub, &basis.host, request.to).await?;
    let earlier = parsed(&earlier.ok_or_else(|| ApiError::not_found("version"))?)?;
    let put = basis.put(request.reason, earlier.document().clone())?;
    let mode = query.mode();
    Ok(version_answer(put_or_judge(&hub, (head, &bytes), put, mode).await?))
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
