//! `/v1/silences`: listing, adding and ending silences.

use std::sync::Arc;

use alerts::label::{Label, Matcher};
use alerts::silence::SilenceId;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::alert::{SilenceNumber, SilenceRequest, SilenceView};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json;
use holdfast_protocol::operator::Page;
use net::server::Answer;

use super::{BODY_MAX, check_end, view};
use crate::api::auth::Operator;
use crate::api::hosts::EMPTY_BODY_MAX;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::store::{AlertName, NewSilence};

/// All at once: there are at most [`crate::store::SILENCES_MAX`].
pub(in crate::api) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
) -> Result<Answer<Page<SilenceView>>, ApiError> {
    let silences = hub.store.silences(hub.clock.now()).await?;
    let items = silences.into_iter().map(view::silence).collect::<Result<_, _>>()?;
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

pub(in crate::api) async fn add(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<Answer<SilenceView>, ApiError> {
    let bytes = body::read("the silence", body, BODY_MAX).await?;
    let request: SilenceRequest = json::parse("the silence", &bytes, BODY_MAX)?;
    check_end(request.until, hub.clock.now())?;
    let new = new_silence(request)?;
    check_names(&hub, &new).await?;
    let silence = hub.store.add_silence(head.by(&hub, &bytes)?, new).await?;
    Ok(Answer(StatusCode::CREATED, view::silence(silence)?))
}

fn new_silence(request: SilenceRequest) -> Result<NewSilence, ApiError> {
    let SilenceRequest { matchers, until, comment } = request;
    let parse = |(place, text): (usize, &holdfast_protocol::alert::MatcherText)| {
        text.as_str().parse::<Matcher>().map_err(|error| {
            ErrorBody::new(ErrorCode::Range, error.to_string()).with("path", format!("matchers[{place}]"))
        })
    };
    let matchers = matchers.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    Ok(NewSilence { matchers, until, comment })
}

/// Refuses a silence of a host, guest or customer that the hub does not know: it would mute nothing, and its operator
/// would notice that by the first notice at night.
async fn check_names(hub: &Hub, new: &NewSilence) -> Result<(), ApiError> {
    let named = new.matchers.iter().filter_map(Matcher::required).filter_map(|(label, value)| match label {
        Label::Host => Some(AlertName::Host(value.to_owned())),
        Label::Guest => Some(AlertName::Guest(value.to_owned())),
        Label::Customer => Some(AlertName::Customer(value.to_owned())),
        Label::Code | Label::Severity | Label::Cause | Label::Kind | Label::Subject | Label::Policy => None,
    });
    let message = match hub.store.unknown_names(named.collect()).await?.into_iter().next() {
        None => return Ok(()),
        Some(AlertName::Host(host)) => {
            format!("no host is called {host:?}: `holdfast host list` shows them; nothing was silenced")
        }
        Some(AlertName::Guest(guest)) => {
            format!("no host has a guest {guest:?}: `holdfast guest list` shows them; nothing was silenced")
        }
        Some(AlertName::Customer(customer)) => {
            format!("no guest is of customer {customer:?}: nothing was silenced")
        }
    };
    Err(ApiError::new(ErrorCode::Range, message))
}

pub(in crate::api) async fn end(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<SilenceView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    // A text that is no number names no silence.
    let number: SilenceNumber = id.parse().map_err(|_| ApiError::not_found("silence"))?;
    let ended = hub.store.end_silence(head.by(&hub, &bytes)?, SilenceId(number.get())).await?;
    let silence = ended.ok_or_else(|| ApiError::not_found("silence"))?;
    Ok(Answer(StatusCode::OK, view::silence(silence)?))
}
