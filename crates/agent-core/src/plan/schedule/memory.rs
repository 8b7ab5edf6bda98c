//! Judgements of the last plan that still hold.
//!
//! In: the inputs of two plans, one after the other. Out: the judgements of the first that hold in the second. Only the
//! judgement of a guest for which nothing is to be done is kept, and it holds while all that it was made from is the
//! same: the lists of the guest's backups, snapshots and tests, its promise, what is owed of each tier, and a few facts.
//! What is owed is worked out anew each time, since it follows the clock; for that the backups are not needed again.
//! Lists are compared, not hashed: a list that is the same one in memory is the same. Where something changed that all
//! judgements were made from, none is kept. Deliberately absent: the judgement itself.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use holdfast_protocol::desired::{DesiredGuest, DesiredVolume};
use holdfast_protocol::id::{GuestUid, OperationId, StorageName, Vmid};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::{Protection, ProtectionReport, Tier};
use holdfast_protocol::report::{Condition, Running};
use jiff::Timestamp;

use super::facts::{Places, ScheduleFacts};
use super::outstanding::standing;
use super::promises::{Points, PromiseNow, TierNow, Volumes};
use super::space;
use super::still::Still;
use super::tier::OutstandingPoint;
use crate::model::clock_trust::Steady;
use crate::model::observed::{BackupListing, Detail, MountFacts, ObservedGuest};
use crate::model::records::{BackupRecord, GuestRecord, PointAttempt, Records, SnapshotRecord, TestRecord};
use crate::model::tier_fault::TierFault;
use crate::plan::Inputs;
use crate::plan::alike::AlikePromises;

/// What a plan leaves for the next one. It may be dropped at any time: the next plan then judges everything.
#[derive(Debug, Default)]
pub struct KeptJudgements {
    shared: Option<Shared>,
    /// In the order of their uids.
    guests: Vec<KeptJudgement>,
}

/// What the judgements of all guests were made from.
#[derive(Debug)]
struct Shared {
    at: Timestamp,
    steady: Steady,
    restore_tests: RestoreTests,
    listings: BTreeMap<StorageName, BackupListing>,
    proofs: BTreeMap<OperationId, Timestamp>,
    backups: Arc<Vec<BackupRecord>>,
    snapshots: Vec<SnapshotRecord>,
    tests: Vec<TestRecord>,
}

/// Whether a restore test is under way, which keeps backups from being removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestoreTests {
    UnderWay,
    NotUnderWay,
}

impl RestoreTests {
    fn of(records: &Records) -> Self {
        let any = records.open.iter().any(|open| open.kind == OperationKind::RestoreTest);
        if any { Self::UnderWay } else { Self::NotUnderWay }
    }
}

/// A judgement that is kept.
#[derive(Debug)]
pub(super) struct KeptJudgement {
    pub(super) guest: GuestUid,
    pub(super) promise: Arc<Protection>,
    pub(super) places: Places,
    pub(super) own: Own,
    /// The fastest first.
    pub(super) tiers: KeptTiers,
    /// Where the promise names volumes: what was said and seen of them.
    pub(super) mounts: Option<Box<Mounts>>,
    /// The last moment at which it holds, by the time that schedules go by.
    pub(super) until: Timestamp,
    pub(super) conditions: Vec<Condition>,
    pub(super) faults: Vec<TierFault>,
    pub(super) protection: Arc<ProtectionReport>,
    /// When the next tests of its backups are due, once that was asked.
    pub(super) next_tests: Option<Vec<NextTest>>,
}

/// When a tier's next restore test is due.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) struct NextTest {
    pub(in crate::plan) tier: Tier,
    pub(in crate::plan) since: Timestamp,
    pub(in crate::plan) waits: Waits,
}

/// Whether a test waits after tries that came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Waits {
    AfterTries,
    No,
}

