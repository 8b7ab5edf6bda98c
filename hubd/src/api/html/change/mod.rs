//! Pages that change documents, and those that bring hosts in.
//!
//! In: a form of a session. Out: a page with the form again, a review of what the change would do, or the way to what was
//! made. A page stands for the call that it makes, and that call's own code reads, judges and makes the change.
//! Deliberately absent: rules of documents.
//!
//! | module | pages |
//! | --- | --- |
//! | [`part`] | a form for a new or an existing part, its review, its change |
//! | [`collision`] | a change that somebody else came before |
//! | [`removal`] | leaving a part out |
//! | [`document`] | the text of the document, its editor |
//! | [`versions`] | history, one version, rollback |
//! | [`enrollment`] | invites, requests of hosts |
//! | [`submission`] | what a form of a change sent |

mod collision;
mod document;
mod enrollment;
mod part;
mod part_page;
mod removal;
mod submission;
mod versions;

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};

use super::person::{self, FormBody};
use crate::api::Hub;

pub(super) fn routes(hub: &Arc<Hub>) -> Router<Arc<Hub>> {
    let form = || get(part::form).post(part::submit);
    let removal = || get(removal::form).post(removal::submit);
    Router::new()
        .route("/hosts/{host}/guests/new", form())
        .route("/hosts/{host}/guests/{guest}/edit", form())
        .route("/hosts/{host}/guests/{guest}/delete", removal())
        .route("/hosts/{host}/guests/{guest}/volumes/new", form())
        .route("/hosts/{host}/guests/{guest}/volumes/{volume}/edit", form())
        .route("/hosts/{host}/guests/{guest}/volumes/{volume}/delete", removal())
        .route("/hosts/{host}/storage-targets/new", form())
        .route("/hosts/{host}/storage-targets/{target}/edit", form())
        .route("/hosts/{host}/storage-targets/{target}/delete", removal())
        .route("/hosts/{host}/policies/new", form())
        .route("/hosts/{host}/policies/{policy}/edit", form())
        .route("/hosts/{host}/policies/{policy}/delete", removal())
        .route("/hosts/{host}/desired", get(document::show))
        .route("/hosts/{host}/desired/edit", get(document::form).post(document::submit))
        .route("/hosts/{host}/desired/history", get(versions::list))
        .route("/hosts/{host}/desired/history/{generation}", get(versions::show))
        .route("/hosts/{host}/desired/rollback", post(versions::roll_back))
        .route("/invites/new", get(enrollment::form).post(enrollment::invite))
        .route("/enrollment-requests/{id}", get(enrollment::show).post(enrollment::decide))
        .layer(middleware::from_fn_with_state(Arc::clone(hub), require))
}

/// Decides a page by the call that it makes in the end.
async fn require(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let call = call_of(path);
    person::decided(&hub, (request, next), call, FormBody::LeftToHandler).await
}

/// The call that a page stands for.
fn call_of(page: &str) -> (Method, String) {
    let of = |verb, path: &str| (verb, format!("/v1{path}"));
    match page.rsplit_once('/') {
        Some((part, "edit")) => of(Method::PUT, part),
        Some((all, "new")) => of(Method::POST, all),
        Some((part, "delete")) => of(Method::DELETE, part),
        Some((_, "rollback")) => of(Method::POST, page),
        Some(("/enrollment-requests", _)) => of(Method::POST, &format!("{page}/approve")),
        Some(_) | None => of(Method::GET, page),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_stands_for_its_call() {
        for (page, verb, path) in [
            ("/hosts/{host}/guests/new", Method::POST, "/v1/hosts/{host}/guests"),
            ("/hosts/{host}/guests/{guest}/edit", Method::PUT, "/v1/hosts/{host}/guests/{guest}"),
            ("/hosts/{host}/policies/{policy}/delete", Method::DELETE, "/v1/hosts/{host}/policies/{policy}"),
            ("/hosts/{host}/desired/edit", Method::PUT, "/v1/hosts/{host}/desired"),
            ("/hosts/{host}/desired/rollback", Method::POST, "/v1/hosts/{host}/desired/rollback"),
            ("/hosts/{host}/desired/history", Method::GET, "/v1/hosts/{host}/desired/history"),
            ("/invites/new", Method::POST, "/v1/invites"),
            ("/enrollment-requests/{id}", Method::POST, "/v1/enrollment-requests/{id}/approve"),
        ] {
            assert_eq!(call_of(page), (verb.clone(), path.to_owned()), "{page}");
            let known = holdfast_protocol::hub::calls()
                .any(|call| call.path == path && call.method.verb() == verb.as_str());
            assert!(known, "{verb} {path}");
        }
    }
}
