//! Versions of a document, what one changed, and rollback.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{Desired, Reason};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::resource::diff;
use holdfast_protocol::resource::diff::PromisesInForce;
use hub_page::document::{self, Version};
use hub_page::form::problem::REASON;
use hub_page::review::WayBack;
use net::server::{Answer, Ids};

use super::document::{Change, DocumentOfHost};
use super::part::{PART_FORM_MAX, newest};
use super::submission::{Submission, or_problem};
use crate::api::desired;
use crate::api::document_change::{Basis, parsed, version_of};
use crate::api::html::answer::{page, status};
use crate::api::page::{CheckedQuery, PageQuery};
use crate::api::problem::ApiError;

pub(super) async fn list(one: DocumentOfHost, RawQuery(query): RawQuery) -> Response {
    let cursor = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "cursor")
        .map(|(_, value)| value.into_owned());
    let listed = async {
        let (hub, host) = (State(Arc::clone(&one.hub)), Path(one.name.clone()));
        let query = CheckedQuery(PageQuery::of(cursor));
        let Answer(code, found) = desired::history(hub, one.person.operator.clone(), host, query).await?;
        Ok(page(code, document::history(&one.frame, &one.name, &found.items, found.next.as_deref())))
    };
    or_problem(&one.frame, listed.await)
}

pub(super) async fn show(one: DocumentOfHost, Path((_, number)): Path<(String, String)>) -> Response {
    let shown = async {
        let number = number.parse().map_err(|_| ApiError::not_found("version"))?;
        version(&one, Generation::new(number), ("", None)).await
    };
    or_problem(&one.frame, shown.await)
}

/// The page of a version, with what was typed and why a rollback was refused.
async fn version(
    one: &DocumentOfHost,
    number: Generation,
    (reason, refused): (&str, Option<(StatusCode, &str)>),
) -> Result<Response, ApiError> {
    let missing = || ApiError::not_found("version");
    let detail = one.hub.store.host(one.host.clone(), one.hub.clock.now()).await?.ok_or_else(missing)?;
    let found = version_of(&one.hub, &one.host, number).await?.ok_or_else(missing)?;
    let earlier = one.hub.store.desired_history(one.host.clone(), Some(number), 1).await?;
    let earlier = earlier.into_iter().flatten().next();
    // A version that cannot be read any more has no differences, and is shown as its text.
    let read = parsed(&found).ok().zip(earlier.as_ref().map(parsed).transpose().ok());
    let changed = read.map(|(found, earlier)| {
        diff(earlier.as_ref().map(Desired::document), found.document(), &PromisesInForce::new())
    });
    let shown = Version {
        host: &one.name,
        version: &found,
        diff: changed.as_ref(),
        newest: newest(&one.hub, &one.host).await?,
        held: detail.host.held,
        may_change: one.may_change(),
        problem: refused.map(|(_, message)| message),
        reason,
    };
    let code = refused.map_or(StatusCode::OK, |(code, _)| code);
    Ok(page(code, document::version(&one.frame, &shown)))
}

pub(super) async fn roll_back(one: DocumentOfHost, ids: Ids, body: Body) -> Response {
    or_problem(&one.frame, handle(&one, ids, body).await)
}

async fn handle(one: &DocumentOfHost, ids: Ids, body: Body) -> Result<Response, ApiError> {
    let sent = Submission::read(&one.hub, &one.person, body, PART_FORM_MAX).await?;
    let number = sent.values.get("to").parse().map_err(|_| ApiError::not_found("version"))?;
    let (to, reason) = (Generation::new(number), sent.values.get(REASON));
    let rolled = async {
        let why = Reason::try_from(reason.to_owned())
            .map_err(|error| ApiError::new(ErrorCode::Range, error.to_string()))?;
        let basis = Basis::read(&one.hub, one.host.clone(), sent.seen).await?;
        let earlier = version_of(&one.hub, &one.host, to).await?;
        let earlier = parsed(&earlier.ok_or_else(|| ApiError::not_found("version"))?)?;
        let change = Change {
            verb: Method::POST,
            end: "/rollback",
            name: &format!("roll {} back to generation {to}", one.name),
            action: &format!("/hosts/{}/desired/rollback", one.name),
            put: basis.put(why, earlier.document().clone())?,
            way_back: WayBack::Document,
        };
        one.finish(ids, &sent, change).await
    };
    match rolled.await {
        Err(error) if !status(error.code()).is_server_error() && error.code() != ErrorCode::NotFound => {
            let (code, message) = error.shown();
            version(one, to, (reason, Some((status(code), &message)))).await
        }
        done => done,
    }
}
