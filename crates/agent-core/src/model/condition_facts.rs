//! Facts for conditions that the sections of a report lack.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, PolicyName, StorageName};
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::WaitingForSignature;
use jiff::Timestamp;

use super::tier_fault::TierFault;

/// What one cycle found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConditionFacts {
    /// Guests of ours with closed access, because two used one identity.
    pub frozen: BTreeSet<GuestUid>,
    /// Parked operations by the guest that they are about, in words.
    pub parked: BTreeMap<GuestUid, Vec<String>>,
    /// Guests that are proved to be gone, with or without their volumes.
    pub lost: BTreeSet<GuestUid>,
    /// Guests with a power state that says nothing of a fault: an operation on them is open, or it is not known.
    pub power_unclear: BTreeSet<GuestUid>,
    /// Guests that went back from the controller that is asked for them, and when.
    pub went_back: BTreeMap<GuestUid, Timestamp>,
    /// Guests that were not judged, because of an operation, a lock or an unreadable configuration.
    pub unjudged: BTreeSet<GuestUid>,
    /// The faults of each guest's protection, where it has any.
    pub faults: BTreeMap<GuestUid, Vec<TierFault>>,
    /// Tiers of policies that have no usable target.
    pub unmet: Vec<UnmetTier>,
    /// The bulk change that the brake holds.
    pub braked: Option<WaitingForSignature>,
    /// What keeps the agent from its work, as the last whole observation found it.
    pub problems: Vec<ErrorBody>,
    /// The latest time that was seen, where the wall clock is behind it.
    pub clock_behind: Option<Timestamp>,
}

/// A tier of a backup policy without an approved target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetTier {
    pub policy: PolicyName,
    pub tier: Tier,
    /// The storage that it names.
    pub target: StorageName,
}

/// What kept the agent from observing the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Proxmox does not answer.
    ByProxmox,
    /// The agent's own records cannot be read.
    ByRecords,
}
