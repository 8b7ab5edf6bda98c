//! Restore invites and their redemption by a replacement host.
//!
//! Redeemed once, in one transaction: the certificate, the end of the old identity, the hand-over, the read of the wrapped
//! key with its notice. A repeat with the same key is the same answer, and one more read.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId, InviteId};
use holdfast_protocol::restore::{HandOver, Replacement};
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;

use super::certificates::CertificateRecord;
use super::idempotency::By;
use super::invites::InviteMade;
use super::{Issue, StoreError, WriteError};
use crate::authority::{AgentKey, IssueError};
use crate::domain::enrollment::InviteError;
use crate::domain::escrow_notice::Recipients;
use crate::domain::host::HostRef;
use crate::domain::identity::Presented;

/// An invite to be made.
#[derive(Clone, Debug)]
pub struct NewRestore {
    pub id: InviteId,
    /// The hash of its secret.
    pub secret: TokenHash,
    /// Whose place is taken.
    pub host: HostRef,
    /// Whom the order names.
    pub ordered: HostId,
    /// The order, as it was left.
    pub order: String,
}

/// Why no such invite is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreRequestError {
    /// The order is for another host.
    #[error("the order is for host {ordered}, and this is {here}: sign one for this host")]
    Other {
        /// Whom the order names.
        ordered: HostId,
        /// The host that the request names.
        here: HostId,
    },
    /// The host was revoked.
    #[error(
        "this host was revoked, so no other machine can replace it: enroll the new machine as a new host"
    )]
    Revoked,
    /// The clock is beyond what can be written.
    #[error("the hub's clock is beyond what can be written: set the clock")]
    Time,
}

/// Such an invite, presented.
pub struct RestoreRedemption {
    /// The hash of the secret.
    pub secret: TokenHash,
    /// The new machine's key.
    pub key: AgentKey,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
    /// The reader named in the notice.
    pub reached: Recipients,
}

/// Why it gives nothing.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The rules say so.
    #[error(transparent)]
    Invite(#[from] InviteError),
    /// The host was revoked meanwhile.
    #[error("the host of this invite was revoked meanwhile: enrol this box as a new host")]
    Revoked,
    /// The key belongs to another host, or to the old machine.
    #[error(
        "a host has this key, or had it: remove `identity/enrol.key.pem` in the agent's state folder and enrol again, so that \
         the box makes a key of its own"
    )]
    KeyTaken,
    /// The order names the key of another machine.
    #[error(
        "the operators' order lets another box take this host's place: have one signed with the key that \
         `agentd enroll --show-key` prints here"
    )]
    OtherKey,
    /// Operators took the order back.
    #[error("the operators took this order back: ask for a new one (`holdfast host restore HOST`)")]
    Withdrawn,
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
    /// Four thousand million certificates.
    #[error("this host has had every certificate there is: enrol the new box as a new host")]
    Exhausted,
}

/// What the new machine receives.
#[derive(Clone, Debug)]
pub struct Redeemed {
    pub certificate: CertificateRecord,
    /// The order, as it was left.
    pub order: String,
    /// What the hub hands over from the lost machine.
    pub handover: HandOver,
}

/// Restore invites and their redemption.
#[async_trait]
pub trait Restores: Send + Sync {
    /// Makes an invite that lets a new machine take a host's place.
    ///
    /// # Errors
    /// [`RestoreRequestError`]; `None` when there is no such host.
    async fn create_restore(
        &self,
        by: By,
        restore: NewRestore,
    ) -> Result<Option<InviteMade>, WriteError<RestoreRequestError>>;

    /// Redeems one. `issue` makes the certificate, inside the transaction, so that there is at most one.
    ///
    /// # Errors
    /// [`RestoreError`].
    async fn redeem_restore(
        &self,
        redemption: RestoreRedemption,
        issue: Issue,
    ) -> Result<Redeemed, WriteError<RestoreError>>;

    /// What replaced the machine of an older certificate; `None` where nothing did.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn replacement(&self, presented: Presented) -> Result<Option<Replacement>, StoreError>;
}
