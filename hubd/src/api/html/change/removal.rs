//! Leaving a part out of a document.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Reason;
use holdfast_protocol::resource::on_host::{OnHost, still_on_host};
use holdfast_protocol::resource::requests::ChangeAnswer;
use holdfast_protocol::resource::users::users;
use hub_page::form::problem::REASON;
use hub_page::form::values::Values;
use hub_page::removal::{self, Removal, RemovalField, RemovalProblem};
use hub_page::review::{self, Review, WayBack};
use net::server::{Answer, Ids};
use uuid::Uuid;

use super::part::{PART_FORM_MAX, carried, newest};
use super::part_page::PartPage;
use super::submission::{Step, Submission, or_problem};
use crate::api::document_change::{Basis, Mode};
use crate::api::html::answer::{page, status, to_address};
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::resources::{self, DeleteQuery};
use crate::domain::desired::IfMatch;

/// The page with what was typed, and why it was refused.
fn shown(
    one: &PartPage,
    basis: &Basis,
    values: &Values,
    (code, message): (StatusCode, Option<&str>),
) -> Result<Response, ApiError> {
    // Only a refusal for what the host still has comes with this state; all others are about the reason, or the whole.
    let about = if code == StatusCode::CONFLICT { RemovalField::OnHost } else { RemovalField::Reason };
    let part = one.address.part()?;
    if part.read(&basis.document).is_none() {
        return Err(one.address.missing());
    }
    let host = (basis.detail.host.name.as_str(), &basis.detail.sections);
    let on_host = still_on_host(part, &basis.document, host).map(|still| by_hand(&still.to_string()));
    let shown = Removal {
        name: &one.name(basis),
        host: &one.host,
        action: &one.path,
        seen: basis.document.generation,
        users: &users(part, &basis.document),
        on_host: on_host.as_deref(),
        reason: values.get(REASON),
        problem: message.map(|message| RemovalProblem { about, message }),
    };
    Ok(page(code, removal::render(&one.frame, &shown)))
}

/// The refusal of the call, for who has a box to tick in the place of a query.
fn by_hand(message: &str) -> String {
    message.replace("`?on_host=leave` lets", "the box below lets")
}

async fn opened(one: &PartPage) -> Result<Response, ApiError> {
    let seen = newest(&one.hub, &one.address.host).await?;
    let basis = Basis::read(&one.hub, one.address.host.clone(), IfMatch(seen)).await?;
    shown(one, &basis, &Values::default(), (StatusCode::OK, None))
}

async fn handle(one: &PartPage, ids: Ids, body: Body) -> Result<Response, ApiError> {
    let sent = Submission::read(&one.hub, &one.person, body, PART_FORM_MAX).await?;
    let basis = Basis::read(&one.hub, one.address.host.clone(), sent.seen).await?;
    let reason = match Reason::try_from(sent.values.get(REASON).to_owned()) {
        Ok(reason) => reason,
        Err(error) => {
            let message = error.to_string();
            return shown(one, &basis, &sent.values, (StatusCode::BAD_REQUEST, Some(&message)));
        }
    };
    let on_host = if sent.values.get("on_host") == "leave" { OnHost::Leave } else { OnHost::Refuse };
    let mode = if sent.step == Step::Apply { Mode::Apply } else { Mode::DryRun };
    let head = sent.head(&one.person, ids, (Method::DELETE, format!("/v1{}", one.base)))?;
    let query = CheckedQuery(DeleteQuery::of(reason, on_host, mode));
    let hub = State(Arc::clone(&one.hub));
    let called = resources::delete(hub, head, one.address.clone(), sent.headers()?, query, Body::empty());
    match called.await {
        Ok((_, Answer(_, ChangeAnswer::Made(changed)))) => {
            to_address(&format!("/hosts/{}/desired/history/{}", one.host, changed.generation))
        }
        Ok((_, Answer(_, ChangeAnswer::Preview(preview)))) => {
            let review = Review {
                name: &format!("leave {} out", one.name(&basis)),
                host: &one.host,
                action: &one.path,
                preview: &preview,
                fields: &carried(&sent),
                key: &Uuid::new_v4().to_string(),
                way_back: WayBack::Document,
            };
            Ok(page(StatusCode::OK, review::render(&one.frame, &review)))
        }
        // What was looked at is not what is there any more: the page again, of the newest version.
        Err(error) if error.code() == ErrorCode::PreconditionFailed => {
            let newest = newest(&one.hub, &one.address.host).await?;
            let basis = Basis::read(&one.hub, one.address.host.clone(), IfMatch(newest)).await?;
            let message = format!(
                "the document was changed by somebody else, from generation {} to {newest}: look at it as it is now, and review again",
                sent.seen.0
            );
            shown(one, &basis, &sent.values, (StatusCode::PRECONDITION_FAILED, Some(&message)))
        }
        Err(error) => {
            let code = status(error.code());
            if code.is_server_error() || code == StatusCode::NOT_FOUND {
                return Err(error);
            }
            let message = by_hand(&error.shown().1);
            shown(one, &basis, &sent.values, (code, Some(&message)))
        }
    }
}

pub(super) async fn form(one: PartPage) -> Response {
    or_problem(&one.frame, opened(&one).await)
}

pub(super) async fn submit(one: PartPage, ids: Ids, body: Body) -> Response {
    or_problem(&one.frame, handle(&one, ids, body).await)
}
