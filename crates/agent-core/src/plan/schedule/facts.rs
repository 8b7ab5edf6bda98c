//! Facts by which the schedule of one guest is judged.

use std::collections::BTreeMap;
use std::ops::Range;

use holdfast_protocol::id::{GuestUid, KeyFingerprint, OperationId, StorageName, Vmid};
use holdfast_protocol::protection::{Consistency, Protection, Retention, Schedule, SnapshotTier, Tier};
use holdfast_protocol::report::Running;
use holdfast_protocol::size::TestDays;
use jiff::Timestamp;

use super::still::Still;
use crate::gate::retention::{KeptTier, taken_at};
use crate::model::clock_trust::TrustedTime;
use crate::model::limits;
use crate::model::observed::ObservedGuest;
use crate::model::records::{
    BackupRecord, GuestRecord, HelloRecord, Records, Renumbered, SnapshotRecord, TestRecord, TierRecord,
};
use crate::plan::{Inputs, silence};

/// A tier of a promise, without what only one kind of tier has.
#[derive(Clone, Copy, Debug)]
pub struct Promised<'a> {
    pub tier: Tier,
    pub schedule: &'a Schedule,
    /// Its target; a snapshot has none.
    pub target: Option<&'a StorageName>,
    /// With which key.
    pub key: Option<&'a KeyFingerprint>,
    /// What it should hold.
    pub consistency: Consistency,
    /// Which are kept.
    pub retention: &'a Retention,
    /// How often one is restored for a test, where any is.
    pub test_every: Option<TestDays>,
}

impl<'a> Promised<'a> {
    /// The part that says which backups are kept.
    #[must_use]
    pub fn kept(&self) -> Option<KeptTier<'a>> {
        let Self { tier, schedule, target, key, retention, .. } = *self;
        Some(KeptTier { tier, target: target?, key, retention, zone: &schedule.zone })
    }
}

/// The tiers of a promise, the fastest first.
#[must_use]
pub fn promised(promise: &Protection) -> Vec<Promised<'_>> {
    let tiers = &promise.tiers;
    let snapshot = tiers.snapshot.as_ref().map(|SnapshotTier { schedule, retention }| Promised {
        tier: Tier::Snapshot,
        schedule,
        target: None,
        key: None,
        consistency: Consistency::Crash,
        retention,
        test_every: None,
    });
    let local = tiers.local.as_ref().map(|tier| (Tier::Local, tier, None));
    let off_site = tiers.off_site.as_ref().map(|tier| (Tier::OffSite, &tier.backup, Some(&tier.key)));
    let backups = local.into_iter().chain(off_site).map(|(tier, backup, key)| Promised {
        tier,
        schedule: &backup.schedule,
        target: Some(&backup.target),
        key,
        consistency: backup.consistency,
        retention: &backup.retention,
        test_every: backup.restore_test_days,
    });
    snapshot.into_iter().chain(backups).collect()
}

/// What is known of one guest.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleFacts<'a> {
    pub guest: GuestUid,
    /// The VMID that it has.
    pub vmid: Option<Vmid>,
    /// Its backups, in the order in which they were taken.
    pub backups: &'a [BackupRecord],
    pub snapshots: &'a [SnapshotRecord],
    /// What was tried for its tiers.
    pub tiers: &'a [TierRecord],
    /// How it came to its VMID, where an earlier one was its own.
    pub renumbered: Option<Renumbered>,
    /// How long its programs may yet stand still.
    pub still: Still,
    /// The open operation on it. What it took is not yet called what it will be called.
    pub open: Option<OperationId>,
    /// The last restore tests of its backups.
    pub tests: &'a [TestRecord],
    /// When backups were last proved, by the operations that took them.
    pub proofs: &'a BTreeMap<OperationId, Timestamp>,
    /// The last message of its controller.
    pub hello: Option<&'a HelloRecord>,
    /// Since when its guest agent is silent, where it should speak.
    pub silent_since: Option<Timestamp>,
    /// Whether it runs.
    pub run: Running,
    /// What time it is.
    pub time: TrustedTime,
}

impl<'a> ScheduleFacts<'a> {
    /// The latest moment that is believed. What says that it was written down after it was so by a clock that was wrong.
    #[must_use]
    pub fn latest(&self) -> Timestamp {
        self.time.at.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX)
    }

    /// The backups of a tier that protect, as far as the records know.
    pub fn good<'p>(
        &self,
        promised: &'p Promised<'p>,
    ) -> impl Iterator<Item = &'a BackupRecord> + use<'a, 'p> {
        let latest = self.latest();
        self.backups.iter().filter(move |backup| is_good(backup, promised) && taken_at(backup) <= latest)
    }
}

/// Whether a backup is one of this tier that protects, as far as the records know.
#[must_use]
pub fn is_good(backup: &BackupRecord, promised: &Promised<'_>) -> bool {
    promised.kept().is_some_and(|tier| tier.counts(backup))
}