/// One for each tier that a promise can have. They lie with the rest of what is kept: a plan reads all of it.
pub(super) type KeptTiers = [Option<KeptTier>; 3];

/// What is kept of one tier.
#[derive(Debug)]
pub(super) struct KeptTier {
    /// Up to which point it is settled by what exists.
    pub(super) stands: Option<Timestamp>,
    pub(super) outstanding: LastOutstanding,
    /// Since when it is promised, and the last try, also where it is not of the point that is outstanding.
    pub(super) known: TierKnown,
    /// What the next backup takes on its target.
    pub(super) takes: u64,
}

/// What was owed of a tier when it was judged.
#[derive(Debug)]
pub(super) enum LastOutstanding {
    /// Nothing that is reported, and there is a backup to report. It is the same whichever point comes next.
    Quiet,
    This(Box<OutstandingPoint>),
}

/// Facts of one guest that its judgement is made from, without its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    vmid: Option<Vmid>,
    still: Still,
    open: Option<OperationId>,
    silent_since: Option<Timestamp>,
    run: Running,
}

impl Own {
    pub(super) const fn of(known: &ScheduleFacts<'_>) -> Self {
        let ScheduleFacts { vmid, still, open, silent_since, run, .. } = *known;
        Self { vmid, still, open, silent_since, run }
    }
}

/// A guest as the document names it, and as it is seen.
pub(super) type Both<'a> = (Option<&'a DesiredGuest>, Option<&'a ObservedGuest>);

/// The volumes of a guest: as the document names them, and where they are mounted.
#[derive(Debug)]
pub(super) struct Mounts {
    wanted: Option<Vec<DesiredVolume>>,
    seen: Option<BTreeMap<u16, MountFacts>>,
}

impl Mounts {
    /// None where the promise says nothing of volumes.
    pub(super) fn of(now: &PromiseNow<'_>, both: Both<'_>) -> Option<Box<Self>> {
        let (wanted, seen) = mounts(both);
        let kept = || Self { wanted: wanted.map(<[DesiredVolume]>::to_vec), seen: seen.cloned() };
        (now.volumes == Volumes::Named).then(|| Box::new(kept()))
    }

    fn are(&self, both: Both<'_>) -> bool {
        (self.wanted.as_deref(), self.seen.as_ref()) == mounts(both)
    }
}

fn mounts<'a>(
    (wanted, seen): Both<'a>,
) -> (Option<&'a [DesiredVolume]>, Option<&'a BTreeMap<u16, MountFacts>>) {
    let seen = seen.and_then(|seen| match &seen.detail {
        Detail::Known(facts) => Some(&facts.mounts),
        Detail::Unknown(_) => None,
    });
    (wanted.map(|guest| guest.volumes.as_slice()), seen)
}

impl KeptJudgements {
    /// Begins a plan, which takes what was kept along.
    pub(super) fn begin<'a>(&mut self, inputs: &'a Inputs<'a>) -> Walk<'a> {
        let Self { shared, guests } = std::mem::take(self);
        let shared = shared.filter(|shared| shared.holds(inputs));
        let guests = if shared.is_some() { guests } else { Vec::new() };
        let lists = shared.as_ref().map_or(Lists::Changed, |shared| shared.lists(inputs.records));
        Walk {
            inputs,
            lists,
            shared,
            guests,
            at: 0,
            stale: Vec::new(),
            fresh: Vec::new(),
            last: Places::default(),
            alike: AlikePromises::default(),
        }
    }

    /// When the next tests of guests are due, by what this plan kept.
    pub(in crate::plan) fn next_tests(&mut self) -> NextTests<'_> {
        NextTests(self.guests.iter_mut().peekable())
    }

    /// Keeps what a plan judged.
    pub(super) fn end(&mut self, walk: Walk<'_>) {
        let Walk { inputs, lists, shared, mut guests, at, stale, fresh, .. } = walk;
        guests.truncate(at);
        if !stale.is_empty() {
            let (mut place, mut stale) = (0.., stale.into_iter().peekable());
            guests.retain(|_| place.next().is_some_and(|place| stale.next_if_eq(&place).is_none()));
        }
        if !fresh.is_empty() {
            guests.extend(fresh);
            // Both are in order: one walk merges them.
            guests.sort_by_key(|kept| kept.guest);
        }
        *self = Self { shared: Some(Shared::of(inputs, shared, lists)), guests };
    }
}

