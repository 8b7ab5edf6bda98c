//! Pages of customers, and the form of a new one.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use holdfast_protocol::filter::GuestFilter;
use hub_page::customers::{self as page_of_customers, TypedCustomer};
use hub_page::frame::Section;
use hub_page::sheet::Notice;
use net::server::Answer;
use serde_json::{Map, Value, json};

use super::super::answer::{page, status, to_page};
use super::super::form::Fields;
use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::{shown, still};
use crate::api::mutation::Head;
use crate::api::page::CheckedQuery;
use crate::api::{Hub, customers as customers_call, guests as guests_call};

/// Guests of a customer on its page.
const GUESTS_SHOWN: u32 = 100;

pub(super) async fn list(State(hub): State<Arc<Hub>>, person: Person, RawQuery(query): RawQuery) -> Response {
    let frame = person.frame(&hub, Section::Customers);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]).checked()?;
        let Answer(_, found) =
            customers_call::list(State(Arc::clone(&hub)), person.operator.clone(), asked).await?;
        let typed = TypedCustomer::default();
        let next = found.next.as_deref();
        Ok(page_of_customers::render(&frame, &found.items, next, &typed, Notice::Nothing))
    };
    shown(&frame, html.await)
}

pub(super) async fn one(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(customer): Path<String>,
) -> Response {
    let frame = person.frame(&hub, Section::Customers);
    let html = async {
        let view = customers_call::one_view(&hub, &person.operator, &customer).await?;
        let filter: Option<GuestFilter> = format!("@customer-{}", view.name).parse().ok();
        let query = guests_call::GuestQuery { limit: Some(GUESTS_SHOWN), filter, ..Default::default() };
        let found =
            guests_call::list(State(Arc::clone(&hub)), person.operator.clone(), CheckedQuery(query)).await?;
        let Answer(_, guests) = found;
        Ok(page_of_customers::one(&frame, &view, &guests.items, guests.next.is_some()))
    };
    shown(&frame, html.await)
}

pub(super) async fn add(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    let typed = |name| fields.optional(name).unwrap_or_default().to_owned();
    let typed =
        TypedCustomer { name: typed("name"), display_name: typed("display_name"), mail: typed("mail") };
    let body = Body::from(request(&typed).to_string());
    let error = match customers_call::add(State(Arc::clone(&hub)), head, body).await {
        Ok(_) => return to_page(&format!("/customers/{}", typed.name)),
        Err(error) => error,
    };
    let (code, message) = error.shown();
    let frame = still(&hub, &person);
    let asked = AskedFields::of(None, &[]).checked();
    let found = match asked {
        Ok(asked) => customers_call::list(State(Arc::clone(&hub)), person.operator.clone(), asked).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(Answer(_, found)) => {
            let (next, notice) = (found.next.as_deref(), Notice::Refused(&message));
            page(status(code), page_of_customers::render(&frame, &found.items, next, &typed, notice))
        }
        Err(error) => shown(&frame, Err(error)),
    }
}

/// What the call takes. A field that was left empty is not in it.
fn request(typed: &TypedCustomer) -> Value {
    let mut fields = Map::new();
    if !typed.display_name.is_empty() {
        fields.insert("display_name".to_owned(), json!(typed.display_name));
    }
    if !typed.mail.is_empty() {
        fields.insert("contact".to_owned(), json!({ "kind": "mail", "address": typed.mail }));
    }
    json!({ "name": typed.name, "fields": fields })
}
