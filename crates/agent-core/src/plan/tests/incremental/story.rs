//! A host of a few guests that is changed at random.
//!
//! In: a seed. Out: a world that another step changed: time passes or is set back, backups come and go, tests and tries are
//! written down, storages fill up and fall silent, documents ask for something else, and at times all is put right.

use std::sync::Arc;

use holdfast_protocol::id::StorageName;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::local::window::Label;
use holdfast_protocol::protection::{Consistency, Protection as Promise, Tier, Took};
use holdfast_protocol::storage::report::PrunedBy;

use super::super::raised::hello;
use super::super::schedule::{Dice, time};
use super::super::trial::place;
use super::super::*;
use super::host::{TARGETS, key, off_site_target, policies};
use crate::model::observed::BackupListing;
use crate::model::offsite::Verification;
use crate::model::records::{
    BackupRecord, BackupWhy, EarlierSchedule, HeldMounts, PointAttempt, Renumbered, RenumberedBy, TestRecord,
    TierRecord,
};
use crate::operation::Operation;

const GUESTS: u32 = 5;

/// A host, and its clock.
pub(super) struct Story {
    pub(super) world: World,
    pub(super) now: Timestamp,
    pub(super) time: TrustedTime,
    dice: Dice,
    serial: u128,
}

impl Story {
    pub(super) fn new(seed: u64) -> Self {
        let mut world = world(GUESTS);
        world.policies = policies();
        let now = time("2026-06-10T12:00:00Z");
        let mut story = Self {
            world,
            now,
            time: TrustedTime { at: now, since: now, steady: Steady::Yes },
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            serial: 0,
        };
        story.world.policy.scratch = Some(place());
        for n in 1..=GUESTS {
            story.document(n);
            story.promise(n);
        }
        story.world.records.storage.push(off_site_target());
        story.heal();
        story
    }

    /// Ends what is wrong with the host as a whole, and with its guests.
    fn heal(&mut self) {
        let healthy = world(GUESTS);
        self.world.observed.guests = healthy.observed.guests;
        self.world.records.guests = healthy.records.guests;
        let records = &mut self.world.records;
        (records.open, records.parked, records.attempts) = (Vec::new(), Vec::new(), Vec::new());
        self.world.policy.backup_storage = Some("backup2".parse().unwrap());
        self.time.steady = Steady::Yes;
        for target in TARGETS.map(|target| target.parse::<StorageName>().unwrap()) {
            let large = StorageFact::Active { total: 4 << 40, used: 1 << 40, available: 3 << 40 };
            self.world.observed.storages.insert(target.clone(), large);
            let (protected, verified) = (BTreeSet::new(), BTreeMap::new());
            let listing = BackupListing::Listed { protected, verified, pruned_by: None };
            self.world.observed.listings.insert(target, listing);
        }
        for n in 1..=GUESTS {
            if self.world.desired.iter().all(|guest| guest.uid != uid(n)) {
                self.world.desired.push(guest(n));
            }
        }
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.dice.below(limit)
    }

    fn guest(&mut self) -> u32 {
        1 + u32::try_from(self.below(GUESTS.into())).unwrap()
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let place = usize::try_from(self.below(all.len() as u64)).unwrap();
        all[place].clone()
    }

    fn ago(&mut self, minutes: u64) -> Timestamp {
        let ago = i64::try_from(self.below(minutes)).unwrap();
        self.now.checked_sub(SignedDuration::from_mins(ago)).unwrap()
    }

    /// Puts a guest under another policy, or gives it another volume.
    fn document(&mut self, n: u32) {
        let policy = self.pick(&["usual", "tested", "all", "none"]);
        let bulk = json!({ "bulk": { "backup_to": "backup2" } });
        let kind = self.pick(&[json!("hot"), json!("hot"), bulk, json!({ "bulk": { "none": "a cache" } })]);
        let Some(guest) = self.world.desired.iter_mut().find(|guest| guest.uid == uid(n)) else { return };
        guest.policy = (policy != "none").then(|| policy.parse().unwrap());
        guest.volumes[0].kind = serde_json::from_value(kind).unwrap();
    }