/// The next tests of guests that are asked for in the order of their uids.
pub(in crate::plan) struct NextTests<'m>(Peekable<std::slice::IterMut<'m, KeptJudgement>>);

impl<'m> NextTests<'m> {
    pub(in crate::plan) fn of(&mut self, guest: GuestUid) -> Option<&'m mut Option<Vec<NextTest>>> {
        while self.0.next_if(|kept| kept.guest < guest).is_some() {}
        self.0.next_if(|kept| kept.guest == guest).map(|kept| &mut kept.next_tests)
    }
}

/// Whether the lists of all guests are as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    Same,
    /// Some guest's are not.
    Changed,
}

impl Shared {
    /// Whether nothing changed for all guests. A clock that was set back makes all be judged anew.
    fn holds(&self, inputs: &Inputs<'_>) -> bool {
        self.at <= inputs.time.at
            && self.steady == inputs.time.steady
            && self.restore_tests == RestoreTests::of(inputs.records)
            && self.listings == inputs.observed.listings
            && self.proofs == inputs.records.proofs
    }

    fn lists(&self, records: &Records) -> Lists {
        let same = Arc::ptr_eq(&self.backups, &records.backups)
            && self.snapshots == records.snapshots
            && self.tests == records.tests;
        if same { Lists::Same } else { Lists::Changed }
    }

    /// What is compared with in the next plan. What is the same is not copied again.
    fn of(inputs: &Inputs<'_>, earlier: Option<Self>, lists: Lists) -> Self {
        let (at, steady, records) = (inputs.time.at, inputs.time.steady, inputs.records);
        match earlier {
            Some(earlier) if lists == Lists::Same => Self { at, ..earlier },
            Some(earlier) => Self {
                at,
                backups: Arc::clone(&records.backups),
                snapshots: records.snapshots.clone(),
                tests: records.tests.clone(),
                ..earlier
            },
            None => Self {
                at,
                steady,
                restore_tests: RestoreTests::of(records),
                listings: inputs.observed.listings.clone(),
                proofs: records.proofs.clone(),
                backups: Arc::clone(&records.backups),
                snapshots: records.snapshots.clone(),
                tests: records.tests.clone(),
            },
        }
    }

    /// Whether one guest's lists are as they were.
    fn are_same(&self, records: &Records, (was, is): (&Places, &Places)) -> bool {
        let tests = self.tests.get(was.tests.clone()) == records.tests.get(is.tests.clone());
        let snapshots =
            self.snapshots.get(was.snapshots.clone()) == records.snapshots.get(is.snapshots.clone());
        let backups = || self.backups.get(was.backups.clone()) == records.backups.get(is.backups.clone());
        tests
            && snapshots
            && (Arc::ptr_eq(&self.backups, &records.backups) && was.backups == is.backups || backups())
    }
}

/// One plan's way along all guests, in the order of their uids. What is kept of a settled host stays in its place.
pub(super) struct Walk<'a> {
    inputs: &'a Inputs<'a>,
    shared: Option<Shared>,
    lists: Lists,
    guests: Vec<KeptJudgement>,
    /// The place of the next.
    at: usize,
    /// The places of those that hold no more.
    stale: Vec<usize>,
    /// What was judged in this plan.
    fresh: Vec<KeptJudgement>,
    /// Where the lists of the last guest are.
    last: Places,
    alike: AlikePromises,
}

/// What the walk has of a guest.
pub(super) struct Next {
    pub(super) places: Places,
    /// The place of what was judged of it, where its lists are the same.
    pub(super) kept: Option<usize>,
}

