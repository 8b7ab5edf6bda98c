//! Passwords, authenticators and sign-in links of operators.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::sign_in::{SessionKind, SignInState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::idempotency::By;
use super::{NewSession, SessionRecord, StoreError, WriteError};
use crate::domain::event::NewEvent;
use crate::domain::sign_in::totp::Step;

/// What a sign-in is checked against. An operator without a password has none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub role: Role,
    /// The stored hash, as text.
    pub password: Option<String>,
    /// The secret of the authenticator in use, sealed.
    pub authenticator: Option<Authenticator>,
    /// The secret that is not confirmed yet, sealed.
    pub pending: Option<Vec<u8>>,
    pub state: SignInState,
}

/// The authenticator in use.
#[derive(Clone, PartialEq, Eq)]
pub struct Authenticator {
    pub sealed: Vec<u8>,
    /// The last step that was used.
    pub last: Option<Step>,
}

/// What is used up by a sign-in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UsedFactor {
    /// Nothing: the operator has no authenticator.
    None,
    Step(Step),
    /// A recovery code, hashed.
    RecoveryCode(TokenHash),
}

/// A sign-in whose password was checked.
#[derive(Clone)]
pub struct NewSignIn {
    pub session: NewSession,
    /// The stored hash that the password was checked against.
    pub password: String,
    pub factor: UsedFactor,
    pub correlation: CorrelationId,
}

/// Who changes how an operator signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInChange {
    pub operator: OperatorName,
    /// Nobody is the machine's own administrator.
    pub actor: Option<OperatorName>,
    pub at: Timestamp,
    pub correlation: CorrelationId,
}

impl SignInChange {
    /// By an admin.
    #[must_use]
    pub fn by(by: &By, operator: OperatorName) -> Self {
        Self { operator, actor: Some(by.operator.clone()), at: by.at, correlation: by.correlation }
    }
}

/// A new password.
#[derive(Clone)]
pub struct NewPassword {
    pub by: SignInChange,
    /// The hash, as text.
    pub hash: String,
    /// The stored hash that the password so far was checked against, where one was asked for.
    pub checked: Option<String>,
    /// The session that stays.
    pub keep: Option<TokenHash>,
}

/// An authenticator that was proved to have the secret.
#[derive(Clone)]
pub struct ConfirmedAuthenticator {
    pub by: SignInChange,
    /// The pending secret that was proved, sealed.
    pub sealed: Vec<u8>,
    pub step: Step,
    /// Hashes of the new recovery codes.
    pub codes: Vec<TokenHash>,
}

/// A sign-in link to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignInLink {
    pub operator: OperatorName,
    pub token: TokenHash,
    /// What it opens.
    pub kind: SessionKind,
    pub expires_at: Timestamp,
}

/// A link that was made, by the number that its token is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInLinkMade {
    pub number: Uuid,
    pub expires_at: Timestamp,
}

/// Why somebody is not signed in, or nothing about it is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// Meanwhile the operator was removed, the password changed, or the code used.
    #[error("name, password or code is not right")]
    Refused,
    #[error("this link is unknown, was used, or has ended: ask an admin of the hub for a new one")]
    Link,
    #[error("there is no operator {name}: `holdfast operator list` shows who there is")]
    Unknown { name: OperatorName },
    #[error("no authenticator waits to be confirmed, or another one does: begin its set-up again")]
    NothingPending,
}

/// How people sign in.
#[async_trait]
pub trait SignIns: Send + Sync {
    /// What a sign-in of this operator is checked against; none for who is unknown or removed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn credentials(&self, name: OperatorName) -> Result<Option<Credentials>, StoreError>;

    /// Opens a session and uses up the second factor.
    ///
    /// # Errors
    /// [`SignInError::Refused`].
    async fn sign_in(&self, new: NewSignIn) -> Result<SessionRecord, WriteError<SignInError>>;

    /// Opens a session by a link, which is used up.
    ///
    /// # Errors
    /// [`SignInError::Link`].
    async fn sign_in_by_link(
        &self,
        link: TokenHash,
        new: NewLinkSession,
    ) -> Result<SessionRecord, WriteError<SignInError>>;

    /// Makes a link: the machine's own administrator does.
    ///
    /// # Errors
    /// [`SignInError::Unknown`].
    async fn add_sign_in_link(
        &self,
        by: SignInChange,
        new: NewSignInLink,
    ) -> Result<(), WriteError<SignInError>>;

    /// The same by an admin.
    ///
    /// # Errors
    /// [`SignInError::Unknown`].
    async fn make_sign_in_link(
        &self,
        by: By,
        new: NewSignInLink,
        number: Uuid,
    ) -> Result<SignInLinkMade, WriteError<SignInError>>;

    /// Sets a password. All other sessions and links of the operator end.
    ///
    /// # Errors
    /// [`SignInError`].
    async fn set_password(&self, new: NewPassword) -> Result<(), WriteError<SignInError>>;

    /// Replaces a stored hash by one of the same password, if it is still the one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn rehash_password(
        &self,
        name: OperatorName,
        before: String,
        hash: String,
    ) -> Result<(), StoreError>;

    /// Keeps a sealed secret until it is confirmed.
    ///
    /// # Errors
    /// [`SignInError::Unknown`].
    async fn begin_authenticator(
        &self,
        name: OperatorName,
        sealed: Vec<u8>,
    ) -> Result<(), WriteError<SignInError>>;

    /// Puts the pending secret into use, with new recovery codes.
    ///
    /// # Errors
    /// [`SignInError`].
    async fn confirm_authenticator(
        &self,
        confirmed: ConfirmedAuthenticator,
    ) -> Result<(), WriteError<SignInError>>;

    /// Writes events about refused sign-ins down.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn record_refusals(&self, events: Vec<NewEvent>) -> Result<(), StoreError>;
}

/// A session by a link. The link says whose it is and what it may do.
#[derive(Clone, Debug)]
pub struct NewLinkSession {
    /// For a full session.
    pub full: NewSession,
    /// For one that may only set up.
    pub setup: NewSession,
    pub correlation: CorrelationId,
}