    /// Puts into force what its document asks for.
    fn promise(&mut self, n: u32) {
        let world = &mut self.world;
        let Some(guest) = world.desired.iter().find(|guest| guest.uid == uid(n)) else { return };
        world.records.tiers.retain(|tier| tier.guest != uid(n));
        match Promise::of_document(guest, &world.policies) {
            Some(promise) => {
                let since = self.now.checked_sub(SignedDuration::from_hours(30)).unwrap();
                let tiers = [
                    (Tier::Snapshot, promise.tiers.snapshot.is_some()),
                    (Tier::Local, promise.tiers.local.is_some()),
                    (Tier::OffSite, promise.tiers.off_site.is_some()),
                ];
                let tiers = tiers.iter().filter(|(_, is)| *is);
                world.records.tiers.extend(tiers.map(|(tier, _)| TierRecord::new(uid(n), *tier, since)));
                world.records.protections.insert(uid(n), Arc::new(promise));
            }
            None => drop(world.records.protections.remove(&uid(n))),
        }
        world.records.tiers.sort_by_key(|tier| (tier.guest, tier.tier));
    }

    fn list(&mut self, target: &str) {
        let all: Vec<VolumeId> =
            self.world.records.backups.iter().map(|backup| backup.archive.clone()).collect();
        let (mut protected, mut verified) = (BTreeSet::new(), BTreeMap::new());
        if !all.is_empty() && self.below(3) == 0 {
            protected.insert(self.pick(&all));
            let at = self.ago(2_000);
            verified.insert(self.pick(&all), Verification { well: self.below(3) > 0, at });
        }
        let pruned_by = self.pick(&[None, None, Some(PrunedBy::Server), Some(PrunedBy::Agent)]);
        let listing = match self.below(6) {
            0 => BackupListing::Dark("it is away".to_owned()),
            _ => BackupListing::Listed { protected, verified, pruned_by },
        };
        self.world.observed.listings.insert(target.parse().unwrap(), listing);
    }

    fn back_up(&mut self, n: u32, at: Timestamp) {
        self.serial += 1;
        let storage = self.pick(&TARGETS);
        let point = self
            .world
            .records
            .protections
            .get(&uid(n))
            .and_then(|promise| promise.tiers.local.as_ref().and_then(|tier| tier.schedule.last(at)));
        let labels = [Consistency::Application, Consistency::Crash];
        let label = Label { consistency: self.pick(&labels), why: "so it was".to_owned() };
        let held = HeldMounts { holds: vec!["/srv/db".to_owned()], left_out: Vec::new() };
        let record = BackupRecord {
            archive: VolumeId::new(format!("{storage}:backup/{}", self.serial)),
            guest: uid(n),
            vmid: vmid(299 + n),
            storage: storage.parse().unwrap(),
            bytes: 1 << 30,
            taken_at: at,
            taken_by: op(1_000 + self.serial),
            why: self.pick(&[BackupWhy::First, BackupWhy::Schedule, BackupWhy::Schedule, BackupWhy::Asked]),
            tier: self.pick(&[None, Some(Tier::Local), Some(Tier::Local), Some(Tier::OffSite)]),
            point: point.filter(|_| !self.serial.is_multiple_of(3)),
            sealed: (storage == "pbs1").then(key),
            missing_since: None,
            took: None,
            label: Some(label).filter(|_| self.serial.is_multiple_of(2)),
            mounts: Some(held).filter(|_| !self.serial.is_multiple_of(4)),
            hardware: None,
            disks: None,
        };
        let all = Arc::make_mut(&mut self.world.records.backups);
        all.push(record);
        all.sort_by_key(|backup| (backup.guest, backup.taken_at));
    }

