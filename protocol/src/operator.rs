//! The operator API of the hub.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/whoami` | | [`WhoAmI`] |
//! | `POST /v1/invites` | [`InviteRequest`] | [`InviteCreated`] |
//! | `GET /v1/hosts` | | [`Page`] of [`HostView`] |
//! | `GET /v1/guests` | | [`Page`] of [`GuestOnHost`] |
//! | `GET /v1/hosts/{id or name}` | | [`HostDetail`] |
//! | `POST /v1/hosts/{id or name}/revoke` | | [`HostView`] |
//! | `POST /v1/hosts/{id or name}/labels` | [`LabelChange`](crate::host_label::LabelChange) | [`HostView`] |
//! | `PUT /v1/hosts/{id or name}/update-windows` | [`UpdateWindowsPut`] | [`HostView`] |
//! | `GET /v1/enrollment-requests` | | [`Page`] of [`EnrollmentRequestView`] |
//! | `POST /v1/enrollment-requests/{id}/approve` | [`EnrollmentApproval`] | [`EnrollmentRequestView`] |
//! | `POST /v1/enrollment-requests/{id}/refuse` | | [`EnrollmentRequestView`] |
//! | `GET /v1/hosts/{id or name}/desired` | | [`DesiredVersion`], ETag is the generation in quotes |
//! | `PUT /v1/hosts/{id or name}/desired`, `If-Match` | [`DesiredPut`] | [`DesiredVersion`] |
//! | `GET /v1/hosts/{id or name}/desired/history` | | [`Page`] of [`DesiredVersion`] |
//! | `GET /v1/hosts/{id or name}/jobs` | | [`Page`] of [`JobView`], newest first |
//! | `POST /v1/hosts/{id or name}/jobs` | [`JobSubmit`] | [`JobView`] |
//! | `GET /v1/hosts/{id or name}/jobs/{id}` | | [`JobDetail`] |
//! | `POST /v1/hosts/{id or name}/jobs/{id}/withdraw` | | [`JobView`] |
//! | `GET /v1/hosts/{id or name}/tunnels/{name}/order` | | [`TunnelOrder`] |
//! | `GET /v1/hosts/{id or name}/work-orders` | | [`Page`] of [`crate::work_order::WorkOrderView`], newest first |
//! | `POST /v1/hosts/{id or name}/work-orders` | [`crate::work_order::WorkOrderRequest`] | [`crate::work_order::WorkOrderView`] |
//! | `GET /v1/hosts/{id or name}/work-orders/{id}` | | [`crate::work_order::WorkOrderDetail`] |
//! | `POST /v1/hosts/{id or name}/work-orders/{id}/cancel` | | [`crate::work_order::WorkOrderView`] |
//! | `GET /v1/operators` | | [`Page`] of [`OperatorView`], for admins |
//! | `POST /v1/operators` | [`OperatorRequest`] | [`OperatorMade`], for admins |
//! | `POST /v1/operators/{name}/revoke` | | [`OperatorView`], for admins |
//! | `GET /v1/operators/{name}/oidc` | | [`ProviderLink`](crate::oidc::ProviderLink), for admins |
//! | `PUT /v1/operators/{name}/oidc` | [`ProviderPerson`](crate::oidc::ProviderPerson) | [`ProviderLink`](crate::oidc::ProviderLink), for admins |
//! | `DELETE /v1/operators/{name}/oidc` | | [`ProviderLink`](crate::oidc::ProviderLink), for admins |
//! | `GET /v1/events` | | [`Page`] of [`EventView`] |

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::AccessScope;
pub use crate::access::Role;
use crate::condition::ConditionCode;
use crate::desired::Reason;
use crate::enrol::SealingIdentity;
use crate::generation::Generation;
use crate::host_label::HostLabels;
use crate::id::{
    CorrelationId, EnrollmentRequestId, HostId, HostName, InviteId, JobId, OperatorName, TunnelName,
};
use crate::job::JobReport;
use crate::objection::ObjectionView;
use crate::pin::Pin;
use crate::release::stored::HostOffer;
use crate::release::window::UpdateWindows;
use crate::report::{AuditHead, GuestReport, Sections};
use crate::restore::RestoreOrder;
use crate::secret::Secret;
use crate::size::TokenDays;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhoAmI {
    /// The operator.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// What they may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// How the caller proved it.
    #[serde(default)]
    pub proof: Proof,
    /// The hub's version.
    pub hub_version: String,
}

