//! A signed job in transport: payload bytes and signatures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::BYTES_MAX;
use crate::code::ErrorCode;
use crate::json::{self, JsonError};

/// A payload in base64, and the signatures: eight of a kilobyte each.
pub const SIGNED_BYTES_MAX: usize = BYTES_MAX / 3 * 4 + 4 + 16 * 1024;

/// More signers than any policy requires.
pub const SIGNATURES_MAX: usize = 8;

/// A payload and who signed it. Nothing of it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedJob {
    /// The bytes that were signed.
    pub payload: Vec<u8>,
    /// Signatures as `ssh-keygen -Y sign` writes them.
    pub signatures: Vec<String>,
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
}

impl SignedJobError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Form(error) => error.code(),
            Self::Base64(_) => ErrorCode::Syntax,
            Self::Signatures(_) => ErrorCode::Range,
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
        match wire.signatures.len() {
            1..=SIGNATURES_MAX => Ok(Self { payload, signatures: wire.signatures }),
            other => Err(SignedJobError::Signatures(other)),
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
        })
    }
}
