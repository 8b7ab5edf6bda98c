//! Idempotency keys of operator changes.
//!
//! The answer is stored in the transaction of the effect, so neither ever exists without the other. A refusal changed
//! nothing and is not stored: the same key may be used again once its cause is removed.

use holdfast_protocol::id::{CorrelationId, IdempotencyKey, OperatorName};
use jiff::Timestamp;

/// Who wants a change, and as part of what.
#[derive(Clone, Debug)]
pub struct By {
    pub operator: OperatorName,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
    pub at: Timestamp,
    /// The key by which a repeat is known, where one was sent.
    pub claim: Option<Claim>,
}

/// An idempotency key with what it was sent for.
#[derive(Clone, Debug)]
pub struct Claim {
    pub key: IdempotencyKey,
    /// SHA-256 of method, path, precondition and body.
    pub request: [u8; 32],
}
