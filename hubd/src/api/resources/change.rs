//! Changing parts: each change is the next version of the whole document.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DOCUMENT_BYTES_MAX, DesiredDocument, Reason};
use holdfast_protocol::json;
use holdfast_protocol::resource::change::{create as created, remove, replace};
use holdfast_protocol::resource::merge::{UniqueKeys, merged};
use holdfast_protocol::resource::on_host::{OnHost, still_on_host};
use holdfast_protocol::resource::requests::{ChangeAnswer, PartChanged, PartPatch, PartPut};
use holdfast_protocol::resource::{DocumentPart, GuestRef, PartContent, PartError, PartKind};
use net::server::Answer;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::address::Address;
use crate::api::desired::{etag, seen};
use crate::api::document_change::{Basis, DryRunQuery, Mode, Outcome, mode, parsed, put_or_judge};
use crate::api::hosts::EMPTY_BODY_MAX;
use crate::api::mutation::Head;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::domain::desired::IfMatch;

/// A part may be as long as its document, with a reason.
const PART_BODY_MAX: usize = DOCUMENT_BYTES_MAX + 8 * 1024;

/// The next document with the part that is changed.
struct NextDocument {
    document: DesiredDocument,
    part: DocumentPart,
    reason: Reason,
}

/// A change that was made, with the `ETag` of its document, or what it would do.
pub(in crate::api) type ChangeResult =
    (Option<[(HeaderName, HeaderValue); 1]>, Answer<ChangeAnswer<PartChanged>>);

/// What a change needs but its content.
struct Request {
    address: Address,
    head: Head,
    seen: IfMatch,
    mode: Mode,
}

pub(in crate::api) async fn create(
    State(hub): State<Arc<Hub>>,
    head: Head,
    address: Address,
    headers: HeaderMap,
    CheckedQuery(query): CheckedQuery<DryRunQuery>,
    body: Body,
) -> Result<ChangeResult, ApiError> {
    let request = Request { address, head, seen: seen(&headers)?, mode: query.mode() };
    let bytes = body::read("the new part", body, PART_BODY_MAX).await?;
    let PartPut::<UniqueKeys> { reason, value } = json::parse("the new part", &bytes, PART_BODY_MAX)?;
    let kind = request.address.kind;
    let value = if kind == PartKind::Guest { with_uid(value.0) } else { value.0 };
    let content = PartContent::parse(kind, &value)?;
    let within = request.address.within.clone();
    finish(&hub, request, &bytes, StatusCode::CREATED, |basis| {
        let by_name = match &content {
            PartContent::Guest(guest) => Some(DocumentPart::Guest(GuestRef::Name(guest.name.clone()))),
            PartContent::StorageTarget(_) | PartContent::Policy(_) | PartContent::Volume(_) => None,
        };
        let (document, part) = created(&basis.document, within.as_ref(), content)?;
        // A repeat finds its first answer, where the guest has the uid that was made then.
        Ok(NextDocument { document, part: by_name.unwrap_or(part), reason })
    })
    .await
}

/// A new guest gets an identity where it brings none.
fn with_uid(value: Value) -> Value {
    match value {
        Value::Object(mut fields) => {
            fields.entry("uid").or_insert_with(|| Uuid::now_v7().to_string().into());
            Value::Object(fields)
        }
        other => other,
    }
}

pub(in crate::api) async fn put(
    State(hub): State<Arc<Hub>>,
    head: Head,
    address: Address,
    headers: HeaderMap,
    CheckedQuery(query): CheckedQuery<DryRunQuery>,
    body: Body,
) -> Result<ChangeResult, ApiError> {
    let request = Request { address, head, seen: seen(&headers)?, mode: query.mode() };
    let bytes = body::read("the part", body, PART_BODY_MAX).await?;
    let PartPut::<UniqueKeys> { reason, value } = json::parse("the part", &bytes, PART_BODY_MAX)?;
    let (part, content) =
        (request.address.part()?.clone(), PartContent::parse(request.address.kind, &value.0)?);
    finish(&hub, request, &bytes, StatusCode::OK, |basis| replaced(basis, &part, content, reason)).await
}

