//! Good answers, and the local API's own layer below the frame.
//!
//! The frame is [`net::server::frame()`]. This module has what only guests meet: a pause for a guest that calls too
//! often, the methods that a path accepts, and the end of a connection whose next request cannot be located.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::local::calls::CALLS;
use net::server::{Answer, Frame, RefusalLog, refused_code};
use serde::Serialize;

use super::auth::throttle;
use super::{Local, request_guard};
use crate::port::clock::Clock;

/// The refusal of a guest that calls too often is answered after this delay. A guest that calls again as soon as it is
/// answered is slowed down on each of its few connections, and takes no time from its neighbours. A guest that waits
/// for the seconds it is given does not notice the delay.
const REFUSAL_PAUSE: Duration = Duration::from_millis(200);

/// A good answer.
#[derive(Debug)]
pub struct Data<T>(pub T);

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        Answer(StatusCode::OK, self.0).into_response()
    }
}

/// Work that was taken and is not done yet.
#[derive(Debug)]
pub struct InWork<T>(pub T);

impl<T: Serialize> IntoResponse for InWork<T> {
    fn into_response(self) -> Response {
        Answer(StatusCode::ACCEPTED, self.0).into_response()
    }
}

/// The frame around every answer. A guest could fill the log with its refusals, so they are logged only at debug level.
pub(super) fn framing(clock: &Arc<dyn Clock>) -> Frame {
    let clock = Arc::clone(clock);
    Frame { now: Arc::new(move || clock.now()), refusals: RefusalLog::Debug }
}

/// The layer below the frame: how often an address may call, then the request guard, then the call.
pub(super) async fn guests(State(local): State<Arc<Local>>, request: Request, next: Next) -> Response {
    // The guard refuses such a body unread, so it is unknown where the next request would begin.
    let last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let path = request.extensions().get::<MatchedPath>().cloned();
    let admitted = throttle(&local, &request).and_then(|()| request_guard::judge(&request));
    let mut response = match admitted {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let refused = refused_code(&response);
    if refused == Some(ErrorCode::RateLimited) {
        local.clock.sleep(REFUSAL_PAUSE).await;
    }
    let path = path.filter(|_| refused == Some(ErrorCode::MethodNotAllowed));
    if let Some(allow) = path.and_then(|path| allowed(path.as_str())) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    if last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The methods that a path takes, as it is described.
fn allowed(path: &str) -> Option<HeaderValue> {
    let methods: Vec<&str> =
        CALLS.iter().filter(|call| call.path == path).map(|call| call.method.verb()).collect();
    HeaderValue::from_str(&methods.join(", ")).ok()
}
