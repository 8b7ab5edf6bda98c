//! A test oracle: `systemd-analyze calendar`.

use std::process::Command;

use jiff::{SignedDuration, Timestamp};

use super::super::{Calendar, Points};
use super::zone;

const ITERATIONS: usize = 8;

const CASES: usize = 300;

/// Zones with their changes of 2026 or 2027: at midnight, by half an hour, on either half of the globe, and none.
const ZONES: [(&str, &[&str]); 7] = [
    ("UTC", &["2026-02-28T00:00:00Z"]),
    ("Europe/Berlin", &["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"]),
    ("America/New_York", &["2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"]),
    ("America/Havana", &["2026-03-08T05:00:00Z", "2026-11-01T05:00:00Z"]),
    ("Australia/Lord_Howe", &["2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"]),
    ("America/Santiago", &["2026-04-05T03:00:00Z", "2026-09-06T04:00:00Z"]),
    ("Asia/Kolkata", &["2027-12-31T00:00:00Z"]),
];

/// A small generator with a seed: the same cases on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn field(&mut self, min: u64, max: u64) -> String {
        let number = |dice: &mut Self| min + dice.roll(max - min + 1);
        match self.roll(6) {
            0 | 1 => "*".to_owned(),
            2 => {
                let (one, other) = (number(self), number(self));
                format!("{}..{}", one.min(other), one.max(other))
            }
            3 => {
                let first = min + self.roll(max - min);
                format!("{first}/{}", 1 + self.roll(max - first))
            }
            4 => format!("{},{}", number(self), number(self)),
            _ => number(self).to_string(),
        }
    }

    fn expression(&mut self) -> String {
        const DAYS: [&str; 7] = ["Mon", "tue", "Wednesday", "Thu", "Fri", "sat", "Sun"];
        let mut parts = Vec::new();
        if self.roll(3) == 0 {
            let first = usize::try_from(self.roll(7)).unwrap();
            let last = first + usize::try_from(self.roll(7 - first as u64)).unwrap();
            parts.push(if first == last {
                DAYS[first].to_owned()
            } else {
                format!("{}..{}", DAYS[first], DAYS[last])
            });
        }
        if self.roll(2) == 0 {
            parts.push(format!("*-{}-{}", self.field(1, 12), self.field(1, 31)));
        }
        // Mostly in the hours in which clocks change.
        let hours = if self.roll(3) == 0 { self.field(0, 23) } else { self.field(0, 3) };
        let second = if self.roll(4) == 0 { format!(":{:02}", self.roll(60)) } else { String::new() };
        parts.push(format!("{hours}:{}{second}", self.field(0, 59)));
        parts.join(" ")
    }
}

/// The points by systemd; none where it never comes.
#[expect(clippy::disallowed_methods, reason = "a test asks systemd's own program")]
fn theirs(expression: &str, zone: &str, from: Timestamp) -> Vec<Timestamp> {
    let base = format!("--base-time={} UTC", from.strftime("%Y-%m-%d %H:%M:%S"));
    let output = Command::new("systemd-analyze")
        .args(["calendar", &format!("--iterations={ITERATIONS}"), &base, &format!("{expression} {zone}")])
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{expression}: {}", String::from_utf8_lossy(&output.stderr));
    let point = |line: &str| {
        let line = line.trim();
        let rest = line
            .strip_prefix("Next elapse: ")
            .or_else(|| Some(line.strip_prefix("Iter. #")?.split_once(": ")?.1))?;
        let mut words = rest.split(' ').skip(1);
        Some(format!("{}T{}Z", words.next()?, words.next()?).parse::<Timestamp>().unwrap())
    };
    text.lines().filter_map(point).collect()
}

fn ours(calendar: &Calendar, name: &str, from: Timestamp) -> Vec<Timestamp> {
    let zone = zone(name);
    let next = |after: &Timestamp| calendar.next(&zone, *after);
    std::iter::successors(next(&from), next).take(ITERATIONS).collect()
}

#[expect(clippy::disallowed_methods, reason = "a test asks whether systemd's own program is there")]
fn is_there() -> bool {
    let there =
        Command::new("systemd-analyze").arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(there || std::env::var_os("HOLDFAST_CI").is_none(), "systemd must be installed in CI");
    there
}

#[test]
fn systemd_says_the_same() {
    if !is_there() {
        return;
    }
    let mut dice = Dice(20_261_121);
    let (mut compared, mut never) = (0, 0);
    while compared < CASES {
        let (name, changes) = ZONES[usize::try_from(dice.roll(ZONES.len() as u64)).unwrap()];
        let change: Timestamp =
            changes[usize::try_from(dice.roll(changes.len() as u64)).unwrap()].parse().unwrap();
        let back = i64::try_from(dice.roll(3 * 24 * 60)).unwrap();
        let from = change - SignedDuration::from_mins(back + 120);
        let expression = dice.expression();
        let theirs = theirs(&expression, name, from);
        match expression.parse::<Calendar>() {
            Ok(calendar) => {
                let ours = ours(&calendar, name, from);
                assert_eq!(ours, theirs, "{expression} in {name} from {from}");
                compared += 1;
            }
            Err(why) => {
                assert!(theirs.is_empty(), "{expression}: {why}, and systemd says {theirs:?}");
                never += 1;
            }
        }
    }
    assert!(never < CASES / 4, "{never} expressions that never come");
}

/// What `holds` proves is so: every point of the narrower schedule is one of the wider.
#[test]
fn a_schedule_that_holds_another_has_all_its_points() {
    let mut dice = Dice(7);
    let (mut held, mut not) = (0, 0);
    for _ in 0..4_000 {
        let (Ok(one), Ok(other)) =
            (dice.expression().parse::<Calendar>(), dice.expression().parse::<Calendar>())
        else {
            continue;
        };
        if !Points::holds(one.points(), other.points()) {
            not += 1;
            continue;
        }
        held += 1;
        let from: Timestamp = "2026-03-27T00:00:00Z".parse().unwrap();
        for point in ours(&other, "Europe/Berlin", from) {
            let before = point - SignedDuration::from_secs(1);
            assert_eq!(one.next(&zone("Europe/Berlin"), before), Some(point), "{one} does not hold {other}");
        }
    }
    assert!(held > 20 && not > 1_000, "{held} {not}");
}