pub(super) async fn patch(
    State(hub): State<Arc<Hub>>,
    head: Head,
    address: Address,
    headers: HeaderMap,
    CheckedQuery(query): CheckedQuery<DryRunQuery>,
    body: Body,
) -> Result<ChangeResult, ApiError> {
    let request = Request { address, head, seen: seen(&headers)?, mode: query.mode() };
    let bytes = body::read("the merge", body, PART_BODY_MAX).await?;
    let PartPatch { reason, patch } = json::parse("the merge", &bytes, PART_BODY_MAX)?;
    let part = request.address.part()?.clone();
    finish(&hub, request, &bytes, StatusCode::OK, |basis| {
        let content = part.read(&basis.document);
        let content = content.ok_or_else(|| PartError::Absent { part: part.to_string() })?;
        let value = serde_json::to_value(&content).map_err(|error| {
            ApiError::internal(format!("a part that was read cannot be written: {error}"))
        })?;
        let content = PartContent::parse(part.kind(), &merged(value, &patch.0))?;
        replaced(basis, &part, content, reason)
    })
    .await
}

/// The guest is named by its name afterwards, which may be new.
fn replaced(
    basis: &Basis,
    part: &DocumentPart,
    content: PartContent,
    reason: Reason,
) -> Result<NextDocument, ApiError> {
    let after = match &content {
        PartContent::Guest(guest) => DocumentPart::Guest(GuestRef::Uid(guest.uid)),
        PartContent::StorageTarget(_) | PartContent::Policy(_) | PartContent::Volume(_) => part.clone(),
    };
    Ok(NextDocument { document: replace(&basis.document, part, content)?, part: after, reason })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct DeleteQuery {
    reason: Option<Reason>,
    on_host: Option<OnHost>,
    dry_run: Option<bool>,
}

impl DeleteQuery {
    pub(in crate::api) fn of(reason: Reason, on_host: OnHost, mode: Mode) -> Self {
        Self { reason: Some(reason), on_host: Some(on_host), dry_run: Some(mode == Mode::DryRun) }
    }
}

pub(in crate::api) async fn delete(
    State(hub): State<Arc<Hub>>,
    head: Head,
    address: Address,
    headers: HeaderMap,
    CheckedQuery(query): CheckedQuery<DeleteQuery>,
    body: Body,
) -> Result<ChangeResult, ApiError> {
    let request = Request { address, head, seen: seen(&headers)?, mode: mode(query.dry_run) };
    body::read("the request", body, EMPTY_BODY_MAX).await?;
    let reason = query.reason.ok_or_else(|| {
        ApiError::new(ErrorCode::Missing, "a removal says why: ?reason=TEXT, which is kept in the history")
    })?;
    let on_host = query.on_host.unwrap_or_default();
    // The query is not part of what a key is held to, so it stands in the place of a body.
    let bytes = format!("{on_host:?} {}", reason.as_str());
    let part = request.address.part()?.clone();
    finish(&hub, request, bytes.as_bytes(), StatusCode::OK, |basis| {
        let document = remove(&basis.document, &part)?;
        let host = (basis.detail.host.name.as_str(), &basis.detail.sections);
        match (on_host, still_on_host(&part, &basis.document, host)) {
            (OnHost::Refuse, Some(still)) => Err(still.into()),
            (OnHost::Leave, _) | (OnHost::Refuse, None) => Ok(NextDocument { document, part, reason }),
        }
    })
    .await
}

/// Makes the next document of the version that was seen, and puts or judges it.
async fn finish(
    hub: &Hub,
    request: Request,
    bytes: &[u8],
    status: StatusCode,
    change: impl FnOnce(&Basis) -> Result<NextDocument, ApiError>,
) -> Result<ChangeResult, ApiError> {
    let Request { address, head, seen, mode } = request;
    let basis = Basis::read(hub, address.host.clone(), seen).await?;
    let next = change(&basis)?;
    let put = basis.put(next.reason, next.document)?;
    match put_or_judge(hub, (head, bytes), put, mode).await? {
        Outcome::Judged(preview) => {
            Ok((None, Answer(StatusCode::OK, ChangeAnswer::<PartChanged>::Preview(preview))))
        }
        Outcome::Put(done) => {
            let version = done.version;
            let value = next.part.read(parsed(&version)?.document());
            let name = value.as_ref().map_or_else(|| short_name(&next.part), |value| value.name().to_owned());
            let changed = PartChanged {
                kind: next.part.kind(),
                name,
                generation: version.generation,
                author: version.author,
                reason: version.reason,
                put_at: version.put_at,
                value,
            };
            Ok((Some(etag(changed.generation)), Answer(status, ChangeAnswer::Made(changed))))
        }
    }
}

fn short_name(part: &DocumentPart) -> String {
    match part {
        DocumentPart::Guest(guest) => guest.to_string(),
        DocumentPart::Volume(_, name) => name.to_string(),
        DocumentPart::StorageTarget(name) => name.to_string(),
        DocumentPart::Policy(name) => name.to_string(),
    }
}
