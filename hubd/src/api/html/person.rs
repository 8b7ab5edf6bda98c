//! Who looks at a page.
//!
//! In: a request with the cookie of a session. Out: the request with its [`Person`], or a way to the sign-in. A page stands
//! for the call of `/v1` with the same path, and is decided like it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use holdfast_protocol::sign_in::SessionKind;
use hub_page::frame::{self, Frame, Section};

use super::answer;
use super::form::Fields;
use super::look;
use crate::api::Hub;
use crate::api::auth::{Operator, Principal, SessionSource, own_connection};
use crate::api::authorize;
use crate::api::problem::ApiError;
use crate::api::sign_in::{Caller, caller_of_cookie};

/// The call that the first page stands for.
const START: &str = "/v1/alerts";

/// A person whose request was decided.
#[derive(Clone)]
pub(super) struct Person {
    pub operator: Operator,
    csrf: String,
}

impl Person {
    pub(super) fn frame(&self, hub: &Hub, section: Section) -> Frame {
        framed(hub, section, &self.operator, (self.csrf.clone(), entries(&self.operator)))
    }
}

/// The entries of the navigation whose calls are answered to them.
fn entries(operator: &Operator) -> Vec<Section> {
    let calls = [
        (Section::Start, START),
        (Section::Hosts, "/v1/hosts"),
        (Section::Guests, "/v1/guests"),
        (Section::Events, "/v1/events"),
    ];
    let open = calls.into_iter().filter(|(_, path)| authorize::may_list(operator, path));
    open.map(|(section, _)| section).collect()
}

fn framed(
    hub: &Hub,
    section: Section,
    operator: &Operator,
    (csrf, sections): (String, Vec<Section>),
) -> Frame {
    let (name, role) = (operator.principal.name().clone(), operator.grant.role());
    let person = frame::Person { name, role, csrf, sections };
    Frame { person: Some(person), ..stranger(hub, section) }
}

/// What surrounds a page before the sign-in.
pub(super) fn stranger(hub: &Hub, section: Section) -> Frame {
    let (hub_version, now, look) = (env!("CARGO_PKG_VERSION"), hub.clock.now(), look::current());
    Frame { section, person: None, hub_version, now, look }
}

/// The frame of a session, whatever it may do. One that may only set up a sign-in has no other page.
pub(super) fn frame_of(hub: &Hub, caller: &Caller) -> Frame {
    let operator = operator_of(caller);
    let sections = match caller.record.view.kind {
        SessionKind::Full => entries(&operator),
        SessionKind::Setup => Vec::new(),
    };
    framed(hub, Section::Other, &operator, (caller.csrf(hub).expose().to_owned(), sections))
}

/// The session behind a form, whose token must be the session's own; none where it has ended.
pub(super) async fn checked(
    hub: &Hub,
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<(Caller, Fields)>, ApiError> {
    let fields = Fields::read(body).await?;
    let Some(caller) = caller_of_cookie(headers, hub).await? else { return Ok(None) };
    caller.check(hub, fields.required("csrf")?)?;
    Ok(Some((caller, fields)))
}

fn operator_of(caller: &Caller) -> Operator {
    let owner = &caller.record.owner;
    let principal = Principal::Person { name: owner.name.clone(), session: SessionSource::SignIn };
    Operator { principal, grant: owner.grant.clone() }
}

/// Decides a request for a page and passes it on.
pub(super) async fn require(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match caller_of_cookie(&parts.headers, &hub).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return answer::to("/sign-in"),
        Err(error) => return answer::problem(&stranger(&hub, Section::Other), error),
    };
    if caller.record.view.kind == SessionKind::Setup {
        return answer::to("/account");
    }
    let operator = operator_of(&caller);
    if let Err(error) = own_connection(&parts, &operator) {
        return answer::problem(&frame_of(&hub, &caller), error);
    }
    let path = match parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str) {
        "/" => START.to_owned(),
        path => format!("/v1{path}"),
    };
    if let Err(error) = authorize::decide_read(&hub, &path, &operator, &mut parts).await {
        return answer::problem(&frame_of(&hub, &caller), error);
    }
    let csrf = caller.csrf(&hub).expose().to_owned();
    parts.extensions.insert(Person { operator, csrf });
    next.run(Request::from_parts(parts, body)).await
}

impl<S: Sync> FromRequestParts<S> for Person {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // `require` put it there; a page without it would be our own mistake.
        let person = parts.extensions.get::<Self>().cloned();
        person.ok_or_else(|| ApiError::internal("a page that was not decided"))
    }
}
