//! Authentication: agents by certificate, persons and machines by token or session.
//!
//! A token is looked up by its hash at every request, so a revocation takes effect at the next one. What the caller may do
//! is decided in `authorize`.

use axum::extract::FromRequestParts;
use axum::http::{StatusCode, header, request::Parts};
use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::{Proof, WhoAmI};
use holdfast_protocol::secret::TokenHash;
use jiff::{SignedDuration, Timestamp};
use net::admission::Origin;
use net::server::Answer;

use super::Hub;
use super::problem::ApiError;
use super::sign_in::operator_of_session;
use crate::authority::MACHINE_TOKEN_PREFIX;
use crate::domain::identity::Presented;
use crate::serve::AdmittedConnection;
use crate::store::{MachineRecord, USE_WRITTEN_S};

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

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Principal {
    /// A person.
    Person { name: OperatorName, session: SessionSource },
    /// A machine.
    Machine { name: OperatorName },
}

/// What a person's session comes from. A login with a password or another provider is one more of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionSource {
    /// A token that an admin gave them.
    Token,
    /// A sign-in with a password.
    SignIn,
}

impl Principal {
    /// As the log names it.
    pub(super) const fn name(&self) -> &OperatorName {
        match self {
            Self::Person { name, .. } | Self::Machine { name } => name,
        }
    }

    const fn proof(&self) -> Proof {
        match self {
            Self::Person { session: SessionSource::Token, .. } => Proof::PersonToken,
            Self::Person { session: SessionSource::SignIn, .. } => Proof::Session,
            Self::Machine { .. } => Proof::MachineToken,
        }
    }
}

/// A person or a machine whose request was authorized.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    pub principal: Principal,
    /// What they may do, and with what.
    pub grant: Grant,
}

impl Operator {
    /// What lists are narrowed to.
    pub(super) fn scope(&self) -> AccessScope {
        self.grant.scope().clone()
    }

    /// Continues only when this is no more than the caller's own role and scope: nobody makes what stands above them.
    pub(super) fn may_give(&self, grant: &Grant) -> Result<(), ApiError> {
        if self.grant.covers(grant) {
            return Ok(());
        }
        let says = format!(
            "{} is {} here and cannot give {grant}, which is more: ask an admin of the hub",
            self.principal.name(),
            self.grant
        );
        Err(ApiError::new(ErrorCode::Forbidden, says))
    }
}

/// Finds out who calls. A token or a session is looked up at every request.
pub(super) async fn authenticate(parts: &Parts, hub: &Hub) -> Result<Operator, ApiError> {
    let unknown = || {
        ApiError::new(
            ErrorCode::Unauthenticated,
            "this call needs an operator's token, or a session, that is known and has not ended: `holdfast login`",
        )
    };
    let operator = match operator_of_session(parts, hub).await? {
        Some(record) => {
            let principal = Principal::Person { name: record.name, session: SessionSource::SignIn };
            Operator { principal, grant: record.grant }
        }
        None => operator_of_token(parts, hub).await?.ok_or_else(unknown)?,
    };
    own_connection(parts, &operator)?;
    Ok(operator)
}

/// From now on the connection is the operator's, and no stranger's crowd ends it.
pub(super) fn own_connection(parts: &Parts, operator: &Operator) -> Result<(), ApiError> {
    let visitor = parts.extensions.get::<AdmittedConnection>();
    if let Some(Err(_)) = visitor.map(|visitor| visitor.is_operator(operator.principal.name())) {
        return Err(ApiError::new(
            ErrorCode::Busy,
            "this operator has as many connections as one may: close some, and ask again",
        ));
    }
    Ok(())
}

/// The person or the machine of a bearer token; none without one that is good.
async fn operator_of_token(parts: &Parts, hub: &Hub) -> Result<Option<Operator>, ApiError> {
    let value = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = value.and_then(|value| value.split_once(' ')) else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim();
    let (hash, now) = (TokenHash::of(token.as_bytes()), hub.clock.now());
    if token.starts_with(MACHINE_TOKEN_PREFIX) {
        let Some(record) = hub.store.machine_by_secret(hash, now).await? else { return Ok(None) };
        note_use(hub, &record, now).await;
        let principal = Principal::Machine { name: record.name };
        return Ok(Some(Operator { principal, grant: record.grant }));
    }
    let record = hub.store.operator_by_token(hash, now).await?;
    Ok(record.map(|record| Operator {
        principal: Principal::Person { name: record.name, session: SessionSource::Token },
        grant: record.grant,
    }))
}

/// Writes the use of a token down, to the minute. What cannot be written keeps nobody out.
async fn note_use(hub: &Hub, record: &MachineRecord, now: Timestamp) {
    let is_written =
        |used: Timestamp| now.duration_since(used) < SignedDuration::from_secs(USE_WRITTEN_S) && used <= now;
    if record.used_at.is_some_and(is_written) {
        return;
    }
    if let Err(error) = hub.store.machine_token_used(record.name.clone(), now).await {
        tracing::warn!(action = "write down the use of a token", result = "failed", error = %error);
    }
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // `authorize` put it there; a request without it would be our own mistake.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("a request that was not authorized"))
    }
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
    let (role, scope) = (operator.grant.role(), operator.scope());
    let (proof, name) = (operator.principal.proof(), operator.principal.name().clone());
    Answer(StatusCode::OK, WhoAmI { name, role, scope, proof, hub_version })
}
