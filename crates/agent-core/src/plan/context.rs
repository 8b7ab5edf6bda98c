//! What judges look up about other guests, made when first asked.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::operation::OperationKind;
use jiff::{SignedDuration, Timestamp};

use super::{Inputs, golden, growth, vmid};
use crate::gate::Approved;
use crate::model::limits;
use crate::model::mark::Mark;
use crate::model::observed::{Detail, ObservedGuest};
use crate::model::records::{Attempts, GuestRecord, ParkedOperation};

/// What judges look up about other guests. Computed at the first use: with nothing to do it is never used.
pub(super) struct Context<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) approved: Approved,
    pub(super) open: BTreeSet<GuestUid>,
    pub(super) parked: BTreeMap<GuestUid, &'a ParkedOperation>,
    pub(super) attempts: BTreeMap<(GuestUid, OperationKind), &'a Attempts>,
    pub(super) recorded_vmids: std::cell::OnceCell<BTreeMap<Vmid, GuestUid>>,
    pub(super) marked: std::cell::OnceCell<BTreeMap<GuestUid, Vmid>>,
    pub(super) pinned: std::cell::OnceCell<Vec<Vmid>>,
    pub(super) numbers: std::cell::OnceCell<vmid::Numbers>,
    pub(super) again_at: std::cell::Cell<Option<Timestamp>>,
    pub(super) growing: std::cell::OnceCell<std::cell::RefCell<growth::Growing>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>) -> Self {
        let records = inputs.records;
        Self {
            inputs,
            approved: golden::approved(inputs.policy, records),
            open: records.open.iter().map(|open| open.guest).collect(),
            parked: records.parked.iter().filter(of_guest).map(|parked| (parked.guest, parked)).collect(),
            attempts: records.attempts.iter().map(|tried| ((tried.guest, tried.kind), tried)).collect(),
            recorded_vmids: std::cell::OnceCell::new(),
            marked: std::cell::OnceCell::new(),
            pinned: std::cell::OnceCell::new(),
            numbers: std::cell::OnceCell::new(),
            again_at: std::cell::Cell::new(None),
            growing: std::cell::OnceCell::new(),
        }
    }

    /// Which guest of ours has a number.
    pub(super) fn recorded(&self, vmid: Vmid) -> Option<GuestUid> {
        let all = self.recorded_vmids.get_or_init(|| {
            let of = |record: &GuestRecord| Some((record.place.vmid()?, record.uid));
            self.inputs.records.guests.iter().filter_map(of).collect()
        });
        all.get(&vmid).copied()
    }

    /// Which guest on the node says that it is this one.
    pub(super) fn marked(&self, uid: GuestUid) -> Option<Vmid> {
        let all = self.marked.get_or_init(|| {
            let of = |guest: &ObservedGuest| match &guest.detail {
                Detail::Known(facts) => match facts.mark {
                    Mark::Of(uid) => Some((uid, guest.vmid)),
                    Mark::None | Mark::Copy { .. } | Mark::Broken => None,
                },
                Detail::Unknown(_) => None,
            };
            self.inputs.observed.guests.values().filter_map(of).collect()
        });
        all.get(&uid).copied()
    }

    /// Numbers that the document asks for by name.
    pub(super) fn pinned(&self) -> &[Vmid] {
        self.pinned.get_or_init(|| self.inputs.desired.iter().filter_map(|guest| guest.vmid).collect())
    }

    /// What the range has left.
    pub(super) fn numbers(&self) -> &vmid::Numbers {
        self.numbers.get_or_init(|| vmid::Numbers::new(self.inputs, self.pinned()))
    }

    /// What is left for guests to grow by.
    pub(super) fn growing(&self) -> &std::cell::RefCell<growth::Growing> {
        self.growing.get_or_init(|| growth::Growing::new(self.inputs).into())
    }

    /// Requests another plan at this time, unless one is requested sooner.
    pub(super) fn again(&self, at: Timestamp) {
        if self.again_at.get().is_none_or(|sooner| at < sooner) {
            self.again_at.set(Some(at));
        }
    }

    /// Whether a guest runs a controller on trial and did not hear the verdict yet. A backup would hold the timer by which
    /// it puts its previous one back.
    pub(super) fn is_on_trial(&self, uid: GuestUid) -> bool {
        let own = self.inputs.records.controller_trials.iter().filter(|trial| trial.guest == uid);
        let ends = own.map(|trial| trial.until).filter(|until| self.inputs.now < *until).max();
        ends.inspect(|until| self.again(*until)).is_some()
    }

    /// Until when to wait before an operation of this kind is tried again, and why. A try with a time in the future was
    /// made before the clock was set back. How long ago is not known, and waiting for its time could take years.
    pub(super) fn waits(&self, uid: GuestUid, kind: OperationKind) -> Option<(&'a Attempts, Timestamp)> {
        let tried = *self.attempts.get(&(uid, kind))?;
        let wait = SignedDuration::from_secs(limits::retry_after_s(tried.failed));
        let until = tried.last.checked_add(wait).unwrap_or(Timestamp::MAX);
        (tried.last <= self.inputs.now && until > self.inputs.now).then(|| {
            self.again(until);
            (tried, until)
        })
    }
}

/// A parked operation on a copy of a guest does not hold up the guest.
fn of_guest(parked: &&ParkedOperation) -> bool {
    parked.kind != OperationKind::RestoreCopy
}
