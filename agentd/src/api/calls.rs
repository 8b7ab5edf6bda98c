//! Calls that every listener of the local API answers.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::response::Response;
use axum::routing::MethodRouter;
use holdfast_protocol::local::{Healthy, Serving, openapi};
use net::server::as_it_is;
use serde_json::Value;

use super::Local;
use super::envelope::Data;

/// One path and what its methods do.
pub type Call = (&'static str, MethodRouter<Arc<Local>>);

pub(super) async fn healthz() -> Data<Healthy> {
    Data(Healthy { ok: Serving::Serving })
}

/// The description of all the others, made once.
pub(super) async fn openapi() -> Response {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);
    as_it_is(Json(&*DOCUMENT))
}
