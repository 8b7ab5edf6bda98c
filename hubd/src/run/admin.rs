//! The first admin and its token file.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::access::{AccessScope, Grant, GrantError};
use holdfast_protocol::id::{CorrelationId, IdError, OperatorName};
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::Secret;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::authority::OPERATOR_TOKEN_PREFIX;
use crate::store::{NewOperator, OperatorError, SharedStore, StoreError, WriteError};

/// The file with the first admin's token.
pub const ADMIN_TOKEN_FILE: &str = "admin-token";

/// The default lifetime of a token.
pub const TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Why there is no first admin.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The token's file cannot be written.
    #[error(
        "the file with the first admin's token is not written: put right what stands below, and start the hub again"
    )]
    File(#[source] FileError),
    /// The system has no randomness.
    #[error("the system gives no random bytes for a token")]
    Random(#[source] getrandom::Error),
    /// The database refuses.
    #[error("the first admin cannot be written down")]
    Store(#[source] StoreError),
    /// The rules refuse.
    #[error("the first admin cannot be made")]
    Refused(#[source] OperatorError),
    /// Our own mistake.
    #[error("the first admin's name is not a name")]
    Name(#[source] IdError),
    /// Our own mistake.
    #[error("the first admin's role and scope do not go together")]
    Grant(#[source] GrantError),
    /// The clock is beyond what can be written.
    #[error("the clock is beyond what can be written: set it")]
    Time,
}

/// A new token of 256 random bits.
///
/// # Errors
/// When the system has no randomness.
pub fn new_token() -> Result<Secret, getrandom::Error> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    getrandom::fill(bytes.as_mut_slice())?;
    Ok(Secret::new(format!("{OPERATOR_TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes.as_slice()))))
}

/// Makes the first admin when there is no operator at all. The file is written first: a token that is in no file
/// would lock everyone out; a file with an unknown token is rewritten at the next start.
pub(super) async fn first_admin(
    store: &SharedStore,
    folder: &Path,
    now: Timestamp,
) -> Result<Option<PathBuf>, AdminError> {
    if !store.operators().await.map_err(AdminError::Store)?.is_empty() {
        return Ok(None);
    }
    let token = new_token().map_err(AdminError::Random)?;
    let path = folder.join(ADMIN_TOKEN_FILE);
    let line = Zeroizing::new(format!("{}\n", token.expose()));
    atomic_file::write(&path, line.as_bytes(), Readers::Owner).map_err(AdminError::File)?;
    let admin = NewOperator {
        name: "admin".parse::<OperatorName>().map_err(AdminError::Name)?,
        grant: Grant::new(Role::Admin, AccessScope::Everything {}).map_err(AdminError::Grant)?,
        token: token.hash(),
        expires_at: now.checked_add(TOKEN_LIFE).map_err(|_| AdminError::Time)?,
        at: now,
        correlation: CorrelationId::new(Uuid::new_v4()),
    };
    match store.add_operator(admin).await {
        Ok(()) => Ok(Some(path)),
        Err(WriteError::Refused(refusal)) => Err(AdminError::Refused(refusal)),
        Err(WriteError::KeyReused) => Err(AdminError::Store(StoreError::Busy)),
        Err(WriteError::Store(error)) => Err(AdminError::Store(error)),
    }
}
