//! Tests of retention against the simulator's implementation.
//!
//! The simulated node's days are those of UTC. The simulator gets each row by the local clock time of the zone, so that
//! its days are that zone's. In the hour that clocks show twice, both halves are pressed into one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agentd::gate::Prune;
use agentd::gate::retention::{KeptTier, judge};
use agentd::model::records::{BackupRecord, BackupWhy, VolumeId};
use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::protection::{Retention, Tier, Zone};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use pve_sim::in_process::{Ask, Reported, ask};
use serde_json::{Value, json};

use super::lab::{GOLDEN, Lab, vmid};

const SEEDS: std::ops::Range<u64> = 1..401;
const GUEST: u32 = 777;

/// Each with its own day of the change; those of Auckland and New York are on other sides of the year.
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland"];

/// Moments around which periods are easily miscounted: clocks that change, ISO weeks across the end of a year (2026 has 53),
/// a leap day.
const AROUND: [&str; 8] = [
    "2026-03-29T01:00:00Z",
    "2026-10-25T01:00:00Z",
    "2026-11-01T06:00:00Z",
    "2026-04-04T14:00:00Z",
    "2026-12-31T23:59:58Z",
    "2027-01-04T00:00:00Z",
    "2024-12-30T00:00:00Z",
    "2028-02-29T12:00:00Z",
];

/// So a storage distinguishes several archives of one second.
const SUFFIXES: [&str; 3] = ["tar.zst", "tar.gz", "tar.lzo"];

/// A generator of numbers by which a test is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// One backup of a row: when, which of those of its second, and whether it is protected in Proxmox.
#[derive(Clone, Copy, Debug)]
struct Made {
    at: Timestamp,
    counterpart: usize,
    protected: bool,
}

/// A row, oldest first. Times are even seconds, so that half of one is a second too.
fn row(dice: &mut Dice) -> Vec<Made> {
    let start: Timestamp = dice.one(&AROUND).parse().unwrap();
    let step = dice.one(&[600, 2_400, 14_400, 86_400, 500_000, 3_000_000]);
    let count = 1 + dice.below(40);
    let mut at = start.as_second() / 2 * 2 - i64::try_from(count * step / 4 * 2).unwrap() / 2 * 2;
    let mut made = Vec::new();
    for _ in 0..count {
        at += 2 + i64::try_from(dice.below(step)).unwrap() * 2;
        let twins = if dice.below(9) == 0 { 1 + dice.below(2) } else { 0 };
        for counterpart in 0..=usize::try_from(twins).unwrap() {
            let protected = dice.below(8) == 0;
            made.push(Made { at: Timestamp::from_second(at).unwrap(), counterpart, protected });
        }
    }
    made
}

/// Rules and counts; without any, one. Two backups of one second are two to us and one to Proxmox's `keep-last`, so
/// that rule is not used for a row that has such backups.
fn keep(dice: &mut Dice, twins: bool) -> BTreeMap<&'static str, u64> {
    let mut rules = BTreeMap::new();
    for rule in ["last", "hourly", "daily", "weekly", "monthly", "yearly"] {
        if dice.below(2) == 0 && !(twins && rule == "last") {
            rules.insert(rule, 1 + dice.below(7));
        }
    }
    if rules.is_empty() {
        rules.insert("weekly", 2);
    }
    rules
}

/// What clocks of the zone show, as seconds of a zone whose clocks never change. The order of times is kept, and each
/// hour stays one hour.
fn shown(zone: &TimeZone, at: Timestamp) -> i64 {
    let civil: DateTime = zone.to_datetime(at);
    let plain = civil.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second();
    let AmbiguousOffset::Fold { before, .. } = zone.to_ambiguous_timestamp(civil).offset() else {
        return plain;
    };
    let (hour, within) = (plain.div_euclid(3_600) * 3_600, plain.rem_euclid(3_600));
    let first = zone.to_offset(at) == before;
    hour + within / 2 + if first { 0 } else { 1_800 }
}

/// The simulated storage's folder, and the names of its archives of the guest.
struct Archives<'a> {
    lab: &'a Lab,
    folder: PathBuf,
}