/// How a caller proved who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// By a token of a person.
    #[default]
    PersonToken,
    /// By a token of a machine.
    MachineToken,
    /// By the session of a person.
    Session,
}

/// Requests an operator, or another token of one who exists in the same role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorRequest {
    /// The name.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// What they may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// How long the token lives.
    pub days: TokenDays,
}

/// An operator's new token. It is shown this once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorMade {
    /// The operator.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// What they may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// The token, for `holdfast login`.
    pub token: Secret,
    /// When the token ends.
    pub expires_at: Timestamp,
}

/// An operator, as the hub knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorView {
    /// The name.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// What they may touch.
    #[serde(default, skip_serializing_if = "AccessScope::is_everything")]
    pub scope: AccessScope,
    /// When the last of their tokens ends; none where they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When they were let go, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// Requests an invite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteRequest {
    /// What the host will be called.
    pub host_name: HostName,
}

/// A new invite. Its code is shown this once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteCreated {
    /// Names the invite.
    pub invite: InviteId,
    /// The whole line for `agentd enroll`.
    pub code: Secret,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// For the next page; none on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Whether a host is heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Enrolled, not heard of yet, and not overdue.
    New,
    /// Enrolled, and never heard of in its time: the alarm was raised.
    NeverSeen,
    /// Heard of in time.
    Online,
    /// Heard of in time, and something critical is wrong with the host itself: [`Degraded`] says what.
    Degraded,
    /// One interval overdue.
    Late,
    /// Three intervals and a minute overdue: the alarm was raised.
    Offline,
    /// Two holders of one identity, or an operator's decision: nothing is served to it.
    Frozen,
    /// Let go.
    Revoked,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostView {
    /// Its id.
    pub id: HostId,
    /// Its name.
    pub name: HostName,
    /// Whether it is heard of.
    pub state: HostState,
    /// When it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// What is wrong with the host itself, where that is critical and lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Degraded>,
    /// Until when it is in maintenance, where it is: no alert of it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_until: Option<Timestamp>,
    /// The newest desired generation; 0 is none.
    pub wanted: Generation,
    /// The generation the host holds.
    pub held: Generation,
    /// Its agent's version, once reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Guests that run, of all that are ours.
    pub guests_running: u32,
    /// Guests that are ours.
    pub guests: u32,
    /// What needs a person: guests with conditions, requests that wait for a signature, a refused document, and every problem of
    /// the agent itself.
    pub attention: u32,
    /// When its certificate ends.
    pub certificate_ends_at: Timestamp,
    /// Its labels.
    #[serde(default, skip_serializing_if = "HostLabels::is_empty")]
    pub labels: HostLabels,
    /// When rollouts may offer it a release; without any at each time.
    #[serde(default, skip_serializing_if = "UpdateWindows::is_empty")]
    pub update_windows: UpdateWindows,
}

/// A guest, as its host last reported it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestOnHost {
    /// The host's id.
    pub host_id: HostId,
    /// The host's name.
    pub host: HostName,
    /// Whether the host is heard of.
    pub host_state: HostState,
    /// When it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// The guest.
    pub guest: GuestReport,
}

/// When rollouts may offer a host a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWindowsPut {
    /// Only in these; without any at each time.
    pub windows: UpdateWindows,
}

/// Why a host that reports is not well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Degraded {
    /// Since when.
    pub since: Timestamp,
    /// The critical condition of the host. Without it the agent cannot see Proxmox, and its reports on guests and storages
    /// are as old as `since`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionCode>,
    /// The agent's own explanation.
    pub reason: String,
}

/// One host with its last report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostDetail {
    /// The host.
    pub host: HostView,
    /// All sections as last reported.
    pub sections: Sections,
    /// Orders to restore it of the last ninety days, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restores: Vec<RestoreOrder>,
    /// Its earlier epochs, newest first: each ended when another certificate line began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<PastEpoch>,
    /// The release of the agent that it is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<HostOffer>,
}

/// The end of a host's audit, as it was reported once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptHead {
    /// How many lines there were.
    pub number: u64,
    /// The hash of the last one; empty when there was none.
    pub chain: String,
    /// When it was reported, by the hub's clock.
    pub at: Timestamp,
}

/// Evidence that an audit is another history than was seen of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditBreak {
    /// When it was reported, by the hub's clock.
    pub at: Timestamp,
    /// The end that was seen before.
    pub kept: AuditHead,
    /// The end that the host reported then.
    pub found: AuditHead,
}

