//! One part of a document as a page's subject.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::Response;
use holdfast_protocol::resource::{PartContent, PartKind};
use hub_page::frame::Frame;
use serde_json::Value;

use super::submission::frame_of;
use crate::api::Hub;
use crate::api::document_change::Basis;
use crate::api::html::answer::problem;
use crate::api::html::person::Person;
use crate::api::problem::ApiError;
use crate::api::resources::Address;

/// A page about one part, or about a new one of a kind.
pub(super) struct PartPage {
    pub hub: Arc<Hub>,
    pub person: Person,
    pub address: Address,
    /// The host as the path names it.
    pub host: String,
    /// The path of the page.
    pub path: String,
    /// The path of the part, or of the list that a new one comes into.
    pub base: String,
    pub frame: Frame,
}

impl FromRequestParts<Arc<Hub>> for PartPage {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> Result<Self, Response> {
        let stranger =
            |error| problem(&super::super::person::stranger(hub, hub_page::frame::Section::Other), error);
        let person = Person::from_request_parts(parts, hub).await.map_err(stranger)?;
        let frame = frame_of(hub, &person);
        let address =
            Address::from_request_parts(parts, hub).await.map_err(|error| problem(&frame, error))?;
        let named = Path::<HashMap<String, String>>::from_request_parts(parts, hub).await;
        let host = named.ok().and_then(|Path(mut named)| named.remove("host")).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let base = path.rsplit_once('/').map_or("", |(base, _)| base).to_owned();
        Ok(Self { hub: Arc::clone(hub), person, address, host, path, base, frame })
    }
}

impl PartPage {
    pub(super) const fn kind(&self) -> PartKind {
        self.address.kind
    }

    /// What is changed, in words.
    pub(super) fn name(&self, basis: &Basis) -> String {
        match self.address.part() {
            Err(_) => format!("new {}", self.kind().as_str()),
            // A guest is known by its name, whatever the path calls it.
            Ok(part) => match part.read(&basis.document) {
                Some(PartContent::Guest(guest)) => format!("guest {}", guest.name),
                Some(_) | None => part.to_string(),
            },
        }
    }

    /// What the part holds in a document.
    pub(super) fn content(&self, basis: &Basis) -> Result<Value, ApiError> {
        let content = self.address.part()?.read(&basis.document).ok_or_else(|| self.address.missing())?;
        serde_json::to_value(&content)
            .map_err(|error| ApiError::internal(format!("a part that was read cannot be written: {error}")))
    }
}