impl Archives<'_> {
    fn name(shown: i64, counterpart: usize) -> String {
        let stamp = Timestamp::from_second(shown).unwrap().strftime("%Y_%m_%d-%H_%M_%S").to_string();
        format!("vzdump-lxc-{GUEST}-{stamp}.{}", SUFFIXES[counterpart])
    }

    /// What `GET …/prunebackups` marks, by the archive's name.
    fn marks(&self, row: &[(Made, String)], keep: &BTreeMap<&str, u64>) -> BTreeMap<String, String> {
        for (made, name) in row {
            std::fs::write(self.folder.join(name), "an archive").unwrap();
            if made.protected {
                std::fs::write(self.folder.join(format!("{name}.protected")), "").unwrap();
            }
        }
        let rules: Vec<String> = keep.iter().map(|(rule, count)| format!("keep-{rule}={count}")).collect();
        let token = self.lab.sim.tokens.get("root@pam!lab").unwrap();
        let reported = ask(
            &self.lab.sim.node,
            &Ask {
                method: "GET",
                path: "/api2/json/nodes/pve1/storage/backup2/prunebackups",
                params: &[("vmid", &GUEST.to_string()), ("prune-backups", &rules.join(","))],
                authorization: &format!("PVEAPIToken=root@pam!lab={token}"),
            },
        );
        let Reported::Answer { status: 200, body, .. } = reported else { panic!("{reported:?}") };
        for (made, name) in row {
            std::fs::remove_file(self.folder.join(name)).unwrap();
            if made.protected {
                std::fs::remove_file(self.folder.join(format!("{name}.protected"))).unwrap();
            }
        }
        let body: Value = serde_json::from_slice(&body).unwrap();
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
        let marks = body["data"].as_array().unwrap().iter();
        marks
            .map(|entry| (text(entry, "volid").rsplit('/').next().unwrap().to_owned(), text(entry, "mark")))
            .collect()
    }
}

fn record(made: Made, name: &str, n: usize) -> BackupRecord {
    BackupRecord {
        archive: VolumeId::new(name),
        guest: GuestUid::new(uuid::Uuid::from_u128(7)),
        vmid: vmid(GUEST),
        storage: "backup2".parse().unwrap(),
        bytes: 9,
        taken_at: made.at,
        taken_by: OperationId::new(uuid::Uuid::from_u128(n as u128)),
        why: BackupWhy::Schedule,
        tier: Some(Tier::Local),
        point: None,
        sealed: None,
        missing_since: None,
        took: None,
        label: None,
        mounts: None,
        hardware: None,
        disks: None,
    }
}

/// Seconds at which an archive stays or is protected. For several archives of one second it does not matter which
/// stays.
fn stays(row: &[(Made, String)], goes: impl Fn(&str) -> bool) -> Vec<i64> {
    let left = row.iter().filter(|(_, name)| !goes(name));
    left.map(|(made, _)| made.at.as_second()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retention_keeps_what_proxmox_would_keep() {
    let lab = Lab::start().await;
    let folder = lab.archive().parent().unwrap().to_owned();
    assert!(folder.join(GOLDEN).exists());
    let listing = Archives { lab: &lab, folder };
    let target = "backup2".parse().unwrap();
    let (mut goes, mut kept) = (0, 0);
    for seed in SEEDS {
        let mut dice = Dice(seed);
        let (made, name) = (row(&mut dice), dice.one(&ZONES));
        let keep = keep(&mut dice, made.iter().any(|made| made.counterpart > 0));
        let zone: Zone = serde_json::from_value(json!(name)).unwrap();
        let clock = TimeZone::get(name).unwrap();
        let named: Vec<(Made, String)> = made
            .into_iter()
            .map(|made| (made, Archives::name(shown(&clock, made.at), made.counterpart)))
            .collect();
        let marks = listing.marks(&named, &keep);
        assert_eq!(marks.len(), named.len(), "seed {seed}: the storage lists each");
        let theirs = stays(&named, |name| marks[name] == "remove");

        let backups: Vec<BackupRecord> =
            named.iter().enumerate().map(|(n, (made, name))| record(*made, name, n)).collect();
        let protected = named.iter().filter(|(made, _)| made.protected);
        let protected = protected.map(|(_, name)| VolumeId::new(name.as_str())).collect();
        let retention: Retention = serde_json::from_value(json!({ "keep": keep })).unwrap();
        let tier =
            KeptTier { tier: Tier::Local, target: &target, key: None, retention: &retention, zone: &zone };
        let now = named.last().unwrap().0.at;
        let fates = judge(&backups, &tier, &BTreeMap::new(), &protected, now);
        let going: BTreeMap<&str, bool> = backups
            .iter()
            .zip(fates)
            .map(|(backup, fate)| (backup.archive.as_str(), fate == Some(Prune::OutsidePolicy)))
            .collect();
        let ours = stays(&named, |name| going[name]);
        assert_eq!(ours, theirs, "seed {seed}: {keep:?} in {name}, of {named:#?}");
        (goes, kept) = (goes + named.len() - ours.len(), kept + ours.len());
    }
    assert!(goes > 1_000 && kept > 1_000, "{goes} go and {kept} stay");
    println!("seeds {SEEDS:?}: {goes} go, {kept} stay, and Proxmox says the same of each");
}
