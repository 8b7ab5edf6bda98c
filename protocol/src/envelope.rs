//! The envelope of hub and local API answers, with its errors.
//!
//! Request and correlation ids travel in it and in the headers `x-request-id` and `x-correlation-id`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::id::{CorrelationId, RequestId};

/// The header that names a request.
pub const REQUEST_ID_HEADER: &str = "x-request-id";
/// The header that all requests of one piece of work share.
pub const CORRELATION_ID_HEADER: &str = "x-correlation-id";
/// The header that makes a mutation repeatable.
pub const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";

/// The version of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EnvelopeSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.envelope/v1")]
    V1,
}

/// The frame. Exactly one of `data` and `error` is set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Envelope<T> {
    /// The version of the frame.
    pub schema_version: EnvelopeSchema,
    /// Names this request.
    pub request_id: RequestId,
    /// Names the piece of work it belongs to.
    pub correlation_id: CorrelationId,
    /// The answer.
    pub data: Option<T>,
    /// Or why there is none.
    pub error: Option<ErrorBody>,
    /// About the answer itself.
    pub metadata: Metadata,
}

/// About an answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// When it was made, by the clock of the one who answers.
    pub timestamp: Timestamp,
}

/// One error: a code for programs, a sentence for people, details where they help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorBody {
    /// Stable, from the closed list.
    pub code: ErrorCode,
    /// Says who must do what. Never a stack trace, never a secret.
    pub message: String,
    /// Where in a document, which target: small and flat.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub details: std::collections::BTreeMap<String, String>,
}

impl ErrorBody {
    /// An error without details.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: std::collections::BTreeMap::new() }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}

impl std::fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)
    }
}
