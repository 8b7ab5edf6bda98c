//! `GET /v1/backups` and `GET /v1/backups/{id}`.

use std::sync::Arc;

use axum::extract::{Path, State};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::work::{BackupView, BackupsView};
use holdfast_protocol::operation::{OperationKind, OperationStatus};

use super::Local;
use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;
use super::operations::look;
use super::wait::Wait;

pub(super) async fn all(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    wait: Wait,
) -> Result<Data<BackupsView>, ApiError> {
    wait.for_change(&local, || every(&local, &scope)).await
}

async fn every(local: &Local, scope: &GuestScope) -> Result<BackupsView, ApiError> {
    let own = local.store.own_backups(scope.uid()).await?;
    let kept = own.kept.into_iter();
    let mut backups: Vec<BackupView> =
        kept.map(|(id, kept)| BackupView { id, phase: OperationStatus::Done, kept: Some(kept) }).collect();
    let open = own.open.iter().map(|progress| progress.view());
    let under_way = open.filter(|view| is_backup(view.kind));
    backups.extend(under_way.map(|view| BackupView { id: view.id, phase: view.status, kept: None }));
    let waiting = own.waiting.iter().map(|record| &record.request);
    let waiting = waiting.filter(|request| is_backup(request.ask.kind()));
    backups.extend(waiting.map(|request| BackupView {
        id: request.id,
        phase: OperationStatus::Queued,
        kept: None,
    }));
    Ok(BackupsView { backups })
}

pub(super) async fn one(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    wait: Wait,
) -> Result<Data<BackupView>, ApiError> {
    let id: OperationId = id.parse().map_err(|_| ApiError::NotFound("backup"))?;
    wait.for_change(&local, || single(&local, &scope, id)).await
}

async fn single(local: &Local, scope: &GuestScope, id: OperationId) -> Result<BackupView, ApiError> {
    let own = local.store.own_backups(scope.uid()).await?;
    if let Some((id, kept)) = own.kept.into_iter().find(|(kept, _)| *kept == id) {
        return Ok(BackupView { id, phase: OperationStatus::Done, kept: Some(kept) });
    }
    let view = look(local, scope, id).await?;
    if !is_backup(view.kind) {
        return Err(ApiError::NotFound("backup"));
    }
    Ok(BackupView { id: view.id, phase: view.status, kept: None })
}

/// Whether it takes one backup and nothing else.
const fn is_backup(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Backup | OperationKind::QuiescedBackup)
}
