//! Tokens of machines and the hashes of their secrets.

use async_trait::async_trait;
use holdfast_protocol::access::Grant;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::machine_token::TokenView;
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::idempotency::By;
use super::{StoreError, WriteError};

/// Tokens of one maker at most that are not revoked.
pub const TOKENS_PER_MAKER_MAX: u32 = 64;

/// Secrets of one token at most that go on at a time.
pub const SECRETS_MAX: u32 = 4;

/// The last use is written at most so often.
pub const USE_WRITTEN_S: i64 = 60;

/// A token to be made.
#[derive(Clone, Debug)]
pub struct NewMachineToken {
    pub name: OperatorName,
    pub grant: Grant,
    pub secret: NewSecret,
}

/// A secret to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewSecret {
    /// What it is derived from.
    pub number: Uuid,
    pub hash: TokenHash,
    pub expires_at: Timestamp,
}

/// A secret that was made, by the number that it is derived from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretMade {
    pub number: Uuid,
    pub expires_at: Timestamp,
    /// When those before it end.
    pub earlier_until: Option<Timestamp>,
    pub token: TokenView,
}

/// A token that is good now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRecord {
    pub name: OperatorName,
    pub grant: Grant,
    /// The last use, as written.
    pub used_at: Option<Timestamp>,
}

/// Why a token is not made or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineTokenError {
    #[error("{name} is the name of a person or a token already: choose another name")]
    Taken { name: OperatorName },
    #[error("{maker} has {TOKENS_PER_MAKER_MAX} tokens, as many as are possible: revoke one first")]
    TooMany { maker: OperatorName },
    #[error(
        "{name} has {SECRETS_MAX} secrets that go on: wait until one has ended, or rotate with --overlap-hours 0"
    )]
    TooManySecrets { name: OperatorName },
    #[error("there is no token {name} that goes on: `holdfast token list` shows yours")]
    Unknown { name: OperatorName },
}

/// Tokens of machines.
#[async_trait]
pub trait MachineTokens: Send + Sync {
    /// All tokens by name, revoked ones too.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn machine_tokens(&self) -> Result<Vec<TokenView>, StoreError>;

    /// One token by name.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn machine_token(&self, name: OperatorName) -> Result<Option<TokenView>, StoreError>;

    /// Makes a token for the caller.
    ///
    /// # Errors
    /// [`MachineTokenError`].
    async fn make_machine_token(
        &self,
        by: By,
        new: NewMachineToken,
    ) -> Result<SecretMade, WriteError<MachineTokenError>>;

    /// Makes the next secret of a token. Those before it end at `earlier_until` at the latest.
    ///
    /// # Errors
    /// [`MachineTokenError`].
    async fn rotate_machine_token(
        &self,
        by: By,
        name: OperatorName,
        secret: NewSecret,
        earlier_until: Timestamp,
    ) -> Result<SecretMade, WriteError<MachineTokenError>>;

    /// Ends all secrets of a token. Revoking twice changes nothing.
    ///
    /// # Errors
    /// [`MachineTokenError`].
    async fn revoke_machine_token(
        &self,
        by: By,
        name: OperatorName,
    ) -> Result<TokenView, WriteError<MachineTokenError>>;

    /// Which token has this secret, if it is good now and so is its maker.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn machine_by_secret(
        &self,
        hash: TokenHash,
        now: Timestamp,
    ) -> Result<Option<MachineRecord>, StoreError>;

    /// Writes the use of a token down, where the last one that is written is older than [`USE_WRITTEN_S`].
    ///
    /// # Errors
    /// [`StoreError`].
    async fn machine_token_used(&self, name: OperatorName, now: Timestamp) -> Result<(), StoreError>;
}
