//! `/v1/hosts/{id or name}/guests`, `…/storage-targets`, `…/policies`: parts of the host's document.
//!
//! In: the path of a part, its content, `If-Match`. Out: its three states, or what came of a change. One set of handlers
//! serves every kind of part; `address` says which one a path names. A change is the change of the whole document
//! (`document_change`). Deliberately absent: networks, since a guest's network has no name of its own.

pub(super) mod address;
mod change;
pub(super) mod read;

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get};

use super::Hub;

pub(super) use self::address::Address;
pub(super) use self::change::{DeleteQuery, create, delete, put};

fn all() -> MethodRouter<Arc<Hub>> {
    get(read::list).post(change::create)
}

fn one() -> MethodRouter<Arc<Hub>> {
    get(read::show).put(change::put).patch(change::patch).delete(change::delete)
}

pub(super) fn routes() -> Router<Arc<Hub>> {
    Router::new()
        .route("/v1/hosts/{host}/guests", all())
        .route("/v1/hosts/{host}/guests/{guest}", one())
        .route("/v1/hosts/{host}/guests/{guest}/volumes", all())
        .route("/v1/hosts/{host}/guests/{guest}/volumes/{volume}", one())
        .route("/v1/hosts/{host}/storage-targets", all())
        .route("/v1/hosts/{host}/storage-targets/{target}", one())
        .route("/v1/hosts/{host}/policies", all())
        .route("/v1/hosts/{host}/policies/{policy}", one())
}
