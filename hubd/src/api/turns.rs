//! Concurrency limits of the hub, by audience.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use net::server::turns::in_turn;

use super::Hub;

pub(super) async fn agents(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    in_turn(&hub.concurrency.agents, request, next).await
}

pub(super) async fn operators(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    in_turn(&hub.concurrency.operators, request, next).await
}

pub(super) async fn strangers(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    in_turn(&hub.concurrency.strangers, request, next).await
}
