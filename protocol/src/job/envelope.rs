//! A signed job in transport: payload bytes, signatures, and consents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::BYTES_MAX;
use crate::code::ErrorCode;
use crate::json::{self, JsonError};

/// A payload in base64, and the signatures and consents: 24 of a kilobyte each.
pub const SIGNED_BYTES_MAX: usize = BYTES_MAX / 3 * 4 + 4 + 32 * 1024;

/// More signers than any policy requires.
pub const SIGNATURES_MAX: usize = 8;

/// More customers than a host has.
pub const CONSENTS_MAX: usize = 16;

/// A payload and who signed it. Nothing of it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedJob {
    /// The bytes that were signed.
    pub payload: Vec<u8>,
    /// Signatures as `ssh-keygen -Y sign` writes them.
    pub signatures: Vec<String>,
    /// Consents of customers: signatures over the same bytes, for another purpose.
    pub consents: Vec<String>,
}

#[derive(Serialize, Deserialize)]
enum SignedSchema {
    #[serde(rename = "holdfast.signed-job/v1")]
    V1,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: SignedSchema,
    payload: String,
    signatures: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    consents: Vec<String>,
}

/// Why bytes are not a signed job.
#[derive(Debug, thiserror::Error)]
pub enum SignedJobError {
    /// Not the document it should be.
    #[error(transparent)]
    Form(#[from] JsonError),
    /// The payload is not in plain base64.
    #[error("the job's payload is not base64 in its one plain spelling")]
    Base64(#[source] base64::DecodeError),
    /// Too many.
    #[error("the job carries {0} signatures; 1 to {SIGNATURES_MAX} are accepted")]
    Signatures(usize),
    /// Too many.
    #[error("the job carries {0} consents; at most {CONSENTS_MAX} are accepted")]
    Consents(usize),
}

impl SignedJobError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Form(error) => error.code(),
            Self::Base64(_) => ErrorCode::Syntax,
            Self::Signatures(_) | Self::Consents(_) => ErrorCode::Range,
        }
    }
}

impl SignedJob {
    /// Reads one.
    ///
    /// # Errors
    /// [`SignedJobError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignedJobError> {
        let wire: Wire = json::parse("a signed job", bytes, SIGNED_BYTES_MAX)?;
        let payload = STANDARD.decode(&wire.payload).map_err(SignedJobError::Base64)?;
        match (wire.signatures.len(), wire.consents.len()) {
            (1..=SIGNATURES_MAX, 0..=CONSENTS_MAX) => {
                Ok(Self { payload, signatures: wire.signatures, consents: wire.consents })
            }
            (1..=SIGNATURES_MAX, other) => Err(SignedJobError::Consents(other)),
            (other, _) => Err(SignedJobError::Signatures(other)),
        }
    }

    /// As it travels.
    ///
    /// # Errors
    /// Never in practice: strings are always JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Wire {
            schema: SignedSchema::V1,
            payload: STANDARD.encode(&self.payload),
            signatures: self.signatures.clone(),
            consents: self.consents.clone(),
        })
    }
}
