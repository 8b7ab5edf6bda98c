//! Tests of retention, on known and random backups.

use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::protection::calendar::Calendar;

fn zone(name: &str) -> Zone {
    Zone::try_from(name.to_owned()).unwrap()
}

fn keep(value: serde_json::Value) -> Keep {
    serde_json::from_value(value).unwrap()
}

fn taken(at: Timestamp) -> DatedBackup {
    DatedBackup { at, proof: Proof::None }
}

/// So many backups by a schedule, oldest first.
fn row(calendar: &str, from: &str, count: usize) -> Vec<DatedBackup> {
    let calendar: Calendar = calendar.parse().unwrap();
    let utc = zone("UTC");
    let next = |after: &Timestamp| calendar.next(&utc, *after);
    std::iter::successors(next(&from.parse().unwrap()), next).take(count).map(taken).collect()
}

fn kept(backups: &[DatedBackup], keep: &Keep) -> Vec<String> {
    let fates = prune(backups, &Retention::Keep(*keep), &zone("UTC"));
    let pairs = backups.iter().zip(fates).rev();
    pairs
        .filter_map(|(taken, fate)| match fate {
            Fate::Kept(rule) => Some(format!("{} {rule}", taken.at.strftime("%Y-%m-%d %H:%M"))),
            Fate::Goes => None,
        })
        .collect()
}

/// The example of Proxmox's own manual: daily backups, and what last, daily, weekly and monthly leave of them.
#[test]
fn rules_choose_one_after_another() {
    let daily = row("02:00", "2026-01-01T00:00:00Z", 100);
    assert_eq!(
        kept(&daily, &keep(json!({ "last": 2, "daily": 2, "weekly": 2, "monthly": 2 }))),
        [
            "2026-04-10 02:00 last",
            "2026-04-09 02:00 last",
            "2026-04-08 02:00 daily",
            "2026-04-07 02:00 daily",
            "2026-04-05 02:00 weekly",
            "2026-03-29 02:00 weekly",
            "2026-02-28 02:00 monthly",
            "2026-01-31 02:00 monthly",
        ]
    );
    let hourly = row("*:00,30", "2026-03-01T00:00:00Z", 96);
    assert_eq!(
        kept(&hourly, &keep(json!({ "hourly": 2, "daily": 2, "yearly": 1 }))),
        ["2026-03-03 00:00 hourly", "2026-03-02 23:30 hourly", "2026-03-01 23:30 daily",],
        "the days of the two hours are covered, and so is the year"
    );
    assert_eq!(kept(&daily, &keep(json!({ "yearly": 5 }))), ["2026-04-10 02:00 yearly"]);
    assert_eq!(kept(&[], &keep(json!({ "last": 5 }))), Vec::<String>::new());
    let all = prune(&daily, &Retention::KeepAll, &zone("UTC"));
    assert!(all.iter().all(|fate| *fate == Fate::Kept("all")));
}

#[test]
fn the_newest_proved_one_never_goes() {
    let mut daily = row("02:00", "2026-01-01T00:00:00Z", 30);
    daily[3].proof = Proof::Proved;
    daily[7].proof = Proof::Proved;
    let fates = prune(&daily, &Retention::Keep(keep(json!({ "last": 1 }))), &zone("UTC"));
    assert_eq!(
        (fates[29], fates[7], fates[3]),
        (Fate::Kept("last"), Fate::Kept("newest proved"), Fate::Goes)
    );
    assert_eq!(fates.iter().filter(|fate| **fate != Fate::Goes).count(), 2);
}

#[test]
fn days_are_those_of_the_zone() {
    // Half an hour before and after midnight in Berlin, both on the 1st in UTC.
    let backups = ["2026-06-01T21:30:00Z", "2026-06-01T22:30:00Z"].map(|at| taken(at.parse().unwrap()));
    let two = Retention::Keep(keep(json!({ "daily": 2 })));
    let count = |name: &str| {
        prune(&backups, &two, &zone(name)).iter().filter(|fate| **fate == Fate::Kept("daily")).count()
    };
    assert_eq!((count("UTC"), count("Europe/Berlin")), (1, 2));
}

/// A small generator with a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn keep(&mut self) -> Keep {
        let mut rules = serde_json::Map::new();
        for rule in ["last", "hourly", "daily", "weekly", "monthly", "yearly"] {
            if self.roll(2) == 0 {
                rules.insert(rule.to_owned(), json!(1 + self.roll(6)));
            }
        }
        rules.entry("last").or_insert(json!(1));
        keep(rules.into())
    }

    /// Backups of some years, in bursts and with holes.
    fn backups(&mut self) -> Vec<DatedBackup> {
        let mut at: Timestamp = "2023-12-20T00:00:00Z".parse().unwrap();
        let count = 1 + self.roll(120);
        let longest = [120, 3_000, 20_000, 90_000][usize::try_from(self.roll(4)).unwrap()];
        let mut next = || {
            at += SignedDuration::from_mins(i64::try_from(1 + self.roll(longest)).unwrap());
            taken(at)
        };
        (0..count).map(|_| next()).collect()
    }
}

/// A retention with a higher number in some rule keeps a backup wherever the lesser one kept one: of the same period of
/// the rule that kept it, or of the same ISO week, since weeks alone do not fit within months and years.
#[test]
fn no_more_rule_uncovers_anything() {
    let (mut dice, utc) = (Dice(7), zone("UTC"));
    let (mut compared, mut by_week) = (0_u32, 0_u32);
    for _ in 0..4_000 {
        let (backups, one, other) = (dice.backups(), dice.keep(), dice.keep());
        let both = one.join(&other);
        let [lesser, greater] = [one, both].map(|keep| prune(&backups, &Retention::Keep(keep), &utc));
        let local = |taken: &DatedBackup, place| Candidate {
            place,
            local: utc.time_zone().to_datetime(taken.at),
            fate: None,
        };
        let candidates: Vec<Candidate> =
            backups.iter().enumerate().map(|(n, taken)| local(taken, n)).collect();
        let stays = |rule: &str, wanted: Period| {
            let pairs = candidates.iter().zip(&greater);
            pairs.filter(|(_, fate)| **fate != Fate::Goes).any(|(other, _)| period(rule, other) == wanted)
        };
        for (candidate, fate) in candidates.iter().zip(&lesser) {
            let Fate::Kept(rule) = fate else { continue };
            compared += 1;
            if !stays(rule, period(rule, candidate)) {
                by_week += 1;
                assert!(
                    stays("weekly", period("weekly", candidate)),
                    "{} by {rule} under {one:?}, not under {both:?}",
                    candidate.local
                );
            }
        }
    }
    assert!(compared > 20_000 && by_week < compared / 1_000, "{by_week} of {compared}");
}