    fn one_backup(&mut self, change: impl FnOnce(&mut BackupRecord, Timestamp)) {
        let count = self.world.records.backups.len();
        if count > 0 {
            let (place, now) = (usize::try_from(self.below(count as u64)).unwrap(), self.now);
            change(&mut Arc::make_mut(&mut self.world.records.backups)[place], now);
        }
    }

    fn test(&mut self) {
        let all = Arc::clone(&self.world.records.backups);
        if all.is_empty() {
            return;
        }
        let backup = self.pick(&all);
        let verdict = self.pick(&[
            TestVerdict::Proved,
            TestVerdict::BootedOnly,
            TestVerdict::Failed,
            TestVerdict::NotRun,
        ]);
        let at = self.ago(600);
        if verdict == TestVerdict::Proved {
            self.world.records.proofs.insert(backup.taken_by, at);
        }
        self.serial += 1;
        let took = Took { restore_s: Some(60 + self.below(900)), up_s: Some(30) };
        self.world.records.tests.push(TestRecord {
            operation: op(self.serial),
            guest: backup.guest,
            archive: backup.archive,
            backup: backup.taken_by,
            taken_at: backup.taken_at,
            verdict,
            why: "as the story wants it".to_owned(),
            began_at: at,
            at,
            bytes: Some(backup.bytes),
            took,
        });
        self.world.records.tests.sort_by_key(|test| (test.guest, test.at));
    }

    fn snapshot(&mut self, n: u32) {
        self.serial += 1;
        let taken_at = self.ago(300);
        let name = format!("scheduled-{}", self.serial);
        let own = self.world.records.snapshots.iter().filter(|one| one.guest == uid(n)).count();
        if own > 4 {
            self.world.records.snapshots.retain(|one| one.guest != uid(n));
        }
        let by_guest = self.below(4) == 0;
        self.world.records.snapshots.push(SnapshotRecord {
            guest: uid(n),
            name: name.parse().unwrap(),
            vmid: vmid(299 + n),
            made_by: op(self.serial),
            taken_by: if by_guest { TakenBy::Guest } else { TakenBy::Schedule },
            taken_at,
            expires_at: by_guest.then_some(taken_at),
            point: (!by_guest).then_some(taken_at),
        });
        self.world.records.snapshots.sort_by_key(|one| (one.guest, one.expires_at));
    }

    fn tier(&mut self) {
        let count = self.world.records.tiers.len();
        if count == 0 {
            return;
        }
        let place = usize::try_from(self.below(count as u64)).unwrap();
        let (what, last) = (self.below(4), self.ago(90));
        let now = self.now;
        let schedule = self.world.policies[1].tiers.local.as_ref().unwrap().schedule.clone();
        let record = &mut self.world.records.tiers[place];
        let point = schedule.last(now).unwrap();
        match what {
            0 => record.tried = Some(PointAttempt { point, times: 2, late: 0, last }),
            1 => record.tried = None,
            2 => record.took = Some(SignedDuration::from_mins(20)),
            _ if record.earlier.is_some() => record.earlier = None,
            _ => {
                let earlier = EarlierSchedule { schedule, consistency: Consistency::Crash, until: last };
                record.earlier = Some(Box::new(earlier));
            }
        }
    }

    /// Operations that are open, parked or waited for.
    fn operation(&mut self) {
        let kinds = [
            OperationKind::Backup,
            OperationKind::PruneBackup,
            OperationKind::RestoreTest,
            OperationKind::ExpireSnapshot,
        ];
        let (n, kind, last) = (self.guest(), self.pick(&kinds), self.ago(30));
        let (id, guest) = (op(self.serial), uid(n));
        let records = &mut self.world.records;
        let taken_by = records.backups.iter().rfind(|backup| backup.guest == guest).map(|one| one.taken_by);
        match self.dice.below(6) {
            0 => records.open.push(OpenOperation { id: taken_by.unwrap_or(id), kind, guest }),
            1 => records.open.clear(),
            2 => {
                let message = "look".to_owned();
                records.parked.push(ParkedOperation { id, kind, guest, about: guest, message });
            }
            3 => records.parked.clear(),
            4 => {
                records.attempts.retain(|tried| (tried.guest, tried.kind) != (guest, kind));
                records.attempts.push(Attempts { guest, kind, failed: 2, last, message: "no".to_owned() });
            }
            _ => records.attempts.clear(),
        }
    }

