//! The envelope of every answer: ids, headers and one log line.
//!
//! Handlers put what they have to say into the response's extensions; here alone it becomes bytes. What the router says
//! by itself (a method that a path does not take) is framed, too.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::{
    CORRELATION_ID_HEADER, Envelope, EnvelopeSchema, ErrorBody, Metadata, REQUEST_ID_HEADER,
};
use holdfast_protocol::id::{CorrelationId, RequestId};
use serde::Serialize;
use uuid::Uuid;

use super::Hub;
use super::content::Content;
use super::problem::ApiError;

/// The ids of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    pub request: RequestId,
    pub correlation: CorrelationId,
}

impl<S: Sync> FromRequestParts<S> for Ids {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // The frame put them there; a route outside it would be our own mistake.
        parts.extensions.get::<Self>().copied().ok_or_else(|| ApiError::internal("a request without ids"))
    }
}

/// A good answer.
pub(super) struct Answer<T>(pub StatusCode, pub T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::value::to_raw_value(&self.1) {
            Ok(data) => {
                let mut response = self.0.into_response();
                response.extensions_mut().insert(Content::Data(data));
                response
            }
            Err(error) => {
                ApiError::internal(format!("an answer that cannot be written: {error}")).into_response()
            }
        }
    }
}

fn taken<T>(headers: &HeaderMap, name: &str, make: fn(Uuid) -> T) -> T {
    let given = headers.get(name).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    make(given.unwrap_or_else(Uuid::new_v4))
}

pub(super) async fn frame(State(hub): State<Arc<Hub>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let ids = Ids {
        request: taken(request.headers(), REQUEST_ID_HEADER, RequestId::new),
        correlation: taken(request.headers(), CORRELATION_ID_HEADER, CorrelationId::new),
    };
    request.extensions_mut().insert(ids);
    let method = request.method().clone();
    // The route, never the path: what was asked for may hold anything.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let content =
        response.extensions_mut().remove::<Content>().unwrap_or_else(|| by_status(response.status()));
    let (status, ms) =
        (response.status().as_u16(), u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let (request_id, correlation_id) = (ids.request, ids.correlation);
    match &content {
        Content::ErrorBody { problem, cause } if problem.code == ErrorCode::Internal || cause.is_some() => {
            let cause = cause.as_deref().unwrap_or("none given");
            tracing::error!(action = %method, route, status, ms, result = %problem.code, %request_id, %correlation_id, cause);
        }
        Content::ErrorBody { problem, .. } => {
            tracing::info!(action = %method, route, status, ms, result = %problem.code, %request_id, %correlation_id);
        }
        Content::Data(_) => {
            tracing::debug!(action = %method, route, status, ms, result = "ok", %request_id, %correlation_id);
        }
    }
    write(response, content, ids, &hub)
}

/// What the router answers without a handler.
fn by_status(status: StatusCode) -> Content {
    let problem = match status {
        StatusCode::METHOD_NOT_ALLOWED => ErrorBody::new(
            ErrorCode::MethodNotAllowed,
            "this path does not take this method: see the Allow header",
        ),
        _ => ErrorBody::new(ErrorCode::Internal, "the hub had nothing to say: look in its log"),
    };
    Content::ErrorBody { problem, cause: None }
}

fn write(mut response: Response, content: Content, ids: Ids, hub: &Hub) -> Response {
    let (data, error) = match content {
        Content::Data(data) => (Some(data), None),
        Content::ErrorBody { problem, .. } => (None, Some(problem)),
    };
    let envelope = Envelope {
        schema_version: EnvelopeSchema::V1,
        request_id: ids.request,
        correlation_id: ids.correlation,
        data,
        error,
        metadata: Metadata { timestamp: hub.clock.now() },
    };
    match serde_json::to_vec(&envelope) {
        Ok(bytes) => *response.body_mut() = Body::from(bytes),
        Err(error) => {
            tracing::error!(action = "frame", result = "failed", request_id = %ids.request, error = %error);
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, id) in
        [(REQUEST_ID_HEADER, ids.request.uuid()), (CORRELATION_ID_HEADER, ids.correlation.uuid())]
    {
        if let Ok(value) = HeaderValue::from_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer())) {
            headers.insert(name, value);
        }
    }
    response
}
