//! The part that the path of a request names.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Path};
use axum::http::request::Parts;
use holdfast_protocol::resource::{DocumentPart, GuestRef, PartKind};

use crate::api::Hub;
use crate::api::hosts::host_ref;
use crate::api::problem::ApiError;
use crate::domain::host::HostRef;

/// A part, or all of one kind.
#[derive(Clone)]
pub(in crate::api) struct Address {
    pub host: HostRef,
    pub kind: PartKind,
    /// The guest whose volumes are meant.
    pub within: Option<GuestRef>,
    part: Option<DocumentPart>,
}

impl Address {
    /// All parts of a kind of a host; of volumes it names none.
    pub(in crate::api) const fn all(host: HostRef, kind: PartKind) -> Self {
        Self { host, kind, within: None, part: None }
    }

    /// The one part of a path that names one.
    pub(in crate::api) fn part(&self) -> Result<&DocumentPart, ApiError> {
        self.part.as_ref().ok_or_else(|| self.missing())
    }

    pub(in crate::api) fn missing(&self) -> ApiError {
        missing(self.kind)
    }
}

fn missing(kind: PartKind) -> ApiError {
    ApiError::not_found(kind.as_str())
}

/// A text that is no name of its kind names no part.
fn named<T: std::str::FromStr>(text: Option<&String>, kind: PartKind) -> Result<Option<T>, ApiError> {
    text.map(|text| text.parse().map_err(|_| missing(kind))).transpose()
}

impl FromRequestParts<Arc<Hub>> for Address {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> Result<Self, ApiError> {
        let kind = parts.extensions.get::<MatchedPath>().map(|path| kind(path.as_str()));
        let kind = kind.ok_or_else(|| ApiError::internal("a route without a path"))?;
        let params = Path::<HashMap<String, String>>::from_request_parts(parts, hub).await;
        let Path(params) = params.map_err(|_| missing(kind))?;
        let host = host_ref(params.get("host").map_or("", String::as_str))?;
        let guest: Option<GuestRef> = named(params.get("guest"), PartKind::Guest)?;
        let part = match kind {
            PartKind::Guest => guest.clone().map(DocumentPart::Guest),
            PartKind::Volume => {
                let volume = named(params.get("volume"), kind)?;
                guest.clone().zip(volume).map(|(guest, volume)| DocumentPart::Volume(guest, volume))
            }
            PartKind::StorageTarget => named(params.get("target"), kind)?.map(DocumentPart::StorageTarget),
            PartKind::Policy => named(params.get("policy"), kind)?.map(DocumentPart::Policy),
        };
        let within = guest.filter(|_| kind == PartKind::Volume);
        Ok(Self { host, kind, within, part })
    }
}

/// What a page does with a part, at the end of its path.
const PAGES: [&str; 3] = ["new", "edit", "delete"];

fn kind(path: &str) -> PartKind {
    let is_kind = |segment: &&str| !segment.starts_with('{') && !PAGES.contains(segment);
    match path.split('/').rfind(is_kind) {
        Some("volumes") => PartKind::Volume,
        Some("storage-targets") => PartKind::StorageTarget,
        Some("policies") => PartKind::Policy,
        Some(_) | None => PartKind::Guest,
    }
}
