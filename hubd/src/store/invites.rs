//! Invites and their redemption.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId, HostName, InviteId};
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::certificates::CertificateRecord;
use super::idempotency::By;
use super::{Issue, WriteError};
use crate::authority::{AgentKey, IssueError};
use crate::domain::enrollment::InviteError;

/// An invite to be made.
#[derive(Clone, Debug)]
pub struct NewInvite {
    pub id: InviteId,
    /// What the host will be called.
    pub host_name: HostName,
    /// The hash of its secret.
    pub secret: TokenHash,
}

/// An invite that was made. Its secret is not here; it can be derived from the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteMade {
    pub id: InviteId,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Why an invite is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteRequestError {
    /// A host of that name is there.
    #[error("a host called {name} is there already: revoke it first, or choose another name")]
    Taken { name: HostName },
    /// The clock is beyond what can be written.
    #[error("the hub's clock is beyond what can be written: set the clock")]
    Time,
}

/// An invite, presented.
pub struct Redemption {
    /// The hash of the secret.
    pub secret: TokenHash,
    /// The applicant's key.
    pub key: AgentKey,
    /// The id of the host, should it become one.
    pub host: HostId,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Why an invite gives no certificate.
#[derive(Debug, thiserror::Error)]
pub enum RedeemError {
    /// The rules say so.
    #[error(transparent)]
    Invite(#[from] InviteError),
    /// Another host took the name in the meantime.
    #[error("a host called {name} was enrolled in the meantime: ask for an invite with another name")]
    Taken { name: HostName },
    /// The key is another host's.
    #[error(
        "another host has this key, or had it: remove `identity/enrol.key.pem` in the agent's state folder and enrol again, so that the box makes a key of its own"
    )]
    KeyTaken,
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
}

/// Invites and their redemption.
#[async_trait]
pub trait Invites: Send + Sync {
    /// Makes an invite.
    ///
    /// # Errors
    /// [`InviteRequestError`].
    async fn create_invite(
        &self,
        by: By,
        invite: NewInvite,
    ) -> Result<InviteMade, WriteError<InviteRequestError>>;

    /// Redeems an invite. `issue` makes the certificate, inside the transaction, so that there is at most one.
    ///
    /// # Errors
    /// [`RedeemError`].
    async fn redeem(
        &self,
        redemption: Redemption,
        issue: Issue,
    ) -> Result<CertificateRecord, WriteError<RedeemError>>;
}
