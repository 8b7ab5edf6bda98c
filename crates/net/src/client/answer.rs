//! Answers, opened from their envelope.

use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::json;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::CallError;

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    /// May hold a secret.
    body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// An HTTP status and the bytes of its body.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Zeroizing<Vec<u8>>>) -> Self {
        Self { status, body: body.into() }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The bytes.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The data inside.
    ///
    /// # Errors
    /// [`CallError`]: the server refuses, redirects, speaks otherwise, or contradicts itself.
    pub fn open<T: DeserializeOwned>(self, max: usize) -> Result<T, CallError> {
        let Self { status, body } = self;
        if body.len() > max {
            return Err(CallError::TooLong { max });
        }
        if (300..400).contains(&status) {
            return Err(CallError::Redirect { status });
        }
        let envelope: Envelope<T> =
            json::parse("the answer", &body, max).map_err(|source| CallError::Answer { status, source })?;
        match (envelope.data, envelope.error) {
            (Some(data), None) if (200..300).contains(&status) => Ok(data),
            (None, Some(problem)) => {
                Err(CallError::Refused { status, problem, request_id: envelope.request_id })
            }
            _ => Err(CallError::Contradiction { status }),
        }
    }
}
