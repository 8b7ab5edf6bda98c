//! Signed releases: left and deleted by operators, read by hosts.
//!
//! `/v1/releases`, `/v1/agent/releases/{version}` and `/v1/agent/artifacts/{sha256}/release`. The hub checks that a release has the form of one, and no signature.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::operator::Page;
use holdfast_protocol::release::stored::{ReleaseFileView, ReleaseText, ReleaseView};
use holdfast_protocol::release::{ReleaseManifest, SIGNED_RELEASE_BYTES_MAX, SignedRelease, VersionNumber};
use net::server::{Answer, Ids};

use super::artifacts::{blocking, paced};
use super::auth::{Agent, Operator};
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::artifacts::{ArtifactError, ArtifactFolder};
use crate::store::{NewRelease, ReleaseRecord};

/// A text that is no version names no release.
fn version(text: &str) -> Result<VersionNumber, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("release"))
}

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<ReleaseView>, ApiError> {
    let bytes = body::read("the signed release", body, SIGNED_RELEASE_BYTES_MAX).await?;
    let new = read(&bytes)?;
    if new.manifest.version.to_string() != named {
        let says = format!("the release is of version {}, and not {named:.32}", new.manifest.version);
        return Err(ApiError::new(ErrorCode::Range, says));
    }
    let by = head.by(&hub, &bytes)?;
    // A deletion that runs now would remove files that this release names.
    let _order = hub.release_order.lock().await;
    let record = hub.store.put_release(by, new, hub.artifacts.limits().bytes_max).await?;
    Ok(Answer(StatusCode::OK, view(&hub, record).await?))
}

fn read(bytes: &[u8]) -> Result<NewRelease, ApiError> {
    let release = SignedRelease::parse(bytes)?;
    let manifest = ReleaseManifest::parse(&release.manifest)?;
    let signatures = u32::try_from(release.signatures.len()).unwrap_or(u32::MAX);
    let signed = release.to_json().map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(NewRelease { manifest, manifest_sha256: Sha256Text::of(&release.manifest), signatures, signed })
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
) -> Result<Answer<Page<ReleaseView>>, ApiError> {
    let mut items = Vec::new();
    for record in hub.store.releases().await? {
        items.push(view(&hub, record).await?);
    }
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Path(named): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<ReleaseView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let (version, by) = (version(&named)?, head.by(&hub, &bytes)?);
    let _order = hub.release_order.lock().await;
    let record = hub.store.delete_release(by, version).await?;
    let record = record.ok_or_else(|| ApiError::not_found("release"))?;
    let gone = view(&hub, record).await?;
    let named = hub.store.named_artifacts().await?;
    let folder = Arc::clone(&hub.artifacts);
    blocking(move || folder.keep_only(&named)).await?;
    Ok(Answer(StatusCode::OK, gone))
}

pub(super) async fn for_agent(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    Path(named): Path<String>,
) -> Result<Answer<ReleaseText>, ApiError> {
    let host = paced(&hub, agent, ids)?;
    let found = hub.store.release_for_host(host, version(&named)?).await?;
    let signed = found.ok_or_else(|| ApiError::not_found("release"))?;
    Ok(Answer(StatusCode::OK, ReleaseText { signed }))
}

/// The release that names a file. A text that is no digest names none.
pub(super) async fn naming(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    Path(named): Path<String>,
) -> Result<Answer<ReleaseText>, ApiError> {
    let host = paced(&hub, agent, ids)?;
    let digest = Sha256Text::try_from(named).map_err(|_| ApiError::not_found("release"))?;
    let found = hub.store.naming_release_for_host(host, digest).await?;
    let signed = found.ok_or_else(|| ApiError::not_found("release"))?;
    Ok(Answer(StatusCode::OK, ReleaseText { signed }))
}

/// As operators see it: with what is here of its files.
async fn view(hub: &Hub, record: ReleaseRecord) -> Result<ReleaseView, ApiError> {
    let folder = Arc::clone(&hub.artifacts);
    blocking(move || view_in(&folder, record)).await
}

fn view_in(folder: &ArtifactFolder, record: ReleaseRecord) -> Result<ReleaseView, ArtifactError> {
    let files = record.files.into_iter().map(|file| {
        let artifact = folder.view(&file.sha256, file.size_bytes)?;
        Ok(ReleaseFileView { kind: file.kind, name: file.name, artifact })
    });
    Ok(ReleaseView {
        version: record.version,
        manifest_sha256: record.manifest_sha256,
        issued_at: record.issued_at,
        expires_at: record.expires_at,
        signatures: record.signatures,
        by: record.by,
        put_at: record.put_at,
        files: files.collect::<Result<_, ArtifactError>>()?,
    })
}
