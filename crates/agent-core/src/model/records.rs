//! Our records of guests, backups and copies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_protocol::id::{
    CustomerId, GoldenVersion, GuestName, GuestUid, KeyFingerprint, OperationId, SnapshotName, StorageName,
    Vmid,
};
use holdfast_protocol::job::act::{ReleaseKind, ReleaseVersion};
use holdfast_protocol::local::hello::{RestartNeeded, UnwellStack, UpgradeReport};
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::local::window::{DownStack, Label};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::{Consistency, Protection, Schedule, Tier, Took};
use holdfast_protocol::report::Health;
use holdfast_protocol::root_disk::RootDiskData;
use holdfast_trust::limits::BackupLimits;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::applied::Applied;
use super::disks::Disks;
use super::escrow::CodeRecord;
use super::growth::Growths;
use super::hardware::HardwareAddress;
use super::inherited::InheritedGuests;
use super::policy::Sha256Hex;
use super::request::QueuedRequest;
use super::storage::TargetRecord;
pub use super::volume_id::VolumeId;

mod backups;

pub use backups::{
    BackupRecord, BackupWhy, EarlierSchedule, HeldMounts, PointAttempt, StacksDown, TestRecord, TierRecord,
};

/// One guest of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestRecord {
    /// Our identity for it.
    pub uid: GuestUid,
    pub name: GuestName,
    /// Who it belongs to.
    pub customer: CustomerId,
    /// The golden image it was made from.
    pub golden: GoldenVersion,
    /// Where it is on this host.
    pub place: Place,
    /// How it may use the local API.
    pub access: Access,
    /// Which of its tokens is the valid one; 0 is none yet.
    pub token_generation: u32,
    /// The last message of its controller.
    pub hello: Option<HelloRecord>,
}

/// Where a guest is on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not made yet, or not there any more because its making was taken back.
    Nowhere,
    /// An operation is making it under this number, or stopped half-way.
    Making {
        by: OperationId,
        /// The number, once that is chosen.
        vmid: Option<Vmid>,
    },
    /// It was made.
    Made {
        vmid: Vmid,
        /// Its volumes when it was made.
        volumes: BTreeSet<VolumeId>,
        /// The operation that made it.
        by: OperationId,
    },
    /// It was destroyed by a signature, and is not made again.
    Gone {
        /// The operation that destroyed it.
        by: OperationId,
    },
}

impl Place {
    /// The number, where there is one.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        match self {
            Self::Nowhere | Self::Gone { .. } => None,
            Self::Making { vmid, .. } => *vmid,
            Self::Made { vmid, .. } => Some(*vmid),
        }
    }
}

/// How a guest may use the local API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By its token.
    Open,
    /// Not at all, until a person looks: two held its claim, or its token.
    Frozen,
}

/// The last message of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelloRecord {
    pub version: String,
    /// How it said it was.
    pub health: Health,
    /// The kernel's boot id.
    pub boot_id: String,
    /// What its program hashes to, where it said so.
    pub build: Option<Sha256Hex>,
    /// What it said of the guest itself.
    pub reported: ReportedConditions,
    pub at: Timestamp,
}

/// What a controller said of its guest: stacks, upgrades, a restart that is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedConditions {
    /// Stacks that should run and are not well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwell: Vec<UnwellStack>,
    /// How the last security upgrade went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradeReport>,
    /// What only a restart brings into use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_needed: Option<RestartNeeded>,
    /// Data on the root disk outside of volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk: Option<RootDiskData>,
}

/// A snapshot that one of our operations made and that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// Of which guest.
    pub guest: GuestUid,
    pub name: SnapshotName,
    /// The guest's number then.
    pub vmid: Vmid,
    /// The operation that made it.
    pub made_by: OperationId,
    /// Its requester.
    pub taken_by: TakenBy,
    /// When, by Proxmox's clock.
    pub taken_at: Timestamp,
    /// When it may be removed; none for what a schedule took, which the retention of its tier removes.
    pub expires_at: Option<Timestamp>,
    /// The point of the schedule that it covers, where a schedule took it.
    pub point: Option<Timestamp>,
}

