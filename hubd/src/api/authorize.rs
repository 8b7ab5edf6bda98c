//! Authorization of requests, before any handler runs.
//!
//! In: the path and method of a route, and the token of a person or a machine. Out: the request with its [`Operator`], or
//! a refusal. What each call needs is stated in the tables of `holdfast_protocol::hub`, and a route that is in none of them
//! is not served. An object is looked up only where the caller's scope is less than everything. Deliberately absent: what
//! a handler does, and how lists are narrowed, which is the store's.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::extract::{FromRequestParts as _, MatchedPath, Path, Request, State};
use axum::http::{Method, StatusCode, header, request::Parts};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::access::{AccessScope, Grant, ObjectFacts};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::hub::access::{Access, Object, Place, Reach, Verdict};
use holdfast_protocol::hub::calls;
use holdfast_protocol::hub::calls::Caller;
use holdfast_protocol::id::CustomerId;
use holdfast_protocol::operator::Role;

use super::Hub;
use super::auth::{Operator, Principal, authenticate};
use super::hosts::host_ref;
use super::problem::ApiError;
use crate::domain::host::HostRef;
use crate::store::{ObjectRef, StoreError};

type Callers = HashMap<(&'static str, &'static str), Caller>;

/// Who may call, by path and method.
static CALLERS: LazyLock<Callers> =
    LazyLock::new(|| calls().map(|call| ((call.path, call.method.verb()), call.caller)).collect());

/// The parts of the path that name an object.
type PathParts = HashMap<String, String>;

/// Decides a request and passes it on.
pub(super) async fn authorize(
    State(hub): State<Arc<Hub>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    // What reads without a body is answered like a read.
    let verb = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
    let path = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let Some(caller) = CALLERS.get(&(path, verb.as_str())) else {
        return Ok(not_allowed(path));
    };
    match caller {
        // An agent shows its certificate to the handler; what that is worth the store judges. A session may be one that
        // can only set up a sign-in, which the handler asks for by its own type.
        Caller::Anyone | Caller::Agent | Caller::Session => {}
        Caller::Operator(access) => {
            let operator = authenticate(&parts, &hub).await?;
            decide(&hub, *access, &operator, &mut parts).await?;
            parts.extensions.insert(operator);
        }
    }
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// The answer to a method that no table has for this path.
fn not_allowed(path: &str) -> Response {
    let mut verbs: Vec<&str> = CALLERS.keys().filter(|(of, _)| *of == path).map(|(_, verb)| *verb).collect();
    // What is read is answered without its body, too.
    if verbs.contains(&"GET") {
        verbs.push("HEAD");
    }
    verbs.sort_unstable();
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, verbs.join(","))]).into_response()
}

/// Decides the page or the form that stands for a call.
pub(super) async fn decide_page(
    hub: &Arc<Hub>,
    (verb, path): (&Method, &str),
    operator: &Operator,
    parts: &mut Parts,
) -> Result<(), ApiError> {
    match CALLERS.get(&(path, verb.as_str())) {
        Some(Caller::Operator(access)) => decide(hub, *access, operator, parts).await,
        Some(Caller::Anyone | Caller::Agent | Caller::Session) | None => Err(ApiError::not_found("page")),
    }
}

/// Whether a call that lists is answered to them, whole or narrowed to their scope.
pub(super) fn may_list(operator: &Operator, path: &str) -> bool {
    may_call(operator, &Method::GET, path)
}

/// Whether a call is answered to them for something within their scope.
pub(super) fn may_call(operator: &Operator, verb: &Method, path: &str) -> bool {
    let Some(Caller::Operator(access)) = CALLERS.get(&(path, verb.as_str())) else { return false };
    let grant = &operator.grant;
    match access.verdict(grant.role(), Reach::from(grant.scope()), Place::Inside) {
        Verdict::Allowed | Verdict::Narrowed => true,
        Verdict::Forbidden | Verdict::Hidden => false,
    }
}

async fn decide(
    hub: &Arc<Hub>,
    access: Access,
    operator: &Operator,
    parts: &mut Parts,
) -> Result<(), ApiError> {
    let grant = &operator.grant;
    if !access.suffices(grant.role()) {
        return Err(forbidden(operator, access));
    }
    let Path(named) = Path::<PathParts>::from_request_parts(parts, hub)
        .await
        .map_err(|_| ApiError::not_found(access.object.as_str()))?;
    let place = place(hub, access.object, operator, &named).await?;
    match access.verdict(grant.role(), Reach::from(grant.scope()), place) {
        Verdict::Allowed | Verdict::Narrowed => Ok(()),
        Verdict::Forbidden => Err(forbidden(operator, access)),
        Verdict::Hidden => Err(ApiError::not_found(access.object.as_str())),
    }
}

fn forbidden(operator: &Operator, access: Access) -> ApiError {
    let (who, grant) = (operator.principal.name(), &operator.grant);
    let why = if access.suffices(grant.role()) {
        format!("the {} is beyond that scope", access.object.as_str())
    } else {
        format!("this needs {}", access.least.as_str())
    };
    ApiError::new(ErrorCode::Forbidden, format!("{who} is {grant} here, and {why}: ask an admin of the hub"))
}

