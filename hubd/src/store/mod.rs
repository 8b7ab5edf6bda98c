//! The store of the hub: what is durable, whatever engine keeps it.
//!
//! In: typed requests of `api` and `task`. Out: what is durable. [`Store`] is the sum of one trait for each kind of
//! thing; `sqlite` implements all of them. Five rules hold for each method, so that a second engine can implement the
//! same traits. `tests/it/store` runs the same stories on every engine:
//!
//! 1. It can fail, with [`StoreError`]; where the rules of `domain` may refuse, with [`WriteError`], and then nothing changed.
//! 2. What is not there is `None`, not an error.
//! 3. Times, ids and randomness come with the request. An engine has neither a clock nor a source of randomness. Only the
//!    end of a lease is judged by the database's own clock: it is the one clock that several hubs share.
//! 4. An effect that one hub has at a time takes a [`Term`], and is held against it in its transaction.
//! 5. It is one transaction, answered after it is durable. No name and no type refers to an engine.

mod alerts;
mod audit_heads;
mod bounds;
mod certificates;
mod checkin;
mod checkin_changes;
mod checkin_request;
mod customers;
mod desired;
pub mod duty;
mod enrollment_requests;
mod escrow;
mod escrow_notices;
mod events;
mod grants;
mod guest_audit;
mod guest_jobs;
mod host_certificates;
mod host_labels;
mod hosts;
mod idempotency;
mod image_approvals;
mod invites;
mod jobs;
mod leases;
mod liveness;
mod machine_tokens;
mod object_facts;
mod oidc;
mod operators;
mod outbox;
mod page_changes;
mod prune;
mod release_offers;
mod releases;
mod renewal;
mod replicas;
mod restore_certificates;
mod restore_orders;
mod restores;
mod rollouts;
mod sessions;
mod sign_in;
mod state_snapshots;
mod term;
mod threads;
mod usage;
mod webhook;
mod work_orders;

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_protocol::id::HostId;
use holdfast_protocol::restore_certificate::Countersignature;
use jiff::Timestamp;
use restore_certificate::countersign::{CountersignError, KeyOwner, Received};
use tokio::sync::watch;

pub use alerts::{
    AcknowledgeError, Acknowledgement, AlertName, AlertPicture, Alerts, AnnouncedEnd, HostMaintenance,
    IncidentFilter, IncidentQuery, IncidentRecord, LogFilter, LogRecord, NewSilence, OwnFacts, SILENCES_MAX,
    SilenceRequestError,
};
pub use audit_heads::AuditHeads;
pub use bounds::{
    EPOCHS_MAX, FAILING_TRIES, MAINTENANCE_MAX, NOTICES_WAITING_MAX, POLL_WITHOUT_DOCUMENT_S,
    REVOKED_NAMESAKES_SHOWN, ROLLOUT_DECISIONS_MAX, SAMPLE_OLD, THINNED_S,
};
pub use certificates::CertificateRecord;
pub use checkin::{CheckinReply, Checkins, Update};
pub(crate) use checkin_changes::{CheckinChanges, HostFacts, checkin_changes};
pub use checkin_request::{Checkin, SectionTexts};
pub use customers::{CUSTOMERS_MAX, CustomerError, CustomerUse, Customers};
pub use desired::{DesiredDocuments, Put, PutDone};
pub use duty::Duty;
pub use enrollment_requests::{
    Approval, EnrollmentReply, EnrollmentRequestError, EnrollmentRequests, NewEnrollmentRequest,
};
pub use escrow::{EscrowCaller, EscrowError, EscrowSelector, Escrows};
pub use escrow_notices::{
    EscrowNotices, JOB_NOTICES_MAX, JOB_NOTICES_WITHIN, NoticeEnd, NoticeSubject, OutgoingNotice,
    ended_event, too_many_notices,
};
pub use events::{EventFilter, EventText, Events};
pub use grants::{GrantChange, GrantChangeError, Grants};
pub use guest_audit::{AuditDelivery, GuestAudits, RECORDS_PER_GUEST, RECORDS_PER_HOST};
pub use guest_jobs::{GuestJobs, OBJECTIONS_MAX, ObjectionError};
pub use host_certificates::{CaEvent, CaEventKind, HostCertificate, HostCertificates};
pub use host_labels::HostLabelling;
pub use hosts::{HostRecord, Hosts};
pub use idempotency::{By, Claim};
pub use image_approvals::{ImageApprovalDone, ImageApprovals};
pub use invites::{InviteMade, InviteRequestError, Invites, NewInvite, RedeemError, Redemption};
pub use jobs::{JobDone, SignedJobs, SubmitJob};
pub use leases::Leases;
pub use liveness::{Contacts, HostContact, LastContact};
pub use machine_tokens::{
    MachineRecord, MachineTokenError, MachineTokens, NewMachineToken, NewSecret, SECRETS_MAX, SecretMade,
    TOKENS_PER_MAKER_MAX, USE_WRITTEN_S,
};
pub use object_facts::{ObjectRef, Objects};
pub use oidc::{
    NewOidcSignIn, NewProviderLink, OidcSignInError, ProviderIdentity, ProviderLinkError, ProviderLinks,
};
pub use operators::{NewOperator, OperatorError, OperatorRecord, Operators, TokenMade};
pub use outbox::{DeliveryEnd, DeliveryRecord, Outbox, OutgoingAlert, ReceiverQueue, TestError};
pub use page_changes::{PAGE_CHANGES_MAX, PageChange, PageChangeQuery, PageChanges};
pub use prune::{
    ALERT_LOG_KEPT, ANSWERS_KEPT, AUDIT_RECORDS_KEPT, CERTIFICATES_KEPT, DELIVERIES_KEPT,
    ENROLLMENT_REQUESTS_KEPT, EVENTS_KEPT, INVITES_KEPT, JOBS_KEPT, NOTICES_KEPT, Pruning, READINGS_KEPT,
    SESSIONS_KEPT, SILENCES_KEPT, VERSIONS_KEPT, WORK_ORDERS_KEPT,
};
pub use release_offers::ReleaseOffers;
pub use releases::{AskingHost, NewRelease, ReleaseRecord, Releases};
pub use renewal::{RenewError, Renewal, Renewals};
pub use replicas::{ChangedHosts, Replicas};
pub use restore_certificates::{CertificateDelivery, RestoreCertificateError, RestoreCertificates};
pub use restore_orders::{
    NewWithdrawal, RESTORE_ORDERS_MAX, RESTORE_ORDERS_SHOWN, RestoreOrders, WithdrawError,
};
pub use restores::{NewRestore, Redeemed, RestoreError, RestoreRedemption, RestoreRequestError, Restores};
pub use rollouts::{PlanRolloutError, ROLLOUTS_MAX, Rollouts};
pub use sessions::{NewSession, SESSIONS_MAX, SessionChoice, SessionEnd, SessionRecord, Sessions};
pub use sign_in::{
    Authenticator, ConfirmedAuthenticator, Credentials, NewLinkSession, NewPassword, NewSignIn,
    NewSignInLink, SignInChange, SignInError, SignInLinkMade, SignIns, UsedFactor,
};
pub use state_snapshots::{KeepOutcome, NewStateSnapshot, StateSnapshots};
pub use term::{Epoch, Fence, Grant, HolderId, LEASE, Lease, LeaseLength, RENEW_EVERY, Tenure, Term};
pub use threads::WriterThread;
pub use usage::{Thinned, Usage, UsageQuery};
pub use webhook::{Outgoing, WebhookQueue};
pub use work_orders::{NewWorkOrder, WorkOrderDone, WorkOrderFilter, WorkOrders};

