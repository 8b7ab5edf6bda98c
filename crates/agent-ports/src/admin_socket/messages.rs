//! Questions and answers of the admin socket.

use std::collections::BTreeMap;

use agent_slots::health::AgentHealth;
use agent_slots::withdrawal::TrialWithdrawal;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, HostId, HostName, OperationId};
use holdfast_protocol::job::HostFingerprint;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::protection::{Tier, TierTested, Took};
use holdfast_protocol::report::{FieldState, GuestReport, Sections};
use holdfast_protocol::work_order::DiagnosticName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::escrow::{EscrowAnswer, EscrowQuestion};
use crate::hub::Contact;
use crate::model::observed::FactTimes;
use crate::model::parked::ParkedEntry;
use crate::model::records::VolumeId;
use crate::model::token_age::TokenAge;
use crate::model::view::{GrowthLine, HeavyView, LaneView};
use crate::plan::recovery::RecoveryReport;
use crate::pve::Role;
use crate::store::token_holder::Thawed;

/// The longest question: a reason of two thousand characters, and its frame.
pub const QUESTION_BYTES_MAX: usize = 8 * 1024;

/// The version of question and answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdminSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.admin/v1")]
    V1,
}

/// A question in its frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub schema: AdminSchema,
    pub question: Question,
}

/// The questions to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The status of the agent.
    Status,
    /// Whether each part of the agent works, for the gate that judges a build on trial.
    Health,
    /// Whether the offer of the release on trial was withdrawn, for the gate that watches the trial.
    TrialWithdrawal,
    /// The plans of the last starts, and their outcome.
    Recovery {
        /// How many of them.
        last: u32,
    },
    /// About recovery codes.
    Escrow(EscrowQuestion),
    /// The fields of a guest, each as the document, Proxmox and the last change have it.
    Fields {
        /// Its name, number or uid.
        guest: String,
    },
    /// The results of restore tests of a guest's backups.
    RestoreTests {
        /// Its name, number or uid.
        guest: String,
    },
    /// The metrics of this host.
    Metrics,
    /// Read the tokens for Proxmox anew, try those that changed, and use them.
    TakeTokens,
    /// One named reading of the host.
    Diagnose {
        name: DiagnosticName,
        /// Only of this guest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guest: Option<GuestUid>,
    },
    /// The operations that wait for a person.
    Parked,
    /// Take up the guests of the lost host whose place this one took.
    TakeUp {
        /// Those that stay away, by name.
        without: Vec<String>,
    },
    /// Have a parked operation tried again.
    Retry {
        operation: OperationId,
        /// How long its journal was when it was shown.
        entries: u32,
    },
    /// Have a guest that would not stay up started again: its starts no longer count against it.
    Forgive { guest: GuestUid },
    /// Let a guest use the local API again, which was frozen because two held its claim or its token.
    Thaw { guest: GuestUid, reason: String },
    /// End a parked operation.
    Forget {
        operation: OperationId,
        /// How long its journal was when it was shown.
        entries: u32,
        reason: String,
    },
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The status of the agent.
    Status(Box<AgentStatus>),
    /// Whether each part works.
    Health(AgentHealth),
    /// The withdrawal, where the hub said so.
    TrialWithdrawal(Option<TrialWithdrawal>),
    /// The last starts, newest first.
    Recovery(Vec<RecoveryReport>),
    /// About recovery codes.
    Escrow(EscrowAnswer),
    /// The fields of a guest.
    Fields(Box<FieldsView>),
    /// The results of restore tests of a guest's backups.
    RestoreTests(Box<GuestTests>),
    /// The metrics of this host, in Prometheus' text format.
    Metrics(String),
    /// The tokens that are in use now, each by its role.
    TokensInUse(BTreeMap<Role, String>),
    /// The text of a reading.
    Diagnosed(String),
    /// The operations that wait for a person.
    Parked(Waiting),
    /// It was done; this is the operation's state now.
    Done(Box<OperationView>),
    /// It was done, and takes effect at the next observation.
    Forgiven,
    /// They are on record; the number of guests that come back.
    TakenUp { guests: usize },
    /// What became of the request to let a guest in again.
    Thawed(Thawed),
    /// It was not done.
    Refused(ErrorBody),
}

/// The operations that wait for a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// Operations, oldest first.
    pub parked: Vec<ParkedEntry>,
    /// Guests that would not stay up.
    pub broken: Vec<GuestReport>,
}

/// The fields of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldsView {
    pub uid: GuestUid,
    pub name: String,
    /// When this was reported.
    pub at: Timestamp,
    /// When its configuration was read; none, where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// The fields; none, where its configuration could not be read.
    pub fields: Vec<FieldState>,
    /// Other remarks on its configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The results of restore tests of a guest's backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestTests {
    pub uid: GuestUid,
    pub name: String,
    /// Each of its tiers that had one, as in the report.
    pub tested: Vec<TierTested>,
    /// The last ones, the newest first.
    pub tests: Vec<TestLine>,
}

/// One restore test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestLine {
    pub operation: OperationId,
    /// When it ended.
    pub at: Timestamp,
    /// Its tier by the present promise; none where the promise no longer has its storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The backup, by the operation that took it.
    pub backup: OperationId,
    pub archive: VolumeId,
    /// When the backup was taken.
    pub taken_at: Timestamp,
    /// How large it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The findings.
    pub verdict: TestVerdict,
    /// The reason as text.
    pub why: String,
    /// How long its two parts took.
    #[serde(default, skip_serializing_if = "Took::is_unknown")]
    pub took: Took,
}

/// The version of the status document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.status/v1")]
    V1,
}

/// When facts were found; of those that many guests have, the oldest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedTimes {
    /// Proxmox's own last round: who runs, names, uptimes, figures of storages and the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Timestamp>,
    /// The oldest of the configurations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurations: Option<Timestamp>,
    /// Which storages can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storages: Option<Timestamp>,
    /// Proxmox's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Timestamp>,
    /// When the right to see every guest of the pool was last proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Timestamp>,
}

impl ObservedTimes {
    /// Of an observation.
    #[must_use]
    pub fn of(times: &FactTimes) -> Self {
        Self {
            round: times.round,
            configurations: times.configurations.values().min().copied(),
            storages: times.storages,
            version: times.version,
            permissions: times.permissions,
        }
    }
}

/// The status of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentStatus {
    /// The version of the document.
    pub schema: StatusSchema,
    /// When this was reported.
    pub at: Timestamp,
    /// When Proxmox was last seen whole; none when it was not since the agent started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// When the facts of that observation were found.
    #[serde(default)]
    pub times: ObservedTimes,
    /// The hub's id of this host. An agent of before this field does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    /// The operators' name for this host.
    pub host_name: HostName,
    /// Its short fingerprint. An operator's `holdfast host pin` shows the same one, unless there is an attacker in
    /// between.
    pub fingerprint: HostFingerprint,
    pub hub: String,
    /// The state of the contact with the hub.
    pub contact: Contact,
    /// The whole report.
    pub sections: Sections,
    /// The lanes in which a request waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneView>,
    /// The operations that do heavy work, and those that wait for a slot.
    #[serde(default)]
    pub heavy: HeavyView,
    /// The growth of guests by documents in the last 24 hours, and its limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<GrowthLine>,
    /// How old the tokens for Proxmox are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenAge>,
}
