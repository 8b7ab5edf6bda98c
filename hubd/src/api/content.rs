//! What a handler came to, on its way to the envelope.

use holdfast_protocol::envelope::ErrorBody;
use serde_json::value::RawValue;

/// What a handler has to say, before it is framed.
#[derive(Clone)]
pub(super) enum Content {
    Data(Box<RawValue>),
    ErrorBody { problem: ErrorBody, cause: Option<String> },
}
