//! Authentication: agents by certificate, operators by bearer token or session.
//!
//! Both are looked up by a hash at every request, so a revocation takes effect at the next one.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::{StatusCode, header, request::Parts};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::{Role, WhoAmI};
use holdfast_protocol::secret::TokenHash;
use net::admission::Origin;
use net::server::Answer;

use super::Hub;
use super::problem::ApiError;
use super::sign_in::operator_of_session;
use crate::domain::identity::Presented;
use crate::serve::AdmittedConnection;
use crate::store::OperatorRecord;

/// An agent, as far as its certificate says. What that is worth is judged by the store.
pub(super) struct Agent(pub Presented);

impl<S: Sync> FromRequestParts<S> for Agent {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Presented>().copied().map(Self).ok_or_else(|| {
            ApiError::new(
                ErrorCode::Certificate,
                "this call needs the agent's client certificate: enrol the host first (`agentd enroll`)",
            )
        })
    }
}

/// An operator who may at least read.
pub(super) struct Operator {
    pub name: OperatorName,
    role: Role,
}

impl Operator {
    /// Continues only when the operator has at least this role.
    pub(super) fn may(&self, least: Role) -> Result<(), ApiError> {
        if self.role >= least {
            return Ok(());
        }
        let (name, role) = (&self.name, self.role);
        Err(ApiError::new(
            ErrorCode::Forbidden,
            format!("{name} is {role:?} here, and this needs {least:?}: ask an admin of the hub"),
        ))
    }
}

impl FromRequestParts<Arc<Hub>> for Operator {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> Result<Self, ApiError> {
        let unknown = || {
            ApiError::new(
                ErrorCode::Unauthenticated,
                "this call needs an operator's token, or a session, that is known and has not ended: `holdfast login`",
            )
        };
        let record = match operator_of_session(parts, hub).await? {
            Some(record) => record,
            None => operator_of_token(parts, hub).await?.ok_or_else(unknown)?,
        };
        // From now on the connection is the operator's, and no stranger's crowd ends it.
        if let Some(Err(_)) =
            parts.extensions.get::<AdmittedConnection>().map(|visitor| visitor.is_operator(&record.name))
        {
            return Err(ApiError::new(
                ErrorCode::Busy,
                "this operator has as many connections as one may: close some, and ask again",
            ));
        }
        Ok(Self { name: record.name, role: record.role })
    }
}

/// The operator of a bearer token; none without one that is good.
async fn operator_of_token(parts: &Parts, hub: &Hub) -> Result<Option<OperatorRecord>, ApiError> {
    let value = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = value.and_then(|value| value.split_once(' ')) else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let hash = TokenHash::of(token.trim().as_bytes());
    Ok(hub.store.operator_by_token(hash, hub.clock.now()).await?)
}

/// Where a request comes from.
pub(super) struct From(pub Origin);

impl<S: Sync> FromRequestParts<S> for From {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // The listener put it there; a request without it would be our own mistake.
        let visitor = parts.extensions.get::<AdmittedConnection>();
        visitor
            .map(|visitor| Self(visitor.origin()))
            .ok_or_else(|| ApiError::internal("a request from nowhere"))
    }
}

pub(super) async fn whoami(operator: Operator) -> Answer<WhoAmI> {
    let hub_version = env!("CARGO_PKG_VERSION").to_owned();
    Answer(StatusCode::OK, WhoAmI { name: operator.name, role: operator.role, hub_version })
}
