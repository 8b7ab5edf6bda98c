//! Who looks at a page.
//!
//! In: a request with the cookie of a session. Out: the request with its [`Person`], or a way to the sign-in. A page stands
//! for the call of `/v1` with the same path, and is decided like it; so is a form, whose token is checked here, before any
//! handler.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_protocol::envelope::IDEMPOTENCY_KEY_HEADER;
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::sign_in::SessionKind;
use hub_page::frame::{self, Frame, Section};

use super::answer;
use super::form::Fields;
use super::look;
use crate::api::Hub;
use crate::api::auth::{Operator, Principal, SessionSource, own_connection};
use crate::api::authorize;
use crate::api::problem::ApiError;
use crate::api::sign_in::{Caller, caller_of_cookie, check_form};

/// The call that the first page stands for.
const START: &str = "/v1/alerts";

/// Whoever may see that page is told of changes within their scope.
const LIVE: &str = "/live";

/// A person whose request was decided.
#[derive(Clone)]
pub(super) struct Person {
    pub operator: Operator,
    csrf: String,
    token: TokenHash,
    /// The newest change before the page was read.
    newest: u64,
}

impl Person {
    pub(super) fn frame(&self, hub: &Hub, section: Section) -> Frame {
        let frame = framed(hub, section, &self.operator, (self.csrf.clone(), entries(&self.operator)));
        Frame { live: Some(self.newest), ..frame }
    }
}

impl Person {
    /// Checks what a form of their session sent back.
    pub(super) fn check(&self, hub: &Hub, fields: &Fields) -> Result<(), ApiError> {
        check_form(hub, self.token, fields.optional("csrf").unwrap_or_default())
    }
}

/// The entries of the navigation whose calls are answered to them.
fn entries(operator: &Operator) -> Vec<Section> {
    let calls = [
        (Section::Start, START),
        (Section::Hosts, "/v1/hosts"),
        (Section::Guests, "/v1/guests"),
        (Section::Alerts, "/v1/alerts"),
        (Section::Jobs, "/v1/jobs"),
        (Section::Storage, "/v1/hosts"),
        (Section::Policies, "/v1/hosts"),
        (Section::Images, "/v1/hosts"),
        (Section::Releases, "/v1/releases"),
        (Section::Events, "/v1/events"),
        (Section::Audit, "/v1/hosts"),
        (Section::Customers, "/v1/customers"),
        (Section::Settings, "/v1/whoami"),
    ];
    // A customer's list of customers has one line, which the first page says already.
    let is_customer = operator.grant.role() == Role::Customer;
    let is_of_use = |section| !(is_customer && section == Section::Customers);
    let open = calls
        .into_iter()
        .filter(|(section, path)| is_of_use(*section) && authorize::may_list(operator, path));
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
    Frame { section, person: None, hub_version, now, look, live: None }
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

pub(super) fn operator_of(caller: &Caller) -> Operator {
    let owner = &caller.record.owner;
    let principal = Principal::Person { name: owner.name.clone(), session: SessionSource::SignIn };
    Operator { principal, grant: owner.grant.clone() }
}

/// Decides a request for a page and passes it on.
pub(super) async fn require(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    let path = call_of(request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str));
    // What reads without a body is answered like a read.
    let verb = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    decided(&hub, (request, next), (verb, path), FormBody::ReadBefore).await
}

/// Where the body of a form is read, and its token checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormBody {
    /// Before the handler, which finds its fields in the request's extensions.
    ReadBefore,
    /// In the handler, which knows how long it may be, and calls [`Person::check`].
    LeftToHandler,
}

/// Passes a request on where the person may make the call that its page stands for.
pub(super) async fn decided(
    hub: &Arc<Hub>,
    (request, next): (Request, Next),
    (verb, path): (Method, String),
    form: FormBody,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match caller_of_cookie(&parts.headers, hub).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return answer::to("/sign-in"),
        Err(error) => return answer::problem(&stranger(hub, Section::Other), error),
    };
    if caller.record.view.kind == SessionKind::Setup {
        return answer::to("/account");
    }
    let operator = operator_of(&caller);
    if let Err(error) = own_connection(&parts, &operator) {
        return answer::problem(&frame_of(hub, &caller), error);
    }
    if let Err(error) = authorize::decide_page(hub, (&verb, &path), &operator, &mut parts).await {
        return answer::problem(&frame_of(hub, &caller), error);
    }
    let body = match form {
        FormBody::ReadBefore if parts.method == Method::POST => match posted(hub, &caller, body).await {
            Ok(fields) => {
                repeat_key(&mut parts, &fields);
                parts.extensions.insert(Arc::new(fields));
                Body::empty()
            }
            Err(error) => return answer::problem(&frame_of(hub, &caller), error),
        },
        FormBody::ReadBefore | FormBody::LeftToHandler => body,
    };
    let csrf = caller.csrf(hub).expose().to_owned();
    // Handlers of the call take it from here.
    parts.extensions.insert(operator.clone());
    // What changes from here on, the page does not know yet, and is told of.
    let newest = match hub.store.newest_page_change().await {
        Ok(newest) => newest,
        Err(error) => return answer::problem(&frame_of(hub, &caller), error.into()),
    };
    parts.extensions.insert(Person { operator, csrf, token: caller.token, newest });
    next.run(Request::from_parts(parts, body)).await
}

/// The call that a page stands for.
fn call_of(page: &str) -> String {
    match page {
        "/" | LIVE => START.to_owned(),
        "/audit" | "/certificates" | "/images" | "/policies" | "/storage" => "/v1/hosts".to_owned(),
        "/settings" => "/v1/whoami".to_owned(),
        // It is made from the list of guests, which customers have too. Its parts of the document are on other pages.
        "/hosts/{host}/guests/{guest}" => "/v1/hosts/{host}/guests/{guest}/audit".to_owned(),
        page => format!("/v1{}", page.strip_suffix("/file").unwrap_or(page)),
    }
}

/// What a form sent, whose token is the session's own.
async fn posted(hub: &Hub, caller: &Caller, body: Body) -> Result<Fields, ApiError> {
    let fields = Fields::read(body).await?;
    caller.check(hub, fields.required("csrf")?)?;
    Ok(fields)
}

/// A form that makes something has a key of its own: sent twice it is one request.
fn repeat_key(parts: &mut Parts, fields: &Fields) {
    if let Some(key) = fields.optional("key").and_then(|key| HeaderValue::from_str(key).ok()) {
        parts.headers.insert(IDEMPOTENCY_KEY_HEADER, key);
    }
}

impl<S: Sync> FromRequestParts<S> for Person {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // `require` put it there; a page without it would be our own mistake.
        let person = parts.extensions.get::<Self>().cloned();
        person.ok_or_else(|| ApiError::internal("a page that was not decided"))
    }
}
