//! `/v1/silences`: listing, adding and ending silences.

use std::sync::Arc;

use alerts::label::{Label, Matcher};
use alerts::silence::SilenceId;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::access::AccessScope;
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
use crate::domain::host::HostRef;
use crate::store::{AlertName, NewSilence, ObjectRef};

/// All at once: there are at most [`crate::store::SILENCES_MAX`].
pub(in crate::api) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
) -> Result<Answer<Page<SilenceView>>, ApiError> {
    let silences = hub.store.silences_within(operator.scope(), hub.clock.now()).await?;
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
    match head.operator().scope() {
        AccessScope::Everything {} => check_names(&hub, &new).await?,
        scope => check_scope(&hub, &scope, &new).await?,
    }
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

/// Refuses a silence that could mute alerts beyond a scope: all its matchers must hold, so one is enough that names a host
/// of the scope, or its customer. Other names are not looked up, since the answer would tell of what lies outside.
async fn check_scope(hub: &Hub, scope: &AccessScope, new: &NewSilence) -> Result<(), ApiError> {
    for (label, value) in new.matchers.iter().filter_map(Matcher::required) {
        let is_inside = match (scope, label) {
            (AccessScope::Everything {}, _) => true,
            (AccessScope::Customer { customer }, Label::Customer) => customer.as_str() == value,
            (AccessScope::Hosts { .. }, Label::Host) => match value.parse() {
                Ok(name) => {
                    let host = ObjectRef::Host(HostRef::Name(name));
                    hub.store.object_facts(host).await?.is_some_and(|facts| scope.holds(&facts))
                }
                Err(_) => false,
            },
            (AccessScope::Hosts { .. } | AccessScope::Customer { .. }, _) => false,
        };
        if is_inside {
            return Ok(());
        }
    }
    let needed = match scope {
        AccessScope::Customer { customer } => format!("customer={customer}"),
        AccessScope::Everything {} | AccessScope::Hosts { .. } => {
            "host=NAME with one of your hosts (`holdfast host list`)".to_owned()
        }
    };
    let says = format!("your scope is {scope}, and nothing was silenced: add the matcher {needed}");
    Err(ApiError::new(ErrorCode::Forbidden, says))
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
