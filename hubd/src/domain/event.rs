//! Kinds of events and their texts.

use holdfast_protocol::id::{CorrelationId, HostId, OperatorName};
use jiff::Timestamp;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[$doc])* $name,)*
        }

        impl EventKind {
            /// The kind as written on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// The agent stopped on purpose.
    AgentFarewell = "agent_farewell"
    /// The audit of a host does not continue from what was seen of it.
    AuditChainBroken = "audit_chain_broken"
    /// An operator added a customer.
    CustomerAdded = "customer_added"
    /// An operator changed a customer.
    CustomerChanged = "customer_changed"
    /// An operator removed a customer.
    CustomerRemoved = "customer_removed"
    /// A change of the hub's CA was begun.
    CaChangeBegun = "ca_change_begun"
    /// A change of the hub's CA was finished: certificates of the CA that it left are not accepted any more.
    CaChangeFinished = "ca_change_finished"
    /// A change of the hub's CA was taken back.
    CaChangeTakenBack = "ca_change_taken_back"
    /// An operator put a desired document.
    DesiredChanged = "desired_changed"
    /// The agent would not take a desired document.
    DesiredRefused = "desired_refused"
    /// An escrow went for a newer one.
    EscrowDropped = "escrow_dropped"
    /// A host's wrapped key is kept in a new version.
    EscrowKept = "escrow_kept"
    /// A holder of a code opened an escrow, as its host says.
    EscrowOpened = "escrow_opened"
    /// An escrow file was read; its customer is notified.
    EscrowRead = "escrow_read"
    /// A host is silent beyond its time.
    HeartbeatMissed = "heartbeat_missed"
    /// A host got its first certificate.
    HostEnrolled = "host_enrolled"
    /// A new machine took the place of a lost one.
    HostRestored = "host_restored"
    /// A host shows a later certificate than the hub wrote down: the hub was restored from a backup.
    HostAhead = "host_ahead"
    /// Two held one identity.
    HostFrozen = "host_frozen"
    /// A condition lasted beyond its grace.
    IncidentFired = "incident_fired"
    /// A condition that had fired is over.
    IncidentResolved = "incident_resolved"
    /// An operator acknowledged an incident, or took that back.
    IncidentAcknowledged = "incident_acknowledged"
    /// An operator added a silence.
    SilenceAdded = "silence_added"
    /// An operator ended a silence before its time.
    SilenceEnded = "silence_ended"
    /// An operator announced maintenance of a host, or ended it.
    MaintenanceChanged = "maintenance_changed"
    /// A host reported for the first time, or again after an alarm.
    HostOnline = "host_online"
    /// An operator changed labels of a host.
    HostLabelsChanged = "host_labels_changed"
    /// An operator said when a host may be updated.
    HostWindowsChanged = "host_windows_changed"
    /// A host got its next certificate.
    HostRenewed = "host_renewed"
    /// An operator let a host go.
    HostRevoked = "host_revoked"
    /// An operator made an invite.
    InviteCreated = "invite_created"
    /// A host took a signed job back before it began, because another said so.
    JobCancelled = "job_cancelled"
    /// A signed job came to nothing.
    JobFailed = "job_failed"
    /// A customer objects to a signed job, or an operator does for them.
    JobObjected = "job_objected"
    /// An operator left a signed job for a host.
    JobQueued = "job_queued"
    /// A host would not take a signed job.
    JobRefused = "job_refused"
    /// A host took a signed job.
    JobTaken = "job_taken"
    /// A signed job is done.
    JobSucceeded = "job_succeeded"
    /// An operator withdrew a signed job before the host reported on it.
    JobWithdrawn = "job_withdrawn"
    /// An operator readmitted a revoked host.
    HostReadmitted = "host_readmitted"
    /// An operator approved an enrollment request.
    EnrollmentApproved = "enrollment_approved"
    /// A host requested enrollment.
    EnrollmentRequested = "enrollment_requested"
    /// An operator refused an enrollment request for good.
    EnrollmentRefused = "enrollment_refused"
    /// An operator made an invite to take a host's place.
    RestoreInvited = "restore_invited"
    /// An operator deleted a release.
    ReleaseDeleted = "release_deleted"
    /// A release is offered to a host.
    ReleaseOffered = "release_offered"
    /// A release is no longer offered to a host.
    ReleaseOfferWithdrawn = "release_offer_withdrawn"
    /// A rollout was planned, started, paused, resumed, aborted or finished, or opened a wave.
    RolloutChanged = "rollout_changed"
    /// The hub stopped a rollout.
    RolloutHeld = "rollout_held"
    /// An operator left a release.
    ReleasePut = "release_put"
    /// An operator took such an invite's order back.
    RestoreWithdrawn = "restore_withdrawn"
    /// A customer could not be notified of a read or a job.
    NoticeGivenUp = "notice_given_up"
    /// A customer was notified of a read or a job.
    NoticeSent = "notice_sent"
    /// An operator was made.
    OperatorAdded = "operator_added"
    /// A person got another role or scope.
    OperatorChanged = "operator_changed"
    /// An operator was removed.
    OperatorRevoked = "operator_revoked"
    /// Somebody made a token for a machine.
    TokenCreated = "token_created"
    /// A token got another secret.
    TokenRotated = "token_rotated"
    /// All secrets of a token ended.
    TokenRevoked = "token_revoked"
    /// A person signed in.
    SignedIn = "signed_in"
    /// Sign-ins were refused.
    SignInRefused = "sign_in_refused"
    /// A sign-in link was made.
    SignInLinkMade = "sign_in_link_made"
    /// A session was ended before its time.
    SessionEnded = "session_ended"
    /// A password was set.
    PasswordSet = "password_set"
    /// An authenticator was put into use, with new recovery codes.
    AuthenticatorSet = "authenticator_set"
    /// An operator was linked with a person of the provider.
    ProviderLinked = "provider_linked"
    /// Such a link was ended.
    ProviderUnlinked = "provider_unlinked"
    /// A group of the provider changed what an operator may do.
    ProviderGrantChanged = "provider_grant_changed"
    /// An operator ordered something from a host.
    WorkOrdered = "work_ordered"
    /// An operator asked for an order to be taken back.
    WorkOrderCancelRequested = "work_order_cancel_requested"
    /// An order was taken back before it began.
    WorkOrderCancelled = "work_order_cancelled"
    /// The time of an order ended before it began.
    WorkOrderExpired = "work_order_expired"
    /// An order came to nothing.
    WorkOrderFailed = "work_order_failed"
    /// An order is done.
    WorkOrderSucceeded = "work_order_succeeded"
}

/// One thing to be written down.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub at: Timestamp,
    pub kind: EventKind,
    /// To which host.
    pub host: Option<HostId>,
    /// Who did it, where a person did.
    pub actor: Option<OperatorName>,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
    pub message: String,
}