/// What the hub keeps of the audit of a host's present epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditEvidence {
    /// Ends that were reported, the newest first: the last 64, then one an hour for a week, then one a day.
    pub heads: Vec<KeptHead>,
    /// Evidence of another history, the oldest first.
    pub breaks: Vec<AuditBreak>,
}

/// An epoch of a host that has ended, by readmission or by replacement. The audit is numbered from 1 in each epoch, so a
/// number means something only together with its epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PastEpoch {
    /// Generation of the first certificate of the next epoch. All certificates of this epoch are older.
    pub before_generation: u32,
    /// The highest audit number that the hub received in it.
    pub audit_seen: u64,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub end: EpochEnd,
}

/// How an epoch of a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EpochEnd {
    /// The host had been revoked, and an operator let it come back.
    Readmitted,
    /// Another machine replaced it by a signed job.
    Restored,
}

/// A host that requests enrollment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnrollmentRequestView {
    /// Its id.
    pub id: EnrollmentRequestId,
    /// What it says it is called.
    pub claimed_name: HostName,
    /// Its keys, to be compared by eye with what the host shows.
    pub fingerprint: Pin,
    /// The key of its certificate, where the fingerprint covers more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Pin>,
    /// What orders for it are sealed and signed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing: Option<SealingIdentity>,
    /// When it sent its first request.
    pub first_at: Timestamp,
    /// Its state.
    pub state: EnrollmentRequestState,
    /// The host that it became when it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// While it is pending: the newest revoked hosts with the name that it gives. A name proves nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<RevokedHost>,
    /// While it is pending: the host whose latest key this is. Its certificate ended before it was renewed; approved
    /// as that host, it goes on with its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<HostId>,
}

/// A revoked host that an enrollment request may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokedHost {
    /// The host's id.
    pub id: HostId,
    /// When the hub last heard from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
}

/// The state of an enrollment request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnrollmentRequestState {
    /// Undecided.
    Pending,
    /// Let in.
    Approved,
    /// Refused for good.
    Refused,
}

/// Lets a host in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnrollmentApproval {
    /// What the host will be called.
    pub host_name: HostName,
    /// The key that the operator read on the host.
    pub fingerprint: Pin,
    /// The revoked host to readmit, with its history. Absent: a new host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<HostId>,
}

/// Puts a desired document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredPut {
    /// Why; kept in the history.
    pub reason: Reason,
    /// The document's text, `holdfast.desired/v1`, with the next generation.
    pub document: String,
}

/// One version of a host's desired document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredVersion {
    /// Its generation.
    pub generation: Generation,
    /// SHA-256 of its content, in hex.
    pub content: String,
    /// Who put it.
    pub author: OperatorName,
    /// Why.
    pub reason: Reason,
    /// When.
    pub put_at: Timestamp,
    /// Its text.
    pub document: String,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventView {
    /// Counts all events of the hub.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What, such as `host_enrolled` or `heartbeat_missed`.
    pub kind: String,
    /// To which host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// Who did it, where a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<OperatorName>,
    /// In words.
    pub message: String,
    /// The correlation id of the click or call that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
}

/// Leaves a signed job for a host. The hub cannot open it, and need not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSubmit {
    /// The job's id, as its payload says.
    pub job: JobId,
    /// The signed job, as `holdfast sign` wrote it.
    pub blob: String,
    /// The tunnel that it gives a token: the newest such job is kept, for a host that replaces this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelName>,
}

/// The newest order that gave a tunnel its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelOrder {
    /// The job.
    pub job: JobId,
    /// Who submitted it.
    pub by: OperatorName,
    /// When.
    pub submitted_at: Timestamp,
    /// Its text.
    pub blob: String,
}

/// How far a signed job is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueState {
    /// The host has not reported on it yet.
    Queued,
    /// The host has reported on it.
    Answered,
    /// An operator withdrew it before the host reported on it.
    Withdrawn,
}

/// A signed job, as the hub holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Who left it here.
    pub by: OperatorName,
    /// When.
    pub submitted_at: Timestamp,
    /// Its length in bytes.
    pub bytes: u32,
    /// How far it is on its way.
    pub queue_state: QueueState,
    /// The host's report on it, as the hub passes it on. The audit of the host is the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<JobReport>,
    /// The correlation id of the click that left it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Who objects to it, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ObjectionView>,
}

/// A signed job with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobDetail {
    /// The job.
    pub job: JobView,
    /// The signed job itself, to be checked, or signed by another operator.
    pub blob: String,
}
