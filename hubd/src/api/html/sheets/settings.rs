//! Pages of settings: what there is, channels, certificates.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use hub_page::frame::Section;
use hub_page::settings::{self as page_of_settings, AuthorityFacts, SettingsPage};
use hub_page::sheet::Notice;
use net::server::Answer;

use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::{shown, still};
use crate::api::alerts::receivers as receivers_call;
use crate::api::auth::Operator;
use crate::api::authorize::may_list;
use crate::api::mutation::Head;
use crate::api::{Hub, hosts as hosts_call};

/// The pages that the person may open.
pub(super) fn open(operator: &Operator) -> Vec<SettingsPage> {
    let call = |page: &SettingsPage| match page {
        SettingsPage::Certificates => "/v1/hosts".to_owned(),
        SettingsPage::Operators
        | SettingsPage::Tokens
        | SettingsPage::Receivers
        | SettingsPage::Deliveries => {
            format!("/v1{}", page.path())
        }
    };
    SettingsPage::ALL.into_iter().filter(|page| may_list(operator, &call(page))).collect()
}

pub(super) async fn index(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Settings);
    shown(&frame, Ok(page_of_settings::index(&frame, &open(&person.operator))))
}

pub(super) async fn receivers(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Settings);
    let found = receivers_call::list(State(Arc::clone(&hub)), person.operator.clone()).await;
    let html = found.map(|Answer(_, page)| {
        page_of_settings::receivers(&frame, &open(&person.operator), &page.items, Notice::Nothing)
    });
    shown(&frame, html)
}

pub(super) async fn test(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(name): Path<String>,
    head: Head,
) -> Response {
    let frame = still(&hub, &person);
    let html = async {
        let state = || State(Arc::clone(&hub));
        let Answer(_, queued) = receivers_call::test(state(), Path(name), head, Body::empty()).await?;
        let Answer(_, found) = receivers_call::list(state(), person.operator.clone()).await?;
        let says = format!(
            "Two notices go to {}: that something fires, and that it is over. What became of them is under Deliveries.",
            queued.receiver
        );
        let (open, notice) = (open(&person.operator), Notice::Done(&says));
        Ok(page_of_settings::receivers(&frame, &open, &found.items, notice))
    };
    shown(&frame, html.await)
}

pub(super) async fn deliveries(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Settings);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]).checked()?;
        let found = receivers_call::deliveries(State(Arc::clone(&hub)), person.operator.clone(), asked);
        let Answer(_, page) = found.await?;
        let open = open(&person.operator);
        Ok(page_of_settings::deliveries(&frame, &open, &page.items, page.next.as_deref()))
    };
    shown(&frame, html.await)
}

pub(super) async fn certificates(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Settings);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]).checked()?;
        let found = hosts_call::list(State(Arc::clone(&hub)), person.operator.clone(), asked);
        let Answer(_, hosts) = found.await?;
        let authority = authority(&hub);
        let open = open(&person.operator);
        let (hosts, next) = (hosts.items, hosts.next);
        Ok(page_of_settings::certificates(&frame, &open, &authority, &hosts, next.as_deref()))
    };
    shown(&frame, html.await)
}

/// Pins of certificates, which every host and every invite has.
fn authority(hub: &Hub) -> AuthorityFacts {
    let cas = hub.authority.cas();
    AuthorityFacts {
        serving: cas.serving().pin().to_string(),
        change: cas.change().map(|_| cas.issuing().pin().to_string()),
        former: cas.former().map(|pin| pin.to_string()),
    }
}
