//! What a handler came to, on its way to the frame.

use axum::body::Body;
use axum::response::Response;
use holdfast_protocol::envelope::ErrorBody;
use serde_json::Value;

/// What a handler came to.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Data(Value),
    InWork(Value),
    ErrorBody {
        problem: ErrorBody,
        retry_after_s: Option<u32>,
    },
    /// Bytes as they are, which the answer carries.
    Bytes,
    /// The description of the API, without an envelope: tools read it as it is.
    Description(&'static Value),
}

pub(super) fn carry(outcome: Outcome) -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(outcome);
    response
}
