//! Tests of retention on chosen and random backups.

use serde_json::json;

use super::*;
use crate::model::records::TakenBy;
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};

/// A generator of numbers by which a test is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap()
}

fn op(n: u64) -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(u128::from(n)))
}

fn backup(n: u64, hours: i64) -> BackupRecord {
    BackupRecord {
        archive: VolumeId::new(format!("backup2:backup/{n}")),
        guest: GuestUid::new(uuid::Uuid::from_u128(7)),
        vmid: Vmid::try_from(300).unwrap(),
        storage: "backup2".parse().unwrap(),
        bytes: 9,
        taken_at: at(hours),
        taken_by: op(n),
        why: BackupWhy::Schedule,
        tier: Some(Tier::Local),
        point: Some(at(hours)),
        sealed: None,
        missing_since: None,
        took: None,
        label: None,
        mounts: None,
        hardware: None,
        disks: None,
    }
}

fn retention(value: serde_json::Value) -> Retention {
    serde_json::from_value(value).unwrap()
}

struct Row {
    backups: Vec<BackupRecord>,
    proofs: BTreeMap<OperationId, Timestamp>,
}

impl Row {
    fn judge(&self, retention: &Retention, now: i64) -> Vec<Option<Prune>> {
        let zone: Zone = serde_json::from_value(json!("Europe/Berlin")).unwrap();
        let target: StorageName = "backup2".parse().unwrap();
        let tier = KeptTier { tier: Tier::Local, target: &target, key: None, retention, zone: &zone };
        judge(&self.backups, &tier, &self.proofs, &BTreeSet::new(), at(now))
    }
}

/// What a stricter floor keeps, what was proved last, what is missing and what is of a time to come: none of it is
/// removed, over many rows, and one by one until nothing is left to remove.
#[test]
fn what_must_stay_stays_whatever_goes_before_it() {
    let mut dice = Dice(0x2545_f491);
    for _ in 0..300 {
        let count = 1 + dice.below(40);
        let backups: Vec<BackupRecord> = (0..count)
            .map(|n| {
                let mut backup = backup(n, -i64::try_from(dice.below(24 * 90)).unwrap());
                if dice.below(6) == 0 {
                    backup.missing_since = Some(at(0));
                }
                if dice.below(9) == 0 {
                    backup.point = Some(at(24 * 365));
                }
                backup
            })
            .collect();
        let proofs = (0..count).filter(|_| dice.below(4) == 0).map(|n| (op(n), at(0))).collect();
        let mut row = Row { backups, proofs };
        let last = u32::try_from(1 + dice.below(4)).unwrap();
        let keep = retention(json!({ "keep": { "last": last, "daily": 1 + dice.below(5), "weekly": 2 } }));
        let counts = |backup: &BackupRecord| backup.missing_since.is_none() && taken_at(backup) <= at(0);
        let newest_proved = |row: &Row| {
            let proved =
                row.backups.iter().filter(|one| counts(one) && row.proofs.contains_key(&one.taken_by));
            proved.map(taken_at).max()
        };
        let (proved, others) = (newest_proved(&row), row.backups.iter().filter(|one| !counts(one)).count());
        let good = row.backups.iter().filter(|one| counts(one)).count();
        // Everything above the floor is removed, one after another, as in the agent.
        while let Some(place) =
            row.judge(&keep, 0).iter().position(|effect| *effect == Some(Prune::OutsidePolicy))
        {
            row.backups.remove(place);
        }
        assert_eq!(newest_proved(&row), proved);
        assert_eq!(row.backups.iter().filter(|one| !counts(one)).count(), others, "they are left alone");
        let left = row.backups.iter().filter(|one| counts(one)).count();
        assert!(left >= good.min(last as usize), "{left} of {good} with last {last}");
    }
}

/// The holder of a guest may request many backups: no earlier backup is removed that would otherwise have stayed.
#[test]
fn what_is_asked_for_pushes_out_nothing_that_the_schedule_took() {
    let keep = retention(json!({ "keep": { "last": 3 } }));
    let asked =
        |n: u64, hours| BackupRecord { why: BackupWhy::Asked, point: None, tier: None, ..backup(n, hours) };
    let mut backups: Vec<BackupRecord> =
        (0..4).map(|n| backup(n, -100 + i64::try_from(n).unwrap())).collect();
    backups.extend((10..20).map(|n| asked(n, -30 + i64::try_from(n).unwrap())));
    let row = Row { backups, proofs: BTreeMap::from([(op(0), at(0))]) };
    let effects = row.judge(&keep, 0);
    let kept = Some(Prune::Kept);
    assert_eq!(effects[..4], [Some(Prune::NewestProved), kept, kept, kept]);
    assert_eq!(effects[4..11], [Some(Prune::OutsidePolicy); 7], "they go by the same retention");
    assert_eq!(effects[11..], [kept, kept, Some(Prune::Last)]);
}