/// Who asked for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakenBy {
    /// The guest, through its local API.
    Guest,
    /// The agent, before something that may go wrong.
    Agent,
    /// An operator, by a job or a work order.
    Job,
    /// The guest's policy.
    Schedule,
}

/// A copy of a guest that one of our operations restored next to it, or is about to. It is no guest: nothing is done to
/// it but by the operation that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredCopyRecord {
    pub made_by: OperationId,
    /// Of which guest.
    pub guest: GuestUid,
    /// That guest's name then.
    pub name: GuestName,
    /// The copy's number.
    pub vmid: Vmid,
    /// How it came there.
    pub origin: Origin,
    /// How far it is.
    pub stage: CopyStage,
    /// When the operation that put it there ended, where that is known.
    pub since: Option<Timestamp>,
}

/// How a copy of a guest was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was restored from this archive.
    Restored(VolumeId),
    /// It was the guest until a copy took its place.
    Demoted,
    /// It was the guest until it was put on a newer image: its volumes and its token are not with it.
    Rebased,
}

/// How far a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyStage {
    /// Its operation is under way, or was parked.
    Making,
    /// It was made and checked.
    Made { volumes: BTreeSet<VolumeId> },
}

/// An operation that has not ended, as the plan needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOperation {
    pub id: OperationId,
    /// What it does.
    pub kind: OperationKind,
    /// To which guest.
    pub guest: GuestUid,
}

/// An operation that was parked and not yet cleared by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedOperation {
    pub id: OperationId,
    /// What it did.
    pub kind: OperationKind,
    /// Whose lane it had: of a restore test that of all tests, which is no guest's.
    pub guest: GuestUid,
    /// Which guest it was about.
    pub about: GuestUid,
    /// Why, and what a person must do.
    pub message: String,
}

/// How the last operations of one kind on one guest went, since the document or the guest changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// On which guest.
    pub guest: GuestUid,
    /// What was tried.
    pub kind: OperationKind,
    /// Failures in a row.
    pub failed: u32,
    /// When the last one ended.
    pub last: Timestamp,
    /// Why it failed.
    pub message: String,
}

/// Code that operators let see customers' data, by a signature: exactly these bytes under this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRecord {
    /// Which kind of code.
    pub kind: ReleaseKind,
    pub version: ReleaseVersion,
    /// What its bytes hash to.
    pub sha256: Sha256Hex,
}

/// What became of a build of the controller in one guest, where it did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerOutcome {
    /// The new controller said that it is not well, and the guest went back.
    Bad,
    /// No controller was heard in the guest after it was fetched.
    Silent,
}

/// A controller that a guest fetched so lately that it may run it on trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerTrial {
    pub guest: GuestUid,
    pub sha256: Sha256Hex,
    /// By then the guest put its previous one back, whatever it heard.
    pub until: Timestamp,
}

/// A controller that did not come up in a guest of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerVerdict {
    /// What its bytes hash to.
    pub sha256: Sha256Hex,
    pub version: ReleaseVersion,
    /// In which guest.
    pub guest: GuestUid,
    /// What became of it.
    pub outcome: ControllerOutcome,
    /// Why, in words.
    pub why: String,
    /// When that was seen.
    pub at: Timestamp,
}

/// A guest that was stopped, restarted or resized for a document. The brake counts these over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub guest: GuestUid,
    /// When its operation was opened.
    pub at: Timestamp,
    /// By what it passed the brake.
    pub by: PassedBy,
}

/// By what an operation passed the brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedBy {
    /// There was room.
    Brake,
    /// Operators signed for it.
    Release,
}

/// How a guest came to the VMID that it has, where an earlier one was its own: the backups under that one are of an
/// earlier state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renumbered {
    /// What gave it the number.
    pub by: RenumberedBy,
    /// When that was begun. A backup from then on is of the guest under its present VMID.
    pub began_at: Timestamp,
    /// When it was done.
    pub at: Timestamp,
}

