//! Who looks at a page.
//!
//! In: a request with the cookie of a session. Out: the request with its [`Person`], or a way to the sign-in. A page stands
//! for the call of `/v1` with the same path, and is decided like it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_protocol::sign_in::SessionKind;
use hub_page::frame::{self, Frame, Section, Theme};

use super::answer;
use crate::api::Hub;
use crate::api::auth::{Operator, Principal, SessionSource};
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
    theme: Theme,
}

impl Person {
    pub(super) fn frame(&self, hub: &Hub, section: Section) -> Frame {
        let person = frame::Person {
            name: self.operator.principal.name().clone(),
            role: self.operator.grant.role(),
            csrf: self.csrf.clone(),
        };
        Frame { person: Some(person), ..stranger(hub, section, self.theme) }
    }
}

/// What surrounds a page before the sign-in.
pub(super) fn stranger(hub: &Hub, section: Section, theme: Theme) -> Frame {
    Frame { section, person: None, theme, hub_version: env!("CARGO_PKG_VERSION"), now: hub.clock.now() }
}

/// The frame of a session, whatever it may do.
pub(super) fn frame_of(hub: &Hub, caller: &Caller, headers: &HeaderMap) -> Frame {
    let person = frame::Person {
        name: caller.record.owner.name.clone(),
        role: caller.record.owner.grant.role(),
        csrf: caller.csrf(hub).expose().to_owned(),
    };
    Frame { person: Some(person), ..stranger(hub, Section::Other, theme(headers)) }
}

/// That of the cookie `theme`.
pub(super) fn theme(headers: &HeaderMap) -> Theme {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let chosen = lines.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix("theme="));
    chosen.map(Theme::of).unwrap_or_default()
}

/// Decides a request for a page and passes it on.
pub(super) async fn require(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match caller_of_cookie(&parts.headers, &hub).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return answer::to("/sign-in"),
        Err(error) => return answer::problem(&stranger(&hub, Section::Other, theme(&parts.headers)), error),
    };
    if caller.record.view.kind == SessionKind::Setup {
        return answer::to("/account");
    }
    let name = caller.record.owner.name.clone();
    let principal = Principal::Person { name, session: SessionSource::SignIn };
    let operator = Operator { principal, grant: caller.record.owner.grant.clone() };
    let path = match parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str) {
        "/" => START.to_owned(),
        path => format!("/v1{path}"),
    };
    if let Err(error) = authorize::decide_read(&hub, &path, &operator, &mut parts).await {
        return answer::problem(&frame_of(&hub, &caller, &parts.headers), error);
    }
    let csrf = caller.csrf(&hub).expose().to_owned();
    let theme = theme(&parts.headers);
    parts.extensions.insert(Person { operator, csrf, theme });
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