use crate::authority::{AgentKey, IssueError, Issued};

/// Items on a page at most.
pub const PAGE_MAX: u32 = 500;

/// Makes a certificate inside of a transaction, so that there is at most one.
pub type Issue = Box<dyn FnOnce(HostId, u32, &AgentKey, Timestamp) -> Result<Issued, IssueError> + Send>;

/// Signs a statement inside of a transaction, so that there is at most one for each certificate.
pub type Countersign =
    Box<dyn FnOnce(&Received, &KeyOwner) -> Result<Countersignature, CountersignError> + Send>;

/// The store that all parts of the hub share.
pub type SharedStore = Arc<dyn Store>;

/// Everything that the hub keeps.
#[async_trait]
pub trait Store:
    Alerts
    + AuditHeads
    + Checkins
    + Contacts
    + Customers
    + DesiredDocuments
    + EnrollmentRequests
    + EscrowNotices
    + Grants
    + Escrows
    + Events
    + GuestAudits
    + GuestJobs
    + HostCertificates
    + HostLabelling
    + Hosts
    + ImageApprovals
    + Invites
    + MachineTokens
    + Objects
    + Leases
    + Operators
    + Outbox
    + PageChanges
    + ProviderLinks
    + Pruning
    + ReleaseOffers
    + Releases
    + Renewals
    + Replicas
    + RestoreCertificates
    + RestoreOrders
    + Restores
    + Rollouts
    + Sessions
    + SignIns
    + SignedJobs
    + StateSnapshots
    + Usage
    + WebhookQueue
    + WorkOrders
{
    /// Changes at every commit that wrote an event.
    fn events_written(&self) -> watch::Receiver<u64>;

    /// Whether it takes a write and answers a read.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn ready(&self) -> Result<(), StoreError>;

    /// What is wrong with what is stored, at most a few sentences; none where it is whole. It reads everything.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn check_database(&self) -> Result<Vec<String>, StoreError>;
}

/// Why the store could not carry out a request that was itself correct.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Too much waits already.
    #[error("the hub is busy: ask again a little later")]
    Busy,
    /// The engine has ended.
    #[error("the hub is stopping")]
    Stopped,
    /// Another hub has the duty, or nobody has.
    #[error("this hub's term in the duty {} is over, and nothing was written: another hub goes on", .0.as_str())]
    TermOver(Duty),
    /// The engine says no.
    #[error("the database could not {action}: look at its disk and at the hub's log")]
    Engine {
        /// What was to be done.
        action: &'static str,
        /// What the engine says.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A stored value cannot be read back.
    #[error("the database holds something this hub cannot read, when asked to {action}")]
    Damaged {
        /// What was to be done.
        action: &'static str,
        /// What it is.
        #[source]
        source: Arc<serde_json::Error>,
    },
}

/// Why a write was not done.
#[derive(Debug)]
pub enum WriteError<E> {
    /// The rules refuse it.
    Refused(E),
    /// The idempotency key was used with another request.
    KeyReused,
    /// The store could not.
    Store(StoreError),
}

impl<E> From<StoreError> for WriteError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A write that no rule can refuse.
impl From<WriteError<std::convert::Infallible>> for StoreError {
    fn from(error: WriteError<std::convert::Infallible>) -> Self {
        match error {
            WriteError::Refused(never) => match never {},
            // Only mutations with a key get here, and they have rules.
            WriteError::KeyReused => Self::Busy,
            WriteError::Store(error) => error,
        }
    }
}
