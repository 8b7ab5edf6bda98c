//! Wrapped backup keys in versions, with notices of reads.
//!
//! Every call of a host is counted. A read is stored together with its notice, in the transaction that gives the file, so
//! no file leaves the hub without a notice.

use async_trait::async_trait;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{
    CodeNumber, EscrowFiles, EscrowFound, EscrowKept, EscrowList, EscrowNumber, EscrowOpened, EscrowProof,
    EscrowPut,
};
use holdfast_protocol::id::{CorrelationId, CustomerId};
use holdfast_protocol::job::Nonce;
use jiff::Timestamp;

use super::idempotency::By;
use super::{StoreError, WriteError};
use crate::domain::escrow::{PutError, TooOften};
use crate::domain::escrow_notice::Recipients;
use crate::domain::host::HostRef;
use crate::domain::identity::{IdentityError, Presented};

/// The calling host, and the time.
#[derive(Clone, Copy, Debug)]
pub struct EscrowCaller {
    /// The certificate that it presented.
    pub presented: Presented,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscrowSelector {
    Newest,
    Number(EscrowNumber),
    /// The newest of this code.
    Code(CodeNumber),
    /// Of each key the one that is in force.
    EachKey,
}

/// Why a host's request is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EscrowError {
    /// Its certificate is not served.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The version is not kept.
    #[error(transparent)]
    Put(#[from] PutError),
    #[error(transparent)]
    TooOften(#[from] TooOften),
    /// There is none.
    #[error("there is no such escrow of this host here: `agentd escrow create` makes one")]
    None,
    /// No address to notify.
    #[error(
        "the escrow is not read, because no address would be notified of it: write one for customer {customer} under \
         [[escrow_notice]] in hub.toml, start the hub again, and ask again"
    )]
    Unset {
        /// Whose it is.
        customer: CustomerId,
    },
}

impl EscrowError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Identity(error) => error.code(),
            Self::Put(put) => put.code(),
            Self::TooOften(_) => ErrorCode::RateLimited,
            Self::None => ErrorCode::NotFound,
            Self::Unset { .. } => ErrorCode::NoticeUnset,
        }
    }
}

/// Wrapped keys.
#[async_trait]
pub trait Escrows: Send + Sync {
    /// Keeps a version; the same again is the same answer. Its form was judged before.
    ///
    /// # Errors
    /// [`EscrowError`].
    async fn put_escrow(
        &self,
        asking: EscrowCaller,
        put: EscrowPut,
        reached: Recipients,
    ) -> Result<EscrowKept, WriteError<EscrowError>>;

    /// Lists the versions.
    ///
    /// # Errors
    /// [`EscrowError`].
    async fn escrows(
        &self,
        asking: EscrowCaller,
        reached: Recipients,
    ) -> Result<EscrowList, WriteError<EscrowError>>;

    /// Proves that a version is held, without giving it out.
    ///
    /// # Errors
    /// [`EscrowError`].
    async fn prove_escrow(
        &self,
        asking: EscrowCaller,
        number: EscrowNumber,
        nonce: Nonce,
    ) -> Result<EscrowProof, WriteError<EscrowError>>;

    /// Writes down that a holder opened a version. The latest time counts.
    ///
    /// # Errors
    /// [`EscrowError`].
    async fn escrow_opened(
        &self,
        asking: EscrowCaller,
        number: EscrowNumber,
        opened: EscrowOpened,
        reached: Recipients,
    ) -> Result<EscrowKept, WriteError<EscrowError>>;

    /// Gives a version out, and queues the notice of it.
    ///
    /// # Errors
    /// [`EscrowError`].
    async fn read_escrow(
        &self,
        asking: EscrowCaller,
        which: EscrowSelector,
        reached: Recipients,
    ) -> Result<EscrowFound, WriteError<EscrowError>>;

    /// Lists a host's versions for an operator; `None` when there is no such host.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn host_escrows(
        &self,
        host: HostRef,
        reached: Recipients,
    ) -> Result<Option<EscrowList>, StoreError>;

    /// Gives files out to an operator, and queues the notices of it; `None` when there is no such host.
    ///
    /// # Errors
    /// [`EscrowError`].
    async fn fetch_escrow(
        &self,
        by: By,
        host: HostRef,
        which: EscrowSelector,
        reached: Recipients,
    ) -> Result<Option<EscrowFiles>, WriteError<EscrowError>>;
}