    fn guest_changes(&mut self) {
        let (n, now) = (self.guest(), self.now);
        let heard = self.ago(20);
        let (what, number) = (self.below(9), 299 + n);
        let as_made = world(GUESTS).observed.guests.remove(&vmid(number)).unwrap();
        self.world.observed.guests.entry(vmid(number)).or_insert(as_made);
        let place = self.world.records.guests.iter().position(|record| record.uid == uid(n));
        match (what, place) {
            (0, _) => self.world.seen(number).run = Running::Stopped,
            (1, _) => self.world.seen(number).run = Running::Running,
            (2, Some(place)) => {
                self.world.records.guests[place].hello = Some(hello(heard));
                self.world.records.heard.insert(uid(n), heard);
                self.world.seen(number).up_s = 90_000;
            }
            (3, Some(place)) => self.world.records.guests[place].hello = None,
            (4, _) => {
                let backup = self.pick(&[BackupFlag::On, BackupFlag::Off]);
                self.world.facts(number).mounts.values_mut().for_each(|mount| mount.backup = backup);
            }
            (5, _) => drop(self.world.observed.guests.remove(&vmid(number))),
            (6, _) => {
                let by = self.pick(&[RenumberedBy::Return, RenumberedBy::Swap]);
                self.world.records.renumbered.insert(uid(n), Renumbered { by, began_at: heard, at: heard });
            }
            (7, _) => drop(self.world.records.renumbered.remove(&uid(n))),
            _ => {
                let stood = SignedDuration::from_mins(i64::try_from(self.below(90)).unwrap());
                self.world.records.stood_still.insert(uid(n), stood);
                assert!(now >= heard);
            }
        }
    }

    /// A guest comes, with what is kept of it, or goes.
    fn membership(&mut self) {
        let n = self.guest();
        let whole = world(GUESTS);
        let place = self.world.records.guests.iter().position(|record| record.uid == uid(n));
        match (self.below(2), place) {
            (0, Some(place)) => drop(self.world.records.guests.remove(place)),
            (_, Some(_)) => {
                let before = self.world.desired.len();
                self.world.desired.retain(|guest| guest.uid != uid(n));
                if self.world.desired.len() == before {
                    self.world.desired.push(guest(n));
                }
            }
            (_, None) => {
                self.world
                    .records
                    .guests
                    .extend(whole.records.guests.into_iter().filter(|one| one.uid == uid(n)));
                self.world.records.guests.sort_by_key(|record| record.uid);
            }
        }
    }

    fn storage(&mut self) {
        let target = self.pick(&TARGETS);
        let small = StorageFact::Active { total: 100 << 30, used: 99 << 30, available: 1 << 30 };
        let large = StorageFact::Active { total: 4 << 40, used: 1 << 40, available: 3 << 40 };
        match self.below(6) {
            0 => self.list(target),
            1 => self.world.policy.backup_storage = Some(target.parse().unwrap()),
            what => {
                let fact = [large, small, StorageFact::Inactive, StorageFact::Unknown]
                    [usize::try_from(what - 2).unwrap()];
                self.world.observed.storages.insert(target.parse().unwrap(), fact);
            }
        }
    }

    pub(super) fn clock(&mut self) {
        let minutes = match self.below(12) {
            0 => -i64::try_from(self.below(600)).unwrap(),
            1..4 => i64::try_from(self.below(3 * 24 * 60)).unwrap(),
            _ => i64::try_from(self.below(90)).unwrap(),
        };
        self.now = self.now.checked_add(SignedDuration::from_mins(minutes)).unwrap();
        self.time.at = self.now;
        match self.below(20) {
            0 => self.time.steady = Steady::No,
            1..4 => self.time.steady = Steady::Yes,
            4 => self.time.since = self.now,
            _ => {}
        }
    }

