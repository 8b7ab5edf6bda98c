//! Work orders: their forms and pages.
//!
//! In: a form with the session's token, an act of the closed list, and what makes it one order however often it is sent. Out:
//! the order, made by the call of `/v1` with the same path, and the page that the form was on. Deliberately absent:
//! everything that needs a signature.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::IDEMPOTENCY_KEY_HEADER;
use holdfast_protocol::sign_in::SessionKind;
use holdfast_protocol::work_order::{DiagnosticName, OrderAct, RestartTiming, WorkOrderRequest};
use hub_page::frame::Section;
use hub_page::orders as page_of_orders;
use net::server::Answer;

use super::answer::{page, problem, to, to_page};
use super::form::Fields;
use super::person::{Person, checked, frame_of, operator_of, stranger};
use crate::api::authorize::decide_page;
use crate::api::hosts::host_ref;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::sign_in::Caller;
use crate::api::{Hub, work_orders};

/// The call that the form stands for.
const CALL: &str = "/v1/hosts/{host}/work-orders";

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, order)): Path<(String, String)>,
) -> Response {
    let frame = person.frame(&hub, Section::Hosts);
    let path = Path((host.clone(), order));
    match work_orders::show(State(Arc::clone(&hub)), person.operator, path).await {
        Ok(Answer(status, detail)) => page(status, page_of_orders::render(&frame, &host, &detail)),
        Err(error) => problem(&frame, error),
    }
}

pub(super) async fn make(State(hub): State<Arc<Hub>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (caller, fields) = match checked(&hub, &parts.headers, body).await {
        Ok(Some(checked)) => checked,
        Ok(None) => return to("/sign-in"),
        Err(error) => return problem(&stranger(&hub, Section::Other), error),
    };
    if caller.record.view.kind == SessionKind::Setup {
        return to("/account");
    }
    match ordered(&hub, &caller, &fields, parts).await {
        Ok(back) => to_page(back),
        Err(error) => problem(&frame_of(&hub, &caller), error),
    }
}

/// Makes the order and gives the address of the page that it was asked for on.
async fn ordered(
    hub: &Arc<Hub>,
    caller: &Caller,
    fields: &Fields,
    mut parts: axum::http::request::Parts,
) -> Result<HeaderValue, ApiError> {
    let operator = operator_of(caller);
    decide_page(hub, (CALL, Method::POST), &operator, &mut parts).await?;
    let Path(host) =
        Path::<String>::from_request_parts(&mut parts, hub).await.map_err(|_| ApiError::not_found("host"))?;
    // A name or an id: nothing in it leads to another address.
    host_ref(&host)?;
    let act = act_of(fields)?;
    let back = match act.guest() {
        Some(guest) => format!("/hosts/{host}/guests/{guest}#orders"),
        None => format!("/hosts/{host}#orders"),
    };
    let back = HeaderValue::from_str(&back).map_err(|error| ApiError::internal(error.to_string()))?;
    if let Some(once) = fields.optional("once") {
        let once = HeaderValue::from_str(once).map_err(|_| odd("once"))?;
        parts.headers.insert(IDEMPOTENCY_KEY_HEADER, once);
    }
    parts.extensions.insert(operator);
    let head = Head::from_request_parts(&mut parts, hub).await?;
    let json = serde_json::to_vec(&WorkOrderRequest { act, life_s: None });
    let json = json.map_err(|error| ApiError::internal(format!("an order is no JSON: {error}")))?;
    work_orders::make(State(Arc::clone(hub)), Path(host), head, Body::from(json)).await?;
    Ok(back)
}

fn odd(field: &str) -> ApiError {
    let says =
        format!("the field {field} is not what the page sends, and nothing was ordered: load the page again");
    ApiError::new(ErrorCode::Range, says)
}

fn act_of(fields: &Fields) -> Result<OrderAct, ApiError> {
    let guest = || fields.required("guest")?.parse().map_err(|_| odd("guest"));
    Ok(match fields.required("act")? {
        "backup_now" => OrderAct::BackupNow { guest: guest()?, tier: None },
        "restore_test_now" => OrderAct::RestoreTestNow { guest: guest()?, tier: None },
        "restart_guest" => OrderAct::RestartGuest { guest: guest()?, timing: RestartTiming::InWindow },
        "snapshot" => {
            let name = fields.required("name")?.parse();
            let name = name.map_err(|error: holdfast_protocol::id::IdError| {
                ApiError::new(ErrorCode::Range, format!("the field name: {error}, and nothing was ordered"))
            })?;
            OrderAct::Snapshot { guest: guest()?, name, keep_s: None }
        }
        "refresh" => OrderAct::Refresh {},
        "collect_diagnostics" => {
            let name = fields.required("name")?;
            let name = DiagnosticName::ALL.into_iter().find(|one| one.as_str() == name);
            OrderAct::CollectDiagnostics { name: name.ok_or_else(|| odd("name"))?, guest: None }
        }
        _ => return Err(odd("act")),
    })
}
