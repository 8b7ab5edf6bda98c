//! Work orders: their forms and pages.
//!
//! In: a form with the session's token, an act of the closed list, and what makes it one order however often it is sent. Out:
//! the order, made by the call of `/v1` with the same path, and the page that the form was on. Deliberately absent:
//! everything that needs a signature.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::work_order::{DiagnosticName, OrderAct, RestartTiming, WorkOrderRequest};
use hub_page::frame::Section;
use hub_page::orders as page_of_orders;
use net::server::Answer;

use super::answer::{page, problem, to_page};
use super::form::Fields;
use super::person::Person;
use crate::api::hosts::host_ref;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, work_orders};

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

pub(super) async fn make(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(host): Path<String>,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    match ordered(hub.clone(), host, &fields, head).await {
        Ok(back) => to_page(&back),
        Err(error) => problem(&person.frame(&hub, Section::Hosts), error),
    }
}

/// Makes the order and gives the address of the page that it was asked for on.
async fn ordered(hub: Arc<Hub>, host: String, fields: &Fields, head: Head) -> Result<String, ApiError> {
    // A name or an id: nothing in it leads to another address.
    host_ref(&host)?;
    let act = act_of(fields)?;
    let back = match act.guest() {
        Some(guest) => format!("/hosts/{host}/guests/{guest}#orders"),
        None => format!("/hosts/{host}#orders"),
    };
    let json = serde_json::to_vec(&WorkOrderRequest { act, life_s: None });
    let json = json.map_err(|error| ApiError::internal(format!("an order is no JSON: {error}")))?;
    work_orders::make(State(hub), Path(host), head, Body::from(json)).await?;
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
