//! Files of releases: uploads by operators, downloads by hosts.
//!
//! `PUT /v1/artifacts/{sha256}` and `GET /v1/agent/artifacts/{sha256}`, of which a host may ask for a part.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::ArtifactView;
use http_body_util::BodyExt as _;
use net::server::body::BodyError;
use net::server::{Answer, Ids, as_it_is};
use serde::Deserialize;

use super::auth::{Agent, Operator};
use super::file_body::FileBody;
use super::page::CheckedQuery;
use super::problem::ApiError;
use super::{Hub, since_epoch, too_often};
use crate::artifacts::{ArtifactError, Begun, Upload};
use crate::domain::byte_range::ByteRange;
use crate::store::AskingHost;

/// How long an upload may be silent.
const FRAME_WAIT: Duration = Duration::from_secs(30);

/// How long one request may write; the next goes on.
const UPLOAD_WAIT: Duration = Duration::from_secs(600);

/// Bytes that are collected before they are written.
const BATCH_BYTES: usize = 1024 * 1024;

/// What a cut body was.
const WHAT: &str = "the file";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OffsetQuery {
    #[serde(default)]
    offset: u64,
}

/// A text that is no digest names no file.
fn digest(text: String) -> Result<Sha256Text, ApiError> {
    Sha256Text::try_from(text).map_err(|_| ApiError::not_found("file of a release"))
}

fn unnamed() -> ApiError {
    let says = "no release here names this file, and nothing was kept: leave the signed release first, with \
                `holdfast release upload`";
    ApiError::new(ErrorCode::NotFound, says)
}

/// Runs work on the disk where it delays no other request.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| ApiError::internal(error.to_string()))??)
}

/// The host that asks, unless it asks too often.
pub(super) fn paced(hub: &Hub, Agent(presented): Agent, ids: Ids) -> Result<AskingHost, ApiError> {
    let at = hub.clock.now();
    let paced = hub.rates.artifacts.take(presented.host, since_epoch(at));
    paced.map_err(|often| too_often("this host has asked for files of releases often", often))?;
    Ok(AskingHost { presented, at, correlation: ids.correlation })
}

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(named): Path<String>,
    CheckedQuery(query): CheckedQuery<OffsetQuery>,
    body: Body,
) -> Result<Answer<ArtifactView>, ApiError> {
    let digest = digest(named)?;
    let Ok(_slot) = hub.concurrency.uploads.try_acquire() else {
        let says = "as many files are uploaded as at once are possible: run the command again in a minute";
        return Err(ApiError::new(ErrorCode::Busy, says));
    };
    let size = hub.store.artifact_size(digest.clone()).await?.ok_or_else(unnamed)?;
    let (folder, wanted) = (Arc::clone(&hub.artifacts), digest.clone());
    let view = match blocking(move || folder.begin(&wanted, size, query.offset)).await? {
        Begun::Complete(view) => view,
        Begun::Upload(upload) => {
            let received = tokio::time::timeout(UPLOAD_WAIT, receive(upload, body)).await;
            let slow = || BodyError::Slow { what: WHAT, seconds: UPLOAD_WAIT.as_secs() };
            let upload = received.map_err(|_| slow())??;
            blocking(move || upload.end()).await?
        }
    };
    // Its release may have been deleted meanwhile, and what removed the other files left this one alone.
    let _order = hub.release_order.lock().await;
    let named = hub.store.named_artifacts().await?;
    if !named.contains(&digest) {
        let folder = Arc::clone(&hub.artifacts);
        blocking(move || folder.keep_only(&named)).await?;
        return Err(unnamed());
    }
    Ok(Answer(StatusCode::OK, view))
}

/// Writes a body as it comes. What came before it was cut off stays.
async fn receive(mut upload: Upload, mut body: Body) -> Result<Upload, ApiError> {
    let mut batch = BytesMut::new();
    loop {
        let frame = match tokio::time::timeout(FRAME_WAIT, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return write(upload, batch.freeze()).await,
            Ok(Some(Err(_))) => {
                write(upload, batch.freeze()).await?;
                return Err(BodyError::CutOff { what: WHAT }.into());
            }
            Err(_) => {
                write(upload, batch.freeze()).await?;
                return Err(BodyError::Slow { what: WHAT, seconds: FRAME_WAIT.as_secs() }.into());
            }
        };
        if let Ok(data) = frame.into_data() {
            batch.extend_from_slice(&data);
        }
        if batch.len() >= BATCH_BYTES {
            upload = write(upload, batch.split().freeze()).await?;
        }
    }
}

async fn write(mut upload: Upload, bytes: Bytes) -> Result<Upload, ApiError> {
    blocking(move || upload.write(&bytes).map(|()| upload)).await
}

pub(super) async fn read(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    headers: HeaderMap,
    Path(named): Path<String>,
) -> Result<Response, ApiError> {
    let host = paced(&hub, agent, ids)?;
    let digest = digest(named)?;
    let found = hub.store.artifact_size_for_host(host, digest.clone()).await?;
    let size = found.ok_or_else(|| ApiError::not_found("file of a release"))?;
    let range = headers.get(header::RANGE).map(|value| {
        let text = value.to_str().unwrap_or_default();
        ByteRange::parse(text, size).map_err(|error| ApiError::new(ErrorCode::Range, error.to_string()))
    });
    let range = range.transpose()?;
    let slot = hub.downloads.take(host.presented.host).ok_or_else(|| {
        let says = "this host fetches as many files as one may at once: ask again when one has ended";
        ApiError::new(ErrorCode::RateLimited, says)
    })?;
    let (folder, wanted) = (Arc::clone(&hub.artifacts), digest.clone());
    let file = blocking(move || folder.read(&wanted)).await?;
    let file = file.ok_or_else(|| {
        let says =
            "this file of a release is not at this hub yet: ask again, since another hub may have it; an operator uploads it \
             to each hub with `holdfast release upload`";
        ApiError::new(ErrorCode::NotFound, says)
    })?;
    let part = range.unwrap_or(ByteRange { first: 0, last: size.saturating_sub(1) });
    let body = FileBody::new(file, part, slot).await;
    let body = body.map_err(|source| ArtifactError::Disk { verb: "read", source })?;
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(part.length()));
    if range.is_some() {
        let text = format!("bytes {}-{}/{size}", part.first, part.last);
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(header::CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(as_it_is(response))
}