#[test]
fn the_last_one_stays_and_another_tier_is_another_matter() {
    let one = retention(json!({ "keep": { "last": 1 } }));
    let mut row = Row { backups: vec![backup(1, -48), backup(2, -24)], proofs: BTreeMap::new() };
    assert_eq!(row.judge(&one, 0), [Some(Prune::OutsidePolicy), Some(Prune::Last)]);
    row.proofs.insert(op(1), at(0));
    assert_eq!(row.judge(&one, 0), [Some(Prune::NewestProved), Some(Prune::Last)]);
    row.backups[1].missing_since = Some(at(0));
    assert_eq!(row.judge(&one, 0), [Some(Prune::Last), None], "the newer one is not there");
    row.backups[1].missing_since = None;
    row.backups[1].tier = Some(Tier::OffSite);
    assert_eq!(row.judge(&one, 0), [Some(Prune::Last), None]);
    // A backup that was taken for no policy counts where it is stored.
    row.backups[1].tier = None;
    assert_eq!(row.judge(&one, 0), [Some(Prune::NewestProved), Some(Prune::Last)]);
    assert_eq!(row.judge(&one, -36), [Some(Prune::Last), None], "what is of a time to come does not count");
}

/// A volume was detached on the third day: the newest backup that holds it stays, whatever the retention says, until a
/// newer one holds it or it is backed up to another target.
#[test]
fn the_newest_that_holds_a_volume_which_later_ones_lack_stays() {
    let holding = |n: u64, paths: &[&str], left_out: &[&str]| {
        let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let mounts = Some(HeldMounts { holds: own(paths), left_out: own(left_out) });
        BackupRecord { mounts, ..backup(n, i64::try_from(n).unwrap() * 24) }
    };
    let one = retention(json!({ "keep": { "last": 1 } }));
    let judged = |backups: Vec<BackupRecord>| Row { backups, proofs: BTreeMap::new() }.judge(&one, 24 * 30);
    let both = ["/srv/db", "/srv/files"];
    let lacking = judged(vec![
        holding(1, &both, &[]),
        holding(2, &both, &[]),
        holding(3, &both[..1], &[]),
        holding(4, &both[..1], &[]),
    ]);
    let goes = Some(Prune::OutsidePolicy);
    assert_eq!(lacking, [goes, Some(Prune::OnlyHolder), goes, Some(Prune::Last)]);
    // It is in the backups of another tier by now, or is back in these.
    let elsewhere = judged(vec![holding(1, &both, &[]), holding(2, &both[..1], &both[1..])]);
    assert_eq!(elsewhere, [goes, Some(Prune::Last)]);
    let back = judged(vec![holding(1, &both, &[]), holding(2, &both[..1], &[]), holding(3, &both, &[])]);
    assert_eq!(back, [goes, goes, Some(Prune::Last)]);
}

#[test]
fn what_is_sealed_with_another_key_or_with_none_does_not_count() {
    let key =
        |byte: &str| -> KeyFingerprint { serde_json::from_value(json!(vec![byte; 32].join(":"))).unwrap() };
    let (own, other) = (key("ab"), key("cd"));
    let sealed = |n, key: &KeyFingerprint| BackupRecord {
        sealed: Some(key.clone()),
        ..backup(n, i64::try_from(n).unwrap())
    };
    let backups = [sealed(1, &own), sealed(2, &own), sealed(3, &other), backup(4, 4)];
    let (target, zone) = ("backup2".parse().unwrap(), serde_json::from_value(json!("UTC")).unwrap());
    let one = retention(json!({ "keep": { "last": 1 } }));
    let effects = |key| {
        let tier = KeptTier { tier: Tier::Local, target: &target, key, retention: &one, zone: &zone };
        judge(&backups, &tier, &BTreeMap::new(), &BTreeSet::new(), at(5))
    };
    let goes = Some(Prune::OutsidePolicy);
    assert_eq!(effects(Some(&own)), [goes, Some(Prune::Last), None, None]);
    assert_eq!(effects(None), [goes, goes, goes, Some(Prune::Last)], "no key is promised");
}

fn snapshot(name: &str, point: Option<Timestamp>) -> SnapshotRecord {
    SnapshotRecord {
        guest: GuestUid::new(uuid::Uuid::from_u128(7)),
        name: name.parse().unwrap(),
        vmid: Vmid::try_from(300).unwrap(),
        made_by: op(1),
        taken_by: TakenBy::Schedule,
        taken_at: at(0),
        expires_at: None,
        point,
    }
}

#[test]
fn scheduled_snapshots_go_by_their_tier_and_others_by_none() {
    let apart = at(4) + limits::CLOCKS_APART;
    let all = [
        snapshot("third", Some(at(3))),
        snapshot("asked", None),
        snapshot("first", Some(at(1))),
        // The last time that two clocks may be apart, and one that is to come.
        snapshot("fourth", Some(apart)),
        snapshot("to-come", Some(apart + jiff::SignedDuration::from_secs(1))),
        snapshot("second", Some(at(2))),
    ];
    let tier = |last: u32| -> SnapshotTier {
        let schedule = json!({ "at": ["*:00"], "zone": "UTC", "jitter_min": 0, "window_min": 30 });
        serde_json::from_value(json!({ "schedule": schedule, "retention": { "keep": { "last": last } } }))
            .unwrap()
    };
    let goes = |tier: Option<&SnapshotTier>| {
        let gone = snapshots(&all, tier, at(4));
        gone.iter().map(|one| one.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(goes(Some(&tier(1))), ["first", "second", "third"]);
    assert_eq!(goes(Some(&tier(3))), ["first"]);
    assert!(goes(Some(&tier(4))).is_empty());
    assert_eq!(goes(None), ["first", "second", "third", "fourth"], "the tier was signed away");
}
