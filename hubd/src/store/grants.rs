//! Roles and scopes of operators, changed in place.

use async_trait::async_trait;
use holdfast_protocol::access::Grant;
use holdfast_protocol::grant_change::GrantChanged;
use holdfast_protocol::id::OperatorName;

use super::WriteError;
use super::idempotency::By;

/// A change of a person's role and scope.
#[derive(Clone, Debug)]
pub struct GrantChange {
    pub name: OperatorName,
    /// What the author may give. Who stands above it is not changed.
    pub author: Grant,
    /// The tag of the role and scope that the author saw.
    pub seen: String,
    pub new: Grant,
}

/// Why a role and a scope stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantChangeError {
    #[error("there is no such operator here: `holdfast operator list` shows who there is")]
    Unknown,
    #[error("{name} was changed meanwhile and is {current}; nothing was changed: look at them again")]
    Moved { name: OperatorName, current: Box<Grant> },
    #[error(
        "{name} is the last admin of everything with a token, and nothing was changed: make another one first, or use `hubd operator` \
         on the machine itself"
    )]
    LastAdmin { name: OperatorName },
}

/// Roles and scopes of people.
#[async_trait]
pub trait Grants: Send + Sync {
    /// Changes a role and a scope. Every token and session has it at its next request. Machine tokens of theirs that are more
    /// than that end.
    ///
    /// # Errors
    /// [`GrantChangeError`].
    async fn change_grant(
        &self,
        by: By,
        change: GrantChange,
    ) -> Result<GrantChanged, WriteError<GrantChangeError>>;
}