    /// Carries out some of what the last plan wanted, as an agent and its store do.
    pub(super) fn carry_out(&mut self, plan: &Plan) {
        for action in &plan.actions {
            match &action.operation {
                Operation::Backup(backup) => {
                    let n = 1 + backup.target.vmid.number() - 300;
                    self.back_up(n, self.now);
                    let newest = Arc::make_mut(&mut self.world.records.backups);
                    let archive = format!("{}:backup/{}", backup.storage, self.serial);
                    let newest =
                        newest.iter_mut().find(|one| one.taken_by == op(1_000 + self.serial)).unwrap();
                    (newest.archive, newest.storage) = (VolumeId::new(archive), backup.storage.clone());
                    (newest.tier, newest.point) =
                        (backup.due.map(|due| due.tier), backup.due.map(|due| due.point));
                    newest.sealed = backup.key.clone();
                    newest.missing_since = None;
                }
                Operation::PruneBackup(prune) => {
                    let all = Arc::make_mut(&mut self.world.records.backups);
                    all.retain(|backup| backup.taken_by != prune.taken_by);
                }
                Operation::ExpireSnapshot(expire) => {
                    self.world.records.snapshots.retain(|one| one.made_by != expire.made_by);
                }
                Operation::Snapshot(snapshot) => {
                    self.snapshot(1 + snapshot.target.vmid.number() - 300);
                    let newest =
                        self.world.records.snapshots.iter_mut().find(|one| one.made_by == op(self.serial));
                    let newest = newest.unwrap();
                    (newest.taken_by, newest.expires_at) = (TakenBy::Schedule, None);
                    newest.point = snapshot.due.map(|due| due.point);
                }
                Operation::RestoreTest(test) => {
                    let serial = self.serial;
                    self.test();
                    let newest =
                        self.world.records.tests.iter_mut().find(|one| one.operation == op(serial + 1));
                    if let Some(newest) = newest {
                        (newest.guest, newest.at) = (test.guest, self.now);
                        (newest.backup, newest.archive) = (test.backup.taken_by, test.backup.archive.clone());
                    }
                    self.world.records.tests.sort_by_key(|test| (test.guest, test.at));
                }
                _ => {}
            }
        }
        for raise in &plan.raises {
            self.world.records.protections.insert(raise.guest, Arc::new(raise.to.clone()));
        }
    }

    pub(super) fn change(&mut self) {
        let n = self.guest();
        match self.below(22) {
            0 => self.document(n),
            1 => {
                self.document(n);
                self.promise(n);
            }
            2 => {
                // A clock that was ahead, at times.
                let ahead = i64::from(self.below(8) == 0) * 300;
                let at = self.ago(600).checked_add(SignedDuration::from_mins(ahead)).unwrap();
                self.back_up(n, at);
            }
            3 => self.one_backup(|backup, now| {
                backup.missing_since = if backup.missing_since.is_some() { None } else { Some(now) };
            }),
            4 => self.one_backup(|backup, _| backup.sealed = None),
            5 => {
                let place = self.world.records.backups.len().checked_sub(1);
                let all = Arc::make_mut(&mut self.world.records.backups);
                drop(place.map(|place| all.remove(place)));
            }
            6 => self.test(),
            7 => self.snapshot(n),
            8 | 9 => self.tier(),
            10 => self.operation(),
            11 => self.guest_changes(),
            12 => self.membership(),
            13 => self.storage(),
            14 => drop(self.world.records.proofs.pop_first()),
            15 => {
                // The same promises, read anew.
                let all = &mut self.world.records.protections;
                all.values_mut().for_each(|promise| *promise = Arc::new(Promise::clone(promise)));
                self.world.records.backups = Arc::new(self.world.records.backups.to_vec());
            }
            16 => self.world.records.proofs.clear(),
            _ => self.heal(),
        }
    }
}
