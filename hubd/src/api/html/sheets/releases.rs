//! Pages of golden images, releases and rollouts, and the forms on them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use holdfast_protocol::release::rollout::RolloutView;
use hub_page::frame::Section;
use hub_page::sheet::Notice;
use hub_page::{images as page_of_images, releases as page_of_releases, rollouts as page_of_rollouts};
use net::server::Answer;

use super::super::person::Person;
use super::outcome::{shown, went};
use super::parts::reports;
use crate::api::authorize::may_list;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, image_approvals, releases as releases_call, rollouts as rollouts_call};

pub(super) async fn images(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Images);
    let html = async {
        let hosts = reports(&hub, &person, query.as_deref()).await?;
        let approvals = match may_list(&person.operator, "/v1/image-approvals") {
            true => Some(image_approvals::list(State(Arc::clone(&hub)), person.operator.clone()).await?),
            false => None,
        };
        let approvals = approvals.map(|Answer(_, page)| page.items);
        Ok(page_of_images::render(&frame, &hosts.items, approvals.as_deref(), hosts.next.as_deref()))
    };
    shown(&frame, html.await)
}

pub(super) async fn approvals(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Images);
    let found = image_approvals::list(State(Arc::clone(&hub)), person.operator.clone()).await;
    shown(&frame, found.map(|Answer(_, page)| page_of_images::approvals(&frame, &page.items)))
}

pub(super) async fn approval(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(job): Path<String>,
) -> Response {
    let frame = person.frame(&hub, Section::Images);
    let found = image_approvals::show(State(Arc::clone(&hub)), person.operator.clone(), Path(job)).await;
    shown(&frame, found.map(|Answer(_, one)| page_of_images::approval(&frame, &one, Notice::Nothing)))
}

pub(super) async fn withdraw(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(job): Path<String>,
    head: Head,
) -> Response {
    let next = format!("/image-approvals/{job}");
    let done = image_approvals::withdraw(State(Arc::clone(&hub)), Path(job), head, Body::empty()).await;
    went(&hub, &person, done, &next)
}

pub(super) async fn list(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Releases);
    let html = async {
        let state = || State(Arc::clone(&hub));
        let Answer(_, releases) = releases_call::list(state(), person.operator.clone()).await?;
        // Both calls are of the hub itself, for the same people.
        let Answer(_, rollouts) = rollouts_call::list(state(), person.operator.clone()).await?;
        Ok(page_of_releases::render(&frame, &releases.items, &rollouts.items))
    };
    shown(&frame, html.await)
}

pub(super) async fn rollouts(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Releases);
    let found = rollouts_call::list(State(Arc::clone(&hub)), person.operator.clone()).await;
    shown(&frame, found.map(|Answer(_, page)| page_of_rollouts::render(&frame, &page.items)))
}

pub(super) async fn rollout(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(number): Path<String>,
) -> Response {
    let frame = person.frame(&hub, Section::Releases);
    let found = rollouts_call::show(State(Arc::clone(&hub)), person.operator.clone(), Path(number)).await;
    shown(&frame, found.map(|Answer(_, one)| page_of_rollouts::one(&frame, &one, Notice::Nothing)))
}

fn back(hub: &Hub, person: &Person, number: &str, done: Result<Answer<RolloutView>, ApiError>) -> Response {
    went(hub, person, done, &format!("/rollouts/{number}"))
}

macro_rules! actions {
    ($($name:ident),*) => {$(
        pub(super) async fn $name(
            State(hub): State<Arc<Hub>>,
            person: Person,
            Path(number): Path<String>,
            head: Head,
        ) -> Response {
            let path = Path(number.clone());
            let done = rollouts_call::$name(State(Arc::clone(&hub)), path, head, Body::empty()).await;
            back(&hub, &person, &number, done)
        }
    )*};
}

actions!(start, pause, resume, take_back, abort);