/// Where the object lies. It is looked up only where the answer depends on it.
async fn place(hub: &Hub, object: Object, operator: &Operator, named: &PathParts) -> Result<Place, ApiError> {
    let part = |name: &str| named.get(name).map_or("", String::as_str);
    let (grant, missing) = (&operator.grant, || ApiError::not_found(object.as_str()));
    let is_inside = match object {
        Object::Hub | Object::Caller | Object::List | Object::Customers | Object::Releases => true,
        // A machine makes no tokens and no people: who holds its secret could go on after it was revoked.
        Object::New => match operator.principal {
            Principal::Person { .. } => true,
            Principal::Machine { .. } => return Err(machine(operator)),
        },
        Object::Person => {
            if let Principal::Machine { .. } = operator.principal {
                return Err(machine(operator));
            }
            let name = part("name").parse().map_err(|_| missing())?;
            hub.store.operator(name).await?.is_some_and(|record| grant.covers(&record.grant))
        }
        Object::Token => token(hub, operator, part("name")).await?,
        Object::Host
        | Object::Guest
        | Object::Alert
        | Object::Job
        | Object::Customer
        | Object::CustomerEntry
        | Object::Rollout
        | Object::Silence
            if grant.scope().is_everything() =>
        {
            true
        }
        Object::Customer | Object::CustomerEntry => customer(hub, grant, part("customer")).await?,
        Object::Rollout => {
            let number = part("number").parse().map_err(|_| missing())?;
            hub.store.rollout_within(grant.scope().clone(), number, hub.clock.now()).await?.is_some()
        }
        Object::Silence => {
            let all = hub.store.silences_within(grant.scope().clone(), hub.clock.now()).await?;
            all.iter().any(|silence| silence.id.to_string() == part("id"))
        }
        Object::Host => is_within(hub, grant, ObjectRef::Host(host_ref(part("host"))?)).await?,
        Object::Guest => {
            let guest = part("guest").parse().map_err(|_| missing())?;
            is_within(hub, grant, ObjectRef::Guest(host_ref(part("host")).map_err(|_| missing())?, guest))
                .await?
        }
        Object::Job => {
            let job = part("job").parse().map_err(|_| missing())?;
            is_within(hub, grant, ObjectRef::Job(job)).await?
        }
        Object::Alert => alert(hub, grant, part("id")).await?,
    };
    Ok(if is_inside { Place::Inside } else { Place::Outside })
}

async fn is_within(hub: &Hub, grant: &Grant, object: ObjectRef) -> Result<bool, StoreError> {
    let facts = hub.store.object_facts(object).await?;
    Ok(facts.is_some_and(|facts| grant.scope().holds(&facts)))
}

/// A customer lies in its own scope, and in that of hosts that have guests of it.
async fn customer(hub: &Hub, grant: &Grant, name: &str) -> Result<bool, StoreError> {
    let Ok(name) = name.parse::<CustomerId>() else { return Ok(false) };
    match grant.scope() {
        AccessScope::Everything {} => Ok(true),
        AccessScope::Customer { customer } => Ok(*customer == name),
        AccessScope::Hosts { .. } => {
            let found = hub.store.customers_within(grant.scope().clone(), Some(name), None, 1).await?;
            Ok(!found.is_empty())
        }
    }
}

/// The labels of an alert's host, and the customer of its guest. The hub's own alerts have neither.
async fn alert(hub: &Hub, grant: &Grant, id: &str) -> Result<bool, ApiError> {
    use alerts::incident::{IncidentId, Scope};
    let Ok(id) = id.parse::<IncidentId>() else { return Ok(false) };
    let Some(record) = hub.store.incident(id).await? else { return Ok(false) };
    let labels = match id.scope {
        Scope::Hub => None,
        Scope::Host(host) => hub.store.object_facts(ObjectRef::Host(HostRef::Id(host))).await?,
    };
    let facts = ObjectFacts {
        labels: labels.map(|facts| facts.labels).unwrap_or_default(),
        customer: record.incident.labels.customer,
    };
    Ok(grant.scope().holds(&facts))
}

/// A token is its own, its maker's, and that of admins who stand above it.
async fn token(hub: &Hub, operator: &Operator, name: &str) -> Result<bool, ApiError> {
    let Ok(name) = name.parse() else { return Ok(false) };
    let Some(view) = hub.store.machine_token(name).await? else { return Ok(false) };
    Ok(match &operator.principal {
        Principal::Machine { name } => *name == view.name,
        Principal::Person { name, .. } => {
            *name == view.maker || stands_above(&operator.grant, view.role, view.scope)
        }
    })
}

/// Whether an admin sees and ends a token of another's.
pub(super) fn stands_above(grant: &Grant, role: Role, scope: holdfast_protocol::access::AccessScope) -> bool {
    grant.role() == Role::Admin && Grant::new(role, scope).is_ok_and(|other| grant.covers(&other))
}

fn machine(operator: &Operator) -> ApiError {
    let who = operator.principal.name();
    let says = format!(
        "{who} is a machine token, and those make no people and no tokens: log in as a person for it"
    );
    ApiError::new(ErrorCode::Forbidden, says)
}
