//! The first page of a customer, and restore certificates of guests.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use holdfast_protocol::restore_certificate::CertificateView;
use hub_page::RenderError;
use hub_page::frame::{Frame, Section};
use hub_page::own::{self as page_of_own, Own};
use hub_page::restore_certificate as page_of_certificate;
use net::server::Answer;

use super::super::answer::file;
use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::shown;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::{Hub, alerts, guest_jobs, guests as guests_call, restore_certificates};

/// Guests on the page. The list of guests has all of them.
const GUESTS_SHOWN: u32 = 100;

pub(in crate::api::html) async fn start(hub: &Arc<Hub>, person: &Person, frame: &Frame) -> Response {
    shown(frame, page_of(hub, person, frame).await)
}

async fn page_of(
    hub: &Arc<Hub>,
    person: &Person,
    frame: &Frame,
) -> Result<Result<String, RenderError>, ApiError> {
    let (state, operator) = (|| State(Arc::clone(hub)), || person.operator.clone());
    let query = guests_call::GuestQuery { limit: Some(GUESTS_SHOWN), ..Default::default() };
    let Answer(_, guests) = guests_call::list(state(), operator(), CheckedQuery(query)).await?;
    let Answer(_, incidents) = alerts::firing(state(), operator()).await?;
    let Answer(_, jobs) =
        guest_jobs::list(state(), operator(), AskedFields::of(None, &[]).checked()?).await?;
    let own = Own {
        guests: &guests.items,
        has_more: guests.next.is_some(),
        incidents: &incidents.items,
        jobs: &jobs.items,
    };
    Ok(page_of_own::render(frame, &own))
}

type GuestPath = Path<(String, String)>;

async fn newest(hub: &Arc<Hub>, person: &Person, path: GuestPath) -> Result<CertificateView, ApiError> {
    let found = restore_certificates::newest(State(Arc::clone(hub)), person.operator.clone(), path).await;
    found.map(|Answer(_, view)| view)
}

pub(super) async fn certificate(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, guest)): GuestPath,
) -> Response {
    let frame = person.frame(&hub, Section::Guests);
    let html = async {
        let page = format!("/hosts/{host}/guests/{guest}");
        let view = newest(&hub, &person, Path((host, guest))).await?;
        let read = view.certificate.read();
        let certificate = read.map_err(|error| ApiError::internal(error.to_string()))?;
        Ok(page_of_certificate::render(&frame, &page, &certificate, view.hub_key.as_str()))
    };
    shown(&frame, html.await)
}

/// As `holdfast guest certificate --json` writes it.
pub(super) async fn certificate_file(
    State(hub): State<Arc<Hub>>,
    person: Person,
    path: GuestPath,
) -> Response {
    let text = async {
        let view = newest(&hub, &person, path).await?;
        let text = serde_json::to_string_pretty(&view.certificate);
        text.map_err(|error| ApiError::internal(error.to_string()))
    };
    match text.await {
        Ok(text) => file("attachment; filename=\"certificate.json\"", text + "\n"),
        Err(error) => shown(&person.frame(&hub, Section::Guests), Err(error)),
    }
}
