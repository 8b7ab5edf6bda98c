//! `GET /v1/desired` and `GET /v1/artifacts/{sha256}`.
//!
//! Serves only what the document in use names for this guest, an operator approved by a signature over exactly these
//! bytes, and is stored on the host. Any other digest is answered as not found, even if another guest may have it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request;
use axum::response::Response;
use bytes::Bytes;
use holdfast_protocol::job::act::ReleaseKind;
use holdfast_protocol::local::desired::{DesiredView, Turn, WantedController};
use hyper::body::{Frame, SizeHint};
use net::server::as_it_is;
use serde::Deserialize;

use super::Local;
use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;
use super::wait::Wait;
use crate::model::policy::Sha256Hex;
use crate::model::records::ReleaseRecord;
use crate::plan::maintenance;
use crate::port::artifacts::Artifact;

/// One piece of an answer.
const PIECE_BYTES: usize = 64 * 1024;

/// What this guest should run, where it may.
async fn wanted(
    local: &Local,
    scope: &GuestScope,
) -> Result<Option<(WantedController, Sha256Hex)>, ApiError> {
    let uid = scope.uid();
    let Some(goal) = local.wanted.guest(uid).await?.and_then(|guest| guest.controller) else {
        return Ok(None);
    };
    let Ok(sha256) = Sha256Hex::try_from(goal.sha256.as_str().to_owned()) else { return Ok(None) };
    let Some(bytes) = local.settings.artifacts.size(&sha256) else { return Ok(None) };
    let release = ReleaseRecord {
        kind: ReleaseKind::Controller,
        version: goal.version.clone(),
        sha256: sha256.clone(),
    };
    if !local.store.is_approved(release).await? {
        return Ok(None);
    }
    let turn = local.store.turn_of(uid, sha256.clone()).await?;
    Ok(Some((WantedController { version: goal.version, sha256: goal.sha256, bytes, turn }, sha256)))
}

/// What a guest says with the question what it should run.
pub(super) struct DesiredQuery {
    wait: Wait,
    /// The build that it runs on trial.
    trial: Option<Sha256Hex>,
    /// The build that it put its previous program back for.
    taken_back: Option<Sha256Hex>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryParts {
    wait: Option<String>,
    trial: Option<String>,
    taken_back: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for DesiredQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut request::Parts, state: &S) -> Result<Self, ApiError> {
        const RULE: &str = "wait, of 1s to 55s, and trial and taken_back, each a SHA-256 in lower-case hex";
        let refused = || ApiError::Part { what: "the query", rule: RULE };
        let asked: Result<Query<QueryParts>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(asked) = asked.map_err(|_| refused())?;
        let digest = |text: Option<String>| text.map(Sha256Hex::try_from).transpose().map_err(|_| refused());
        Ok(Self {
            wait: Wait::of(asked.wait.as_deref()).ok_or_else(refused)?,
            trial: digest(asked.trial)?,
            taken_back: digest(asked.taken_back)?,
        })
    }
}

pub(super) async fn desired(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    asked: DesiredQuery,
) -> Result<Data<DesiredView>, ApiError> {
    let uid = scope.uid();
    if let Some(sha256) = asked.taken_back {
        local.store.note_returned(uid, sha256);
    }
    let look = async || {
        let wanted = wanted(&local, &scope).await?;
        let named = local.wanted.guest(scope.uid()).await?.and_then(|guest| guest.maintenance);
        let maintenance = maintenance::view(uid, named.as_ref(), local.clock.now());
        let trial = match asked.trial.clone() {
            Some(sha256) => Some(local.store.trial_of(uid, sha256).await?),
            None => None,
        };
        Ok(DesiredView { controller: wanted.map(|(controller, _)| controller), trial, maintenance })
    };
    asked.wait.for_change(&local, look).await
}

pub(super) async fn artifact(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(named): Path<String>,
) -> Result<Response, ApiError> {
    let nothing = || ApiError::NotFound("artifact");
    let named = Sha256Hex::try_from(named).map_err(|_| nothing())?;
    let (goal, sha256) =
        wanted(&local, &scope).await?.filter(|(_, own)| *own == named).ok_or_else(nothing)?;
    let artifacts = local.settings.artifacts.clone();
    // Every byte is read and checked against the digest before the first one is sent.
    let opened = tokio::task::spawn_blocking(move || artifacts.open(&sha256)).await;
    match opened {
        Ok(Ok(Some(artifact))) => {
            if let Turn::Now(update) = goal.turn {
                local.store.note_fetched(scope.uid(), update, local.clock.now()).await?;
            }
            let body = Body::new(Pieces { left: artifact.bytes(), artifact });
            Ok(as_it_is(([(CONTENT_TYPE, "application/octet-stream")], body)))
        }
        Ok(Ok(None)) => Err(nothing()),
        Ok(Err(error)) => Err(ApiError::Artifact(error)),
        // The agent stops just now.
        Err(_) => Err(nothing()),
    }
}

/// A file, piece by piece. It was just read into memory, so a piece is a copy and delays no other request.
struct Pieces {
    artifact: Artifact,
    left: u64,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let most = usize::try_from(self.left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        if most == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; most];
        Poll::Ready(Some(match self.artifact.read(&mut piece) {
            Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                piece.truncate(count);
                self.left = self.left.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
                Ok(Frame::data(Bytes::from(piece)))
            }
            Err(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
