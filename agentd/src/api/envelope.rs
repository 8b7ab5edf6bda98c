//! The frame around every answer: ids in, envelope out.
//!
//! Handlers answer [`Data`] or an [`ApiError`]; both carry an [`Outcome`] out to the one place that writes bytes, so an
//! answer that is not in the envelope cannot be sent, but for the one that describes all others and the bytes of an
//! artifact. What the router itself refuses (a path, a method) gets the same form.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::{
    CORRELATION_ID_HEADER, Envelope, EnvelopeSchema, Metadata, REQUEST_ID_HEADER,
};
use holdfast_protocol::id::{CorrelationId, RequestId};
use holdfast_protocol::local::calls::CALLS;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::error::ApiError;
use super::outcome::{Outcome, carry};
use crate::port::clock::Clock;

/// So long after it was asked a guest hears that it asks too often. Whoever asks as fast as it is answered is slowed down by
/// that on each of its few connections, and takes no time from its neighbours; whoever waits as it is told to, by seconds,
/// does not notice.
const REFUSAL_PAUSE: Duration = Duration::from_millis(200);

/// The ids of one request, as the caller gave them or made here.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    /// Names the request.
    pub request: RequestId,
    /// Names the request it belongs to.
    pub correlation: CorrelationId,
}

impl Ids {
    fn of(headers: &HeaderMap) -> Self {
        let given = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .and_then(|text| Uuid::parse_str(text).ok())
        };
        let request = given(REQUEST_ID_HEADER).unwrap_or_else(Uuid::now_v7);
        let correlation = given(CORRELATION_ID_HEADER).unwrap_or(request);
        Self { request: RequestId::new(request), correlation: CorrelationId::new(correlation) }
    }
}

/// A good answer.
#[derive(Debug)]
pub struct Data<T>(pub T);

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        match serde_json::to_value(&self.0) {
            Ok(value) => carry(Outcome::Data(value)),
            Err(error) => ApiError::Unwritable(error).into_response(),
        }
    }
}

/// Work that was taken and is not done yet.
#[derive(Debug)]
pub struct InWork<T>(pub T);

impl<T: Serialize> IntoResponse for InWork<T> {
    fn into_response(self) -> Response {
        match serde_json::to_value(&self.0) {
            Ok(value) => carry(Outcome::InWork(value)),
            Err(error) => ApiError::Unwritable(error).into_response(),
        }
    }
}

/// The description of the API.
pub(super) fn described(document: &'static Value) -> Response {
    carry(Outcome::Description(document))
}

/// Bytes as they are.
pub(super) fn bytes(body: Body) -> Response {
    let mut response = Response::new(body);
    response.extensions_mut().insert(Outcome::Bytes);
    response
}

/// The outermost layer.
pub async fn frame(State(clock): State<Arc<dyn Clock>>, mut request: Request, next: Next) -> Response {
    let ids = Ids::of(request.headers());
    request.extensions_mut().insert(ids);
    // The door refuses such a body unread, and nobody knows where the next request would begin.
    let last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let path = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let outcome = response.extensions_mut().remove::<Outcome>().unwrap_or_else(|| {
        // Only the router itself answers without an outcome: no such path.
        let problem = ApiError::NoSuchCall.problem();
        Outcome::ErrorBody { problem, retry_after_s: None }
    });
    if matches!(&outcome, Outcome::ErrorBody { problem, .. } if problem.code == ErrorCode::RateLimited) {
        clock.sleep(REFUSAL_PAUSE).await;
    }
    let refused =
        matches!(&outcome, Outcome::ErrorBody { problem, .. } if problem.code == ErrorCode::MethodNotAllowed);
    let mut response = match outcome {
        Outcome::Bytes => named(ids, response, "application/octet-stream"),
        other => write(ids, other, clock.now()),
    };
    if let Some(allow) = path.filter(|_| refused).and_then(|path| allowed(path.as_str())) {
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

fn write(ids: Ids, outcome: Outcome, now: jiff::Timestamp) -> Response {
    let (status, retry_after_s, data, error) = match outcome {
        Outcome::Data(value) => (StatusCode::OK, None, Some(value), None),
        Outcome::InWork(value) => (StatusCode::ACCEPTED, None, Some(value), None),
        Outcome::ErrorBody { problem, retry_after_s } => {
            let status = StatusCode::from_u16(problem.code.http_status());
            (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), retry_after_s, None, Some(problem))
        }
        Outcome::Description(document) => return send(ids, StatusCode::OK, document),
        // Whoever carries bytes carries them in the answer itself.
        Outcome::Bytes => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let envelope = Envelope {
        schema_version: EnvelopeSchema::V1,
        request_id: ids.request,
        correlation_id: ids.correlation,
        data,
        error,
        metadata: Metadata { timestamp: now },
    };
    let mut response = send(ids, status, &envelope);
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn send(ids: Ids, status: StatusCode, document: &impl Serialize) -> Response {
    let Ok(body) = serde_json::to_vec(document) else {
        // Names and values that came out of serde a moment ago go into it again; there is nothing better to say.
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    named(ids, response, "application/json")
}

fn named(ids: Ids, mut response: Response, content: &'static str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, id) in
        [(REQUEST_ID_HEADER, ids.request.uuid()), (CORRELATION_ID_HEADER, ids.correlation.uuid())]
    {
        if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
            headers.insert(name, value);
        }
    }
    response
}