/// Where one guest's part of a list is that is sorted by guests. It is mostly behind the part of the guest before it, which
/// ends at `near`; else it is searched for.
fn place<T>(all: &[T], near: usize, guest: GuestUid, of: impl Fn(&T) -> GuestUid) -> Range<usize> {
    let before = near.checked_sub(1).and_then(|place| all.get(place));
    let is_there = near <= all.len()
        && before.is_none_or(|one| of(one) < guest)
        && all.get(near).is_none_or(|one| of(one) >= guest);
    let from = if is_there { near } else { all.partition_point(|one| of(one) < guest) };
    let own = all.iter().skip(from).take_while(|one| of(one) == guest).count();
    from..from + own
}

/// One guest's part of a list that is sorted by guests.
pub(super) fn part<T>(all: &[T], guest: GuestUid, of: impl Fn(&T) -> GuestUid) -> &[T] {
    all.get(place(all, usize::MAX, guest, of)).unwrap_or_default()
}

/// One guest's backups.
#[must_use]
pub fn backups_of(records: &Records, guest: GuestUid) -> &[BackupRecord] {
    part(&records.backups, guest, |backup| backup.guest)
}

/// Where one guest's parts of the lists are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) backups: Range<usize>,
    pub(super) snapshots: Range<usize>,
    pub(super) tests: Range<usize>,
    pub(super) tiers: Range<usize>,
}

impl Places {
    /// Of a guest, near those of a guest before it.
    pub(super) fn of(records: &Records, guest: GuestUid, near: &Self) -> Self {
        Self {
            backups: place(&records.backups, near.backups.end, guest, |backup| backup.guest),
            snapshots: place(&records.snapshots, near.snapshots.end, guest, |snapshot| snapshot.guest),
            tests: place(&records.tests, near.tests.end, guest, |test| test.guest),
            tiers: tiers(records, guest, near),
        }
    }

    /// These, where nothing but the tiers may be elsewhere.
    pub(super) fn with_tiers(&self, records: &Records, guest: GuestUid, near: &Self) -> Self {
        Self { tiers: tiers(records, guest, near), ..self.clone() }
    }
}

fn tiers(records: &Records, guest: GuestUid, near: &Places) -> Range<usize> {
    place(&records.tiers, near.tiers.end, guest, |tier| tier.guest)
}

/// What is known of one guest.
pub(in crate::plan) fn known<'a>(inputs: &Inputs<'a>, record: &'a GuestRecord) -> ScheduleFacts<'a> {
    let seen = record.place.vmid().and_then(|vmid| inputs.observed.guests.get(&vmid));
    let anywhere = Places { backups: END, snapshots: END, tests: END, tiers: END };
    known_at(inputs, (record, seen), &Places::of(inputs.records, record.uid, &anywhere))
}

/// Behind everything: a guest's part is searched for.
const END: Range<usize> = usize::MAX..usize::MAX;

/// What is known of one guest, of which it is known where its parts of the lists are.
pub(super) fn known_at<'a>(
    inputs: &Inputs<'a>,
    (record, seen): (&'a GuestRecord, Option<&ObservedGuest>),
    places: &Places,
) -> ScheduleFacts<'a> {
    let records = inputs.records;
    ScheduleFacts {
        guest: record.uid,
        vmid: record.place.vmid(),
        backups: records.backups.get(places.backups.clone()).unwrap_or_default(),
        snapshots: records.snapshots.get(places.snapshots.clone()).unwrap_or_default(),
        tiers: records.tiers.get(places.tiers.clone()).unwrap_or_default(),
        renumbered: records.renumbered.get(&record.uid).copied(),
        still: Still::of(records, record.uid),
        open: records.open.iter().find(|open| open.guest == record.uid).map(|open| open.id),
        tests: records.tests.get(places.tests.clone()).unwrap_or_default(),
        proofs: &records.proofs,
        hello: record.hello.as_ref(),
        silent_since: seen.and_then(|seen| silence::since(inputs, record, seen)),
        run: seen.map_or(Running::Unknown, |seen| seen.run),
        time: inputs.time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_guest_has_its_own_part_of_a_list() {
        let uid = |n: u128| GuestUid::new(uuid::Uuid::from_u128(n));
        let all = [(uid(1), 'a'), (uid(2), 'b'), (uid(2), 'c'), (uid(4), 'd')];
        let of = |n| part(&all, uid(n), |one| one.0).iter().map(|one| one.1).collect::<String>();
        assert_eq!([0, 1, 2, 3, 4, 5].map(of), ["", "a", "bc", "", "d", ""]);
        // Whatever is guessed, the part is the same.
        for near in [0, 1, 2, 3, 4, 5, usize::MAX] {
            let places = [0, 1, 2, 3, 4, 5].map(|n| place(&all, near, uid(n), |one| one.0));
            assert_eq!(places, [0..0, 0..1, 1..3, 3..3, 3..4, 4..4], "near {near}");
        }
    }
}
