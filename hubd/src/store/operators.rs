//! Operators and the hashes of their tokens.

use async_trait::async_trait;
use holdfast_protocol::access::Grant;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::operator::OperatorView;
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::idempotency::By;
use super::{StoreError, WriteError};

/// An operator to be made, or one who gets another token.
#[derive(Clone, Debug)]
pub struct NewOperator {
    pub name: OperatorName,
    /// What they may do, and with what.
    pub grant: Grant,
    /// The hash of their token.
    pub token: TokenHash,
    /// When the token ends.
    pub expires_at: Timestamp,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// An operator, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRecord {
    pub name: OperatorName,
    /// What they may do, and with what.
    pub grant: Grant,
    /// When the last of their tokens ends.
    pub expires_at: Option<Timestamp>,
    /// When the operator was removed.
    pub revoked_at: Option<Timestamp>,
}

impl OperatorRecord {
    /// As admins see it.
    #[must_use]
    pub fn view(self) -> OperatorView {
        let Self { name, grant, expires_at, revoked_at } = self;
        OperatorView { name, role: grant.role(), scope: grant.scope().clone(), expires_at, revoked_at }
    }
}

/// A token that was made, by the number that it is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenMade {
    pub number: Uuid,
    /// When the token ends.
    pub expires_at: Timestamp,
}

/// Why an operator is not added or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// The name is in use with another role or scope, or was removed.
    #[error("{name} exists already, as {grant} or removed: choose another name")]
    Taken { name: OperatorName, grant: Box<Grant> },
    /// A machine has the name.
    #[error("{name} is the name of a machine token: choose another name")]
    Machine { name: OperatorName },
    /// Without this admin, no operator could add another one.
    #[error(
        "{name} is the last admin with a token: make another admin first, or use `hubd operator` on the machine itself"
    )]
    LastAdmin { name: OperatorName },
    /// There is none.
    #[error("there is no operator {name}: `holdfast operator list` shows who there is")]
    Unknown { name: OperatorName },
}

/// Operators and their tokens.
#[async_trait]
pub trait Operators: Send + Sync {
    /// Makes an operator, or gives one who is there in the same role and scope another token: the machine's own administrator does.
    ///
    /// # Errors
    /// [`OperatorError`].
    async fn add_operator(&self, new: NewOperator) -> Result<(), WriteError<OperatorError>>;

    /// The same by an admin.
    ///
    /// # Errors
    /// [`OperatorError`].
    async fn make_operator(
        &self,
        by: By,
        new: NewOperator,
        number: Uuid,
    ) -> Result<TokenMade, WriteError<OperatorError>>;

    /// Removes any operator: for the machine's own administrator.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`].
    async fn revoke_operator(
        &self,
        name: OperatorName,
        at: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), WriteError<OperatorError>>;

    /// The same by an admin, who cannot let the last admin with a token go.
    ///
    /// # Errors
    /// [`OperatorError`].
    async fn let_operator_go(
        &self,
        by: By,
        name: OperatorName,
    ) -> Result<OperatorView, WriteError<OperatorError>>;

    /// One operator by name, who may have been removed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn operator(&self, name: OperatorName) -> Result<Option<OperatorRecord>, StoreError>;

    /// Who there is, and was.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn operators(&self) -> Result<Vec<OperatorRecord>, StoreError>;

    /// Whose token this is, if it is good now.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn operator_by_token(
        &self,
        token: TokenHash,
        now: Timestamp,
    ) -> Result<Option<OperatorRecord>, StoreError>;
}
