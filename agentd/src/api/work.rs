//! Requests for snapshots, rollbacks and backups.
//!
//! The guest is the token's. A body that names another one is refused before any lookup.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, Uri};
use holdfast_protocol::envelope::IDEMPOTENCY_KEY_HEADER;
use holdfast_protocol::id::{CorrelationId, GuestUid, IdempotencyKey, OperationId, SnapshotName};
use holdfast_protocol::local::work::{
    Accepted, BackupRequest, RollBackRequest, SnapshotRequest, SnapshotView, SnapshotsView,
};
use jiff::Timestamp;
use net::server::Ids;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::auth::GuestScope;
use super::envelope::{Data, InWork};
use super::error::ApiError;
use super::wait::Wait;
use super::{Local, body};
use crate::model::limits;
use crate::model::records::SnapshotRecord;
use crate::model::request::Ask;
use crate::port::store::request::{NewRequest, RequestKey};

/// Method, path and headers of a call that requests work.
pub(super) struct Call {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    correlation: Option<CorrelationId>,
}

impl axum::extract::FromRequestParts<Arc<Local>> for Call {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _local: &Arc<Local>,
    ) -> Result<Self, Self::Rejection> {
        let correlation = parts.extensions.get::<Ids>().map(|ids| ids.correlation);
        let (method, uri, headers) = (parts.method.clone(), parts.uri.clone(), parts.headers.clone());
        Ok(Self { method, uri, headers, correlation })
    }
}

impl Call {
    /// The idempotency key, with everything that it identifies.
    pub(super) fn key(&self, body: &[u8]) -> Result<Option<RequestKey>, ApiError> {
        let refused = || ApiError::Part {
            what: "the header idempotency-key",
            rule: "one key of 1 to 128 letters, digits, '-', '_', '.' or ':'",
        };
        let mut all = self.headers.get_all(IDEMPOTENCY_KEY_HEADER).iter();
        let Some(value) = all.next() else { return Ok(None) };
        let key: IdempotencyKey =
            value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(refused)?;
        if all.next().is_some() {
            return Err(refused());
        }
        let mut hash = Sha256::new();
        for part in [self.method.as_str().as_bytes(), self.uri.path().as_bytes(), body] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Ok(Some(RequestKey { key, request_sha256: hash.finalize().into() }))
    }
}

pub(super) async fn take_snapshot(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    call: Call,
    body: Body,
) -> Result<InWork<Accepted>, ApiError> {
    let bytes = body::bytes("the snapshot", body).await?;
    let goal: SnapshotRequest = body::parse("the snapshot", &bytes)?;
    own(&scope, goal.guest)?;
    if let Some(keep_s) = goal.keep_s
        && !(limits::SNAPSHOT_KEEP_MIN_S..=limits::SNAPSHOT_KEEP_MAX_S).contains(&keep_s)
    {
        return Err(ApiError::Part { what: "keep_s", rule: "an hour to thirty days, in seconds" });
    }
    let id = fresh_id();
    let name = match goal.name {
        Some(name) => name,
        None => made_name(id, local.clock.now())?,
    };
    let ask = Ask::Snapshot { name, keep_s: goal.keep_s };
    write_down(&local, &scope, (id, ask), (&call, &bytes)).await
}

pub(super) async fn delete_snapshot(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(name): Path<String>,
    call: Call,
) -> Result<InWork<Accepted>, ApiError> {
    let name: SnapshotName = name.parse().map_err(|_| ApiError::NotFound("snapshot"))?;
    write_down(&local, &scope, (fresh_id(), Ask::ExpireSnapshot { name }), (&call, &[])).await
}

pub(super) async fn roll_back(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    call: Call,
    body: Body,
) -> Result<InWork<Accepted>, ApiError> {
    let bytes = body::bytes("the rollback", body).await?;
    let goal: RollBackRequest = body::parse("the rollback", &bytes)?;
    own(&scope, goal.guest)?;
    write_down(&local, &scope, (fresh_id(), Ask::RollBack { snapshot: goal.snapshot }), (&call, &bytes)).await
}

pub(super) async fn take_backup(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    call: Call,
    body: Body,
) -> Result<InWork<Accepted>, ApiError> {
    let bytes = body::bytes("the backup", body).await?;
    // A backup needs nothing to be said about it.
    let goal: BackupRequest =
        if bytes.is_empty() { BackupRequest::default() } else { body::parse("the backup", &bytes)? };
    own(&scope, goal.guest)?;
    write_down(&local, &scope, (fresh_id(), Ask::Backup { tier: goal.tier }), (&call, &bytes)).await
}

pub(super) async fn snapshots(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    wait: Wait,
) -> Result<Data<SnapshotsView>, ApiError> {
    wait.for_change(&local, || status(&local, &scope)).await
}

async fn status(local: &Local, scope: &GuestScope) -> Result<SnapshotsView, ApiError> {
    let own = local.store.snapshots_asked_by(scope.uid()).await?;
    // A snapshot that a guest requested always has an expiry time.
    let view = |snapshot: SnapshotRecord| {
        let SnapshotRecord { name, taken_at, made_by: operation, .. } = snapshot;
        Some(SnapshotView { name, taken_at, expires_at: snapshot.expires_at?, operation })
    };
    let snapshots = own.into_iter().filter_map(view);
    let quota = u32::try_from(limits::SNAPSHOTS_PER_GUEST).unwrap_or(u32::MAX);
    Ok(SnapshotsView { snapshots: snapshots.collect(), quota })
}

pub(super) async fn write_down(
    local: &Local,
    scope: &GuestScope,
    (id, ask): (OperationId, Ask),
    (call, body): (&Call, &[u8]),
) -> Result<InWork<Accepted>, ApiError> {
    let (key, correlation) = (call.key(body)?, call.correlation);
    let new = NewRequest { id, guest: scope.uid(), ask, key, correlation, at: local.clock.now() };
    Ok(InWork(local.store.ask(new).await?))
}

/// A request's id, which its operation will have.
pub(super) fn fresh_id() -> OperationId {
    OperationId::new(Uuid::now_v7())
}

/// A body may name the guest, and it can only be the token's.
pub(super) fn own(scope: &GuestScope, named: Option<GuestUid>) -> Result<(), ApiError> {
    match named {
        Some(other) if other != scope.uid() => Err(ApiError::NotYours),
        Some(_) | None => Ok(()),
    }
}

/// A name that shows when the snapshot was requested, and that no other call makes.
fn made_name(id: OperationId, now: Timestamp) -> Result<SnapshotName, ApiError> {
    let tail: String = id.uuid().simple().to_string().chars().skip(24).collect();
    format!("asked-{}-{tail}", now.strftime("%Y%m%dT%H%M%S")).parse().map_err(ApiError::MadeName)
}
