//! Pages that are sheets, and the forms on them.
//!
//! In: a request that `person` decided. Out: a sheet of `hub-page`, made from the answer of a call of `/v1`; after a form
//! the way back to its page. Deliberately absent: rules and queries of their own.
//!
//! | module | pages |
//! | --- | --- |
//! | [`jobs`] | `/jobs…`, `/hosts/{host}/jobs…` |
//! | [`alerts`] | `/alerts…`, `/silences…` |
//! | [`log`] | `/events`, `/audit`, what is kept of audits |
//! | [`parts`] | `/storage`, `/policies`, those of one host |
//! | [`releases`] | `/images`, `/image-approvals…`, `/releases`, `/rollouts…` |
//! | [`customers`] | `/customers…` |
//! | [`settings`] | `/settings`, `/receivers…`, `/deliveries`, `/certificates` |
//! | [`operators`] | `/operators…`, `/tokens…` |
//! | [`own`] | the first page of a customer, restore certificates |
//! | [`outcome`] | what is shown after a form |

mod alerts;
mod customers;
mod jobs;
mod log;
mod operators;
mod outcome;
pub(super) mod own;
mod parts;
mod releases;
mod settings;

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use crate::api::Hub;

type Handler = MethodRouter<Arc<Hub>>;

/// Pages that are read, by path. Some of them take a form, too.
fn pages() -> Vec<(&'static str, Handler)> {
    vec![
        ("/jobs", get(jobs::all)),
        ("/hosts/{host}/jobs", get(jobs::of_host)),
        ("/hosts/{host}/jobs/{job}", get(jobs::one)),
        ("/alerts", get(alerts::list)),
        ("/alerts/log", get(alerts::log)),
        ("/alerts/{id}", get(alerts::one)),
        ("/silences", get(alerts::silences).post(alerts::add_silence)),
        ("/events", get(log::events)),
        ("/audit", get(log::audit)),
        ("/hosts/{host}/audit-heads", get(log::audit_heads)),
        ("/hosts/{host}/guests/{guest}/audit", get(log::guest_audit)),
        ("/storage", get(parts::storage)),
        ("/policies", get(parts::policies)),
        ("/hosts/{host}/storage-targets", get(parts::of_host)),
        ("/hosts/{host}/storage-targets/{target}", get(parts::one)),
        ("/hosts/{host}/policies", get(parts::of_host)),
        ("/hosts/{host}/policies/{policy}", get(parts::one)),
        ("/images", get(releases::images)),
        ("/image-approvals", get(releases::approvals)),
        ("/image-approvals/{job}", get(releases::approval)),
        ("/releases", get(releases::list)),
        ("/rollouts", get(releases::rollouts)),
        ("/rollouts/{number}", get(releases::rollout)),
        ("/customers", get(customers::list).post(customers::add)),
        ("/customers/{customer}", get(customers::one)),
        ("/settings", get(settings::index)),
        ("/receivers", get(settings::receivers)),
        ("/deliveries", get(settings::deliveries)),
        ("/certificates", get(settings::certificates)),
        ("/operators", get(operators::list).post(operators::add)),
        ("/tokens", get(operators::tokens).post(operators::make_token)),
        ("/hosts/{host}/guests/{guest}/restore-certificate", get(own::certificate)),
        ("/hosts/{host}/guests/{guest}/restore-certificate/file", get(own::certificate_file)),
    ]
}

/// Forms whose pages have another path.
fn forms() -> Vec<(&'static str, Handler)> {
    vec![
        ("/jobs/{job}/objection", post(jobs::object)),
        ("/hosts/{host}/jobs/{job}/withdraw", post(jobs::withdraw)),
        ("/alerts/{id}/acknowledge", post(alerts::acknowledge)),
        ("/alerts/{id}/unacknowledge", post(alerts::unacknowledge)),
        ("/silences/{id}/end", post(alerts::end_silence)),
        ("/image-approvals/{job}/withdraw", post(releases::withdraw)),
        ("/rollouts/{number}/start", post(releases::start)),
        ("/rollouts/{number}/pause", post(releases::pause)),
        ("/rollouts/{number}/resume", post(releases::resume)),
        ("/rollouts/{number}/take-back", post(releases::take_back)),
        ("/rollouts/{number}/abort", post(releases::abort)),
        ("/receivers/{name}/test", post(settings::test)),
        ("/operators/{name}/sign-in-link", post(operators::link)),
        ("/operators/{name}/revoke", post(operators::let_go)),
        ("/tokens/{name}/rotate", post(operators::rotate)),
        ("/tokens/{name}/revoke", post(operators::revoke)),
    ]
}

pub(super) fn routes() -> Router<Arc<Hub>> {
    let all = pages().into_iter().chain(forms());
    all.fold(Router::new(), |router, (path, handler)| router.route(path, handler))
}

/// The paths of all sheets that are read.
#[must_use]
pub fn page_paths() -> Vec<&'static str> {
    pages().into_iter().map(|(path, _)| path).collect()
}
