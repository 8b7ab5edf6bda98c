//! The frame of every answer: ids, envelope, headers and one log line.
//!
//! The router's own answers (such as for a method that a path does not take) are framed too. So an answer outside the
//! envelope can be sent only when its handler says so.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::{
    CORRELATION_ID_HEADER, Envelope, EnvelopeSchema, ErrorBody, Metadata, REQUEST_ID_HEADER,
};
use holdfast_protocol::id::{CorrelationId, RequestId};
use jiff::Timestamp;
use uuid::Uuid;

use super::answer::{Content, Refused};

/// The ids of a request, as the caller gave them or made here.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    /// Names the request.
    pub request: RequestId,
    /// Names the piece of work it belongs to.
    pub correlation: CorrelationId,
}

impl Ids {
    fn of(headers: &HeaderMap) -> Self {
        let given = |name: &str| headers.get(name)?.to_str().ok()?.parse::<Uuid>().ok();
        let request = given(REQUEST_ID_HEADER).unwrap_or_else(Uuid::now_v7);
        let correlation = given(CORRELATION_ID_HEADER).unwrap_or(request);
        Self { request: RequestId::new(request), correlation: CorrelationId::new(correlation) }
    }
}

impl<S: Sync> FromRequestParts<S> for Ids {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        // The frame put them there; a route outside it would be our own mistake.
        parts.extensions.get::<Self>().copied().ok_or_else(|| Refused::internal("a request without ids"))
    }
}

/// At which level refusals are logged. Faults of the program are errors everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalLog {
    /// They are events of interest.
    Info,
    /// Callers could fill the log with them.
    Debug,
}

/// The settings of a program for its frame.
#[derive(Clone)]
pub struct Frame {
    /// The clock of the answer's time.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub refusals: RefusalLog,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("refusals", &self.refusals).finish_non_exhaustive()
    }
}

/// The outermost layer.
pub async fn frame(State(frame): State<Frame>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let ids = Ids::of(request.headers());
    request.extensions_mut().insert(ids);
    let method = request.method().clone();
    // The route, never the path: a requested path may hold anything.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let content =
        response.extensions_mut().remove::<Content>().unwrap_or_else(|| by_status(response.status()));
    let (status, ms) =
        (response.status().as_u16(), u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let (request_id, correlation_id) = (ids.request, ids.correlation);
    match &content {
        Content::Refused(Refused { problem, cause, .. })
            if problem.code == ErrorCode::Internal || cause.is_some() =>
        {
            let cause = cause.as_deref().unwrap_or("none given");
            tracing::error!(action = %method, route, status, ms, result = %problem.code, %request_id, %correlation_id, cause);
        }
        Content::Refused(Refused { problem, .. }) if frame.refusals == RefusalLog::Info => {
            tracing::info!(action = %method, route, status, ms, result = %problem.code, %request_id, %correlation_id);
        }
        Content::Refused(Refused { problem, .. }) => {
            tracing::debug!(action = %method, route, status, ms, result = %problem.code, %request_id, %correlation_id);
        }
        Content::Data(_) | Content::AsItIs => {
            tracing::debug!(action = %method, route, status, ms, result = "ok", %request_id, %correlation_id);
        }
    }
    write(response, content, ids, (frame.now)())
}

/// The router's answer without a handler.
fn by_status(status: StatusCode) -> Content {
    let problem = match status {
        StatusCode::METHOD_NOT_ALLOWED => ErrorBody::new(
            ErrorCode::MethodNotAllowed,
            "this path does not take this method: see the Allow header",
        ),
        _ => ErrorBody::new(ErrorCode::Internal, "the server had nothing to say: look in its log"),
    };
    Content::Refused(Refused::new(problem))
}

fn write(mut response: Response, content: Content, ids: Ids, now: Timestamp) -> Response {
    let (data, error) = match content {
        Content::Data(data) => (Some(data), None),
        Content::Refused(refused) => (None, Some(refused.problem)),
        Content::AsItIs => return named(response, ids),
    };
    let envelope = Envelope {
        schema_version: EnvelopeSchema::V1,
        request_id: ids.request,
        correlation_id: ids.correlation,
        data,
        error,
        metadata: Metadata { timestamp: now },
    };
    match serde_json::to_vec(&envelope) {
        Ok(bytes) => *response.body_mut() = Body::from(bytes),
        Err(error) => {
            tracing::error!(action = "frame", result = "failed", request_id = %ids.request, error = %error);
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    named(response, ids)
}

fn named(mut response: Response, ids: Ids) -> Response {
    let headers = response.headers_mut();
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
