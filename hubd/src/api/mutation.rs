//! The head of operator changes: author, correlation id, idempotency key.

use axum::http::{HeaderMap, Method, header};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::IDEMPOTENCY_KEY_HEADER;
use holdfast_protocol::id::IdempotencyKey;
use net::server::Ids;
use sha2::{Digest as _, Sha256};

use super::Hub;
use super::auth::Operator;
use super::problem::ApiError;
use crate::store::{By, Claim};

/// The head of a change.
pub(super) struct Head {
    method: Method,
    path: String,
    headers: HeaderMap,
    operator: Operator,
    ids: Ids,
}

impl Head {
    /// The head of a change that a page makes, as the call of `/v1` that it stands for would have had it.
    pub(super) fn of_page(
        (method, path): (Method, String),
        headers: HeaderMap,
        operator: Operator,
        ids: Ids,
    ) -> Self {
        Self { method, path, headers, operator, ids }
    }

    /// Who calls.
    pub(super) const fn operator(&self) -> &Operator {
        &self.operator
    }

    /// With the body, who wants what.
    pub(super) fn by(self, hub: &Hub, body: &[u8]) -> Result<By, ApiError> {
        let claim = match self.headers.get(IDEMPOTENCY_KEY_HEADER) {
            None => None,
            Some(value) => {
                let key = value.to_str().ok().and_then(|text| text.parse::<IdempotencyKey>().ok());
                let key = key.ok_or_else(|| {
                    let form = "Idempotency-Key is 1 to 128 letters, digits, '-', '_', '.' or ':'";
                    ApiError::new(ErrorCode::Range, form)
                })?;
                Some(Claim { key, request: self.digest(body) })
            }
        };
        let operator = self.operator.principal.name().clone();
        Ok(By { operator, correlation: self.ids.correlation, at: hub.clock.now(), claim })
    }

    /// What makes two requests the same. Each part is preceded by its length, so that none can pass for two.
    fn digest(&self, body: &[u8]) -> [u8; 32] {
        let seen = self.headers.get(header::IF_MATCH).map_or(&b""[..], |value| value.as_bytes());
        let mut hasher = Sha256::new();
        for part in [self.method.as_str().as_bytes(), self.path.as_bytes(), seen, body] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

/// Lets handlers take the head as one argument.
impl axum::extract::FromRequestParts<std::sync::Arc<Hub>> for Head {
    type Rejection = ApiError;
    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        hub: &std::sync::Arc<Hub>,
    ) -> Result<Self, ApiError> {
        let operator = Operator::from_request_parts(parts, hub).await?;
        let ids = Ids::from_request_parts(parts, hub).await?;
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        Ok(Self { method, path, headers: parts.headers.clone(), operator, ids })
    }
}
