//! The snapshot of the host that the reconcile loop publishes.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GoldenVersion, GuestUid, OperationId};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::{GuestReport, HostSection, WaitingForSignature};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::clock_trust::Anchor;
use super::condition_facts::{Blocked, ConditionFacts};
use super::field::GuestFields;
use super::observed::FactTimes;
use super::policy::Sha256Hex;

/// The latest cycle's picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSnapshot {
    /// When the host was last seen whole.
    pub seen_at: Option<Timestamp>,
    /// When the facts were found that are shown.
    pub times: FactTimes,
    /// Since when it was not, where that is longer than two intervals of observation.
    pub unobserved_since: Option<Timestamp>,
    /// The host, when Proxmox reported it.
    pub host: Option<HostSection>,
    pub guests: Vec<GuestReport>,
    /// The paths of the volumes that are attached to each guest of ours whose configuration could be read.
    pub mounts: BTreeMap<GuestUid, BTreeSet<String>>,
    /// The fields of each guest of ours whose configuration could be read.
    pub fields: BTreeMap<GuestUid, GuestFields>,
    /// What waits for an operator's signature.
    pub waiting: Vec<WaitingForSignature>,
    /// What keeps the agent from its work.
    pub problems: Vec<ErrorBody>,
    /// Who waits for what, where anybody does.
    pub lanes: Vec<LaneView>,
    /// The time that schedules go by.
    pub anchor: Option<Anchor>,
    /// What documents let guests grow by in the last 24 hours, and may.
    pub growth: Vec<GrowthLine>,
    /// The approved images that guests wait for and that are not on this host.
    pub missing_goldens: BTreeMap<GoldenVersion, Sha256Hex>,
    /// What conditions are derived from, beyond all that.
    pub facts: ConditionFacts,
    /// What kept the last cycle from observing the host, if it did.
    pub blocked: Option<Blocked>,
}

/// Whether listeners learn something from the next snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Yes,
    No,
}

impl HostSnapshot {
    /// Whether `next` says something that this one does not. The times of its facts say nothing new, but a new minute
    /// does: what listeners derive from the time is at most a minute old.
    #[must_use]
    pub fn news(&self, next: &Self) -> News {
        let minute = |at: &Option<Timestamp>| at.map(|at| at.as_second().div_euclid(60));
        let Self {
            seen_at,
            times: _,
            unobserved_since,
            host,
            guests,
            mounts,
            fields,
            waiting,
            problems,
            lanes,
            anchor: _,
            growth,
            missing_goldens,
            facts,
            blocked,
        } = self;
        let same = minute(seen_at) == minute(&next.seen_at)
            && *unobserved_since == next.unobserved_since
            && *host == next.host
            && *guests == next.guests
            && *mounts == next.mounts
            && *fields == next.fields
            && *waiting == next.waiting
            && *problems == next.problems
            && *lanes == next.lanes
            && *growth == next.growth
            && *missing_goldens == next.missing_goldens
            && *facts == next.facts
            && *blocked == next.blocked;
        if same { News::No } else { News::Yes }
    }
}

/// One line of the budget of growth, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowthLine {
    /// Of what, in words.
    pub unit: String,
    /// So much was used within the last 24 hours.
    pub used: u64,
    /// So much may be.
    pub limit: u64,
}

/// One guest's lane, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneView {
    /// Whose it is.
    pub guest: GuestUid,
    /// The operation that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<OperationId>,
    /// What its guest asked for and waits for, first come first.
    pub waits: Vec<WaitingView>,
}

/// One request that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingView {
    /// The operation it will be.
    pub id: OperationId,
    /// What it will do.
    pub kind: OperationKind,
    /// When it was asked for.
    pub asked_at: Timestamp,
}

/// Who is at heavy work, and who waits for a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeavyView {
    pub holding: Vec<SlotRequest>,
    /// Waiting, the next one first.
    pub waiting: Vec<SlotRequest>,
}

/// One operation's place at heavy work, by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotRequest {
    /// When the operation was opened.
    pub opened_at: Timestamp,
    pub operation: OperationId,
    #[serde(default)]
    pub work: HeavyWork,
}

/// What a place at heavy work is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeavyWork {
    /// Reading or writing a whole archive.
    #[default]
    Archive,
    /// The same by Proxmox's backup job, of which a node runs one at a time.
    Backup,
}

/// The latest line of each operation under way.
pub type ProgressLines = std::collections::BTreeMap<holdfast_protocol::id::OperationId, ProgressLine>;

/// One line of an operation's progress, for people who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    pub step: &'static str,
    /// The last line of its task, or what it waits for.
    pub line: String,
}