/// What gave a guest another VMID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RenumberedBy {
    /// It was lost, and made again from a backup.
    Return,
    /// A restored copy took its place, or a container of a newer image.
    Swap,
}

/// All that is written down, as the plan takes it. Sorted by uid where a list is of guests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Our guests, sorted by uid.
    pub guests: Vec<GuestRecord>,
    /// Operations under way.
    pub open: Vec<OpenOperation>,
    /// Operations left for a person.
    pub parked: Vec<ParkedOperation>,
    /// Failures in a row.
    pub attempts: Vec<Attempts>,
    /// What the brake counts, of the last week.
    pub touched: Vec<Touched>,
    /// Existing snapshots, sorted by guest and time of expiry.
    pub snapshots: Vec<SnapshotRecord>,
    /// Stacks that did not come back from a backup, sorted by guest.
    pub stacks_down: Vec<StacksDown>,
    /// Guests that came back and were not heard since, with the message that was reported about that.
    pub silent: BTreeMap<GuestUid, String>,
    /// When each guest agent that ever said hello was last heard, to the second; not before this agent would have heard it.
    pub heard: BTreeMap<GuestUid, Timestamp>,
    /// Copies of guests, sorted by number.
    pub copies: Vec<RestoredCopyRecord>,
    /// Every number that was ever given to a guest, with that guest.
    pub used_vmids: Vec<(Vmid, GuestUid)>,
    /// What operators approved by signatures.
    pub releases: Vec<ReleaseRecord>,
    /// Controllers that did not come up here, sorted by build and guest.
    pub controller_verdicts: Vec<ControllerVerdict>,
    /// Controllers that guests may run on trial, and did not hear the verdict on from this run of the agent.
    pub controller_trials: Vec<ControllerTrial>,
    /// What guests asked for and wait for, oldest first.
    pub requests: Vec<QueuedRequest>,
    /// How many backups each guest asked for lately that were not due, those that wait included.
    pub asked_backups: BTreeMap<GuestUid, u32>,
    /// The number of the last request, whatever became of it.
    pub last_request: u64,
    /// What is in force for guests about their backups.
    pub protections: BTreeMap<GuestUid, Arc<Protection>>,
    /// Backups that were taken and found, sorted by guest and time.
    pub backups: Arc<Vec<BackupRecord>>,
    /// What was tried for tiers that are promised, sorted by guest and tier.
    pub tiers: Vec<TierRecord>,
    /// How guests came to the VMIDs that they have, where an earlier one was theirs.
    pub renumbered: BTreeMap<GuestUid, Renumbered>,
    /// When a backup was last proved by restoring it, by the operation that took it.
    pub proofs: BTreeMap<OperationId, Timestamp>,
    /// Storage targets that operators approved.
    pub storage: Vec<TargetRecord>,
    /// Recovery codes of this host, by their numbers.
    pub codes: Vec<CodeRecord>,
    /// What was taken up of a lost host.
    pub left: Option<InheritedGuests>,
    /// The last tests of each guest's backups, sorted by guest and time. Of each storage it keeps the last test of each
    /// verdict, and as many that came back as a trend needs.
    pub tests: Vec<TestRecord>,
    /// How long each guest's programs stood still for backups within the last 24 hours.
    pub stood_still: BTreeMap<GuestUid, SignedDuration>,
    /// What documents may ask of backups without a signature.
    pub backup_limits: BackupLimits,
    /// What guests grew by, and may.
    pub growth: Growths,
    /// What was last carried out of each guest's fields.
    pub applied: Arc<BTreeMap<GuestUid, Applied>>,
}

impl Records {
    /// Numbers that a guest had, other than the one that it has, the highest first: older backups of it lie under them.
    pub fn former_vmids(&self, uid: GuestUid, now: Option<Vmid>) -> impl Iterator<Item = Vmid> {
        let own = self.used_vmids.iter().rev().filter(move |(_, of)| *of == uid).map(|(vmid, _)| *vmid);
        own.filter(move |vmid| Some(*vmid) != now)
    }
}