impl<'a> Walk<'a> {
    /// Goes on to the next guest.
    pub(super) fn next(&mut self, record: &GuestRecord) -> Next {
        let (records, guest) = (self.inputs.records, record.uid);
        while self.guests.get(self.at).is_some_and(|kept| kept.guest < guest) {
            self.forget(self.at);
            self.at += 1;
        }
        let kept = self.guests.get(self.at).filter(|kept| kept.guest == guest);
        let places = match kept {
            Some(kept) if self.lists == Lists::Same => kept.places.with_tiers(records, guest, &self.last),
            Some(_) | None => Places::of(records, guest, &self.last),
        };
        self.last.clone_from(&places);
        let shared = self.shared.as_ref();
        let is_same = |kept: &KeptJudgement| {
            self.lists == Lists::Same
                || shared.is_some_and(|shared| shared.are_same(records, (&kept.places, &places)))
        };
        let Some(is_same) = kept.map(is_same) else { return Next { places, kept: None } };
        let place = self.at;
        self.at += 1;
        match self.guests.get_mut(place) {
            // The lists of guests before it may have become longer.
            Some(kept) if is_same && self.lists == Lists::Changed => kept.places.clone_from(&places),
            Some(_) | None if is_same => {}
            Some(_) | None => self.forget(place),
        }
        Next { places, kept: is_same.then_some(place) }
    }

    /// What was judged of a guest, where that holds. What is owed now is shown to `owed`, tier by tier.
    pub(super) fn holding(
        &mut self,
        place: usize,
        (now, known): (&PromiseNow<'_>, &ScheduleFacts<'a>),
        (both, points): (Both<'_>, &mut Points<'a>),
        owed: impl Fn(&OutstandingPoint),
    ) -> Option<&KeptJudgement> {
        let (guests, alike) = (&self.guests, &mut self.alike);
        let kept = guests.get(place).filter(|kept| {
            known.time.at <= kept.until
                && kept.own == Own::of(known)
                && alike.are(&kept.promise, now.promise)
                && kept.mounts.as_ref().is_none_or(|mounts| mounts.are(both))
                && (kept.tiers.iter().flatten().zip(&now.tiers))
                    .all(|(kept, tier)| kept.holds(tier, known, points, &owed))
        });
        if kept.is_none() {
            self.stale.push(place);
        }
        kept
    }

    /// What is there holds no more.
    pub(super) fn forget(&mut self, place: usize) {
        self.stale.push(place);
    }

    pub(super) fn keep(&mut self, kept: KeptJudgement) {
        self.fresh.push(kept);
    }
}

/// What faults of a tier follow from, apart from lists. None without a record of it.
pub(super) type TierKnown = Option<(Timestamp, Option<PointAttempt>)>;

pub(super) fn of_tier(known: &ScheduleFacts<'_>, tier: Tier) -> TierKnown {
    known.tiers.iter().find(|record| record.tier == tier).map(|record| (record.since, record.tried))
}

impl KeptTier {
    fn holds<'a>(
        &self,
        tier: &TierNow<'_>,
        known: &ScheduleFacts<'a>,
        points: &mut Points<'a>,
        shown: impl Fn(&OutstandingPoint),
    ) -> bool {
        let TierNow { promised, around, open, room } = tier;
        let fits = || {
            let target = promised.target.zip(*room);
            target.is_none_or(|(target, room)| space::fits(target, room, self.takes).is_ok())
        };
        if open.is_err() || !fits() || self.known != of_tier(known, promised.tier) {
            return false;
        }
        let owed = standing(known, promised, (*around, self.stands), |schedule| points.of(schedule));
        shown(&owed);
        match &self.outstanding {
            LastOutstanding::Quiet => owed.is_quiet(),
            LastOutstanding::This(was) => **was == owed,
        }
    }
}
