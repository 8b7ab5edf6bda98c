//! Quiet hours, over the night and both changes of clocks.

use alerts::quiet::{QuietHours, Window};
use alerts::{Reason, Suppression};
use holdfast_protocol::condition::{DataRisk, Severity};
use jiff::{SignedDuration, Timestamp};

use crate::kit::*;

/// The bench begins at 09:00 in Vienna.
const NIGHT: &str = "group_wait_s = 0\ndefault_route.receivers = [\"mail\"]\n[[quiet_hours]]\nname = \"night\"\nfrom = \"22:00\"\n\
                     until = \"07:00\"\nzone = \"Europe/Vienna\"\n";
const HOUR: i64 = 3_600;
const BEGIN: i64 = 13 * HOUR;
const END: i64 = 22 * HOUR;

#[test]
fn the_night_is_released_as_a_digest_of_what_still_holds() {
    let mut bench = Bench::new(NIGHT);
    bench.report(BEGIN + 60, &[broken(1), broken(2)]);
    bench.report(BEGIN + 3 * HOUR, &[broken(2)]);
    assert_eq!(bench.run_to(END - 1), []);
    let morning = bench.run_to(END);
    assert_eq!((morning.len(), morning[0].reason, morning[0].incidents.len()), (1, Reason::Digest, 1));
    let held = Suppression::QuietHours { rule: "night".to_owned().try_into().unwrap(), until: at(END) };
    assert_eq!(bench.suppressions().iter().filter(|why| ***why == held).count(), 2, "each once");
    assert!(bench.suppressions().contains(&&Suppression::NeverSent {}));
    bench.report(END + HOUR, &[]);
    bench.run_to(END + 2 * HOUR);
    assert_eq!(bench.reasons(), [Reason::Digest, Reason::AllResolved]);
}

#[test]
fn what_endangers_data_is_never_held() {
    let mut bench = Bench::new(NIGHT);
    bench.report(BEGIN + 60, &[backup_failed(1), broken(2)]);
    assert_eq!((bench.notices.len(), bench.notices[0].incidents.len()), (1, 1));
    bench.report(BEGIN + HOUR, &[broken(2)]);
    bench.run_to(END - 1);
    assert_eq!(bench.reasons(), [Reason::First, Reason::AllResolved]);
}

/// Pulse's issue 1068: recoveries leaked; 1398: so did escalations.
#[test]
fn ends_repeats_and_escalations_are_held_too() {
    let toml = NIGHT.replace(
        "default_route.receivers = [\"mail\"]",
        "default_route = { receivers = [\"mail\"], escalate = { after_s = 7200, receivers = [\"boss\"] } }",
    );
    let mut bench = Bench::new(&toml);
    bench.report(BEGIN - 60, &[broken(1), broken(2)]);
    bench.report(BEGIN + HOUR, &[broken(2)]);
    assert_eq!(bench.run_to(END - 1), []);
    let mut morning = bench.run_to(END);
    morning.sort_by(|a, b| a.receiver.cmp(&b.receiver));
    let sent: Vec<_> = morning
        .iter()
        .map(|notice| (notice.receiver.as_str(), notice.reason, notice.incidents.len()))
        .collect();
    assert_eq!(sent, [("boss", Reason::Digest, 1), ("mail", Reason::Digest, 2)]);
    assert!(morning[1].incidents[1].news.is_resolved(), "its beginning was heard before the night");
}

fn hours(zone: &str, from: &str, until: &str) -> QuietHours {
    let toml = format!("name = \"x\"\nzone = \"{zone}\"\nfrom = \"{from}\"\nuntil = \"{until}\"");
    toml::from_str(&toml).unwrap()
}

fn utc(text: &str) -> Timestamp {
    format!("{text}:00Z").parse().unwrap()
}

#[test]
fn windows_keep_their_wall_times_over_both_changes_of_clocks() {
    let table = [
        // The night of the change in spring is an hour shorter, the one in autumn an hour longer.
        ("Europe/Vienna", "22:00", "07:00", "2027-03-27T22:00", "2027-03-27T21:00", "2027-03-28T05:00"),
        ("Europe/Vienna", "22:00", "07:00", "2026-10-24T21:00", "2026-10-24T20:00", "2026-10-25T06:00"),
        // An end that is skipped is the time after the gap; one that comes twice counts the first time.
        ("Europe/Vienna", "01:00", "02:30", "2027-03-28T00:30", "2027-03-28T00:00", "2027-03-28T01:30"),
        ("Europe/Vienna", "01:00", "02:30", "2026-10-25T00:10", "2026-10-24T23:00", "2026-10-25T00:30"),
        // A gap of half an hour.
        ("Australia/Lord_Howe", "01:00", "03:00", "2026-10-03T15:00", "2026-10-03T14:30", "2026-10-03T16:00"),
        ("UTC", "00:00", "23:59", "2026-10-03T15:00", "2026-10-03T00:00", "2026-10-03T23:59"),
    ];
    for (zone, from, until, now, begins, ends) in table {
        let window = Window { from: utc(begins), until: utc(ends) };
        assert_eq!(hours(zone, from, until).window_at(utc(now)), Some(window), "{zone} {from} {now}");
    }
    let twice = hours("Europe/Vienna", "01:00", "02:30");
    assert_eq!(twice.window_at(utc("2026-10-25T01:10")), None, "02:10 for the second time");
}

/// Every quarter of an hour of three weeks around both changes.
#[test]
fn each_moment_is_in_the_window_that_was_announced() {
    for zone in ["Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo"] {
        for (from, until) in [
            ("22:00", "07:00"),
            ("02:15", "02:45"),
            ("02:30", "03:15"),
            ("23:30", "00:30"),
            ("09:00", "17:00"),
        ] {
            let hours = hours(zone, from, until);
            for first in ["2026-10-01T00:00", "2026-10-20T00:00", "2027-03-10T00:00", "2027-04-01T00:00"] {
                let (mut now, mut announced) = (utc(first), None);
                for _ in 0..21 * 96 {
                    let (open, next) = (hours.window_at(now), hours.next_window(now).unwrap());
                    if let (Some(open), Some(announced)) = (open, announced) {
                        assert_eq!(open, announced, "{zone} {from} {now}");
                    }
                    assert!(next.from > now && next.from < next.until, "{zone} {from} {now}");
                    assert!(next.from.duration_since(now) <= SignedDuration::from_hours(50));
                    assert!(open.is_none_or(|open| open.until <= next.from), "they do not overlap");
                    let soon = now + SignedDuration::from_mins(15);
                    announced =
                        if next.from <= soon { Some(next) } else { announced.filter(|_| open.is_some()) };
                    now = soon;
                }
            }
        }
    }
}

#[test]
fn days_receivers_and_severities_narrow_them() {
    let mut weekend = hours("Europe/Vienna", "22:00", "07:00");
    weekend.days = toml::from_str::<std::collections::BTreeMap<String, Vec<_>>>("d = [\"sat\", \"sun\"]")
        .unwrap()
        .remove("d")
        .unwrap();
    weekend.receivers = vec![receiver("mail")];
    weekend.except_from = Some(Severity::Critical);
    let sunday_night = utc("2027-01-18T02:00");
    let held = |to: &str, risk, severity, now| weekend.holds(&receiver(to), (risk, severity), now).is_some();
    assert!(held("mail", DataRisk::Safe, Severity::Warning, sunday_night));
    assert!(!held("mail", DataRisk::Safe, Severity::Critical, sunday_night));
    assert!(!held("mail", DataRisk::Endangered, Severity::Warning, sunday_night));
    assert!(!held("chat", DataRisk::Safe, Severity::Warning, sunday_night));
    assert!(!held("mail", DataRisk::Safe, Severity::Warning, utc("2027-01-19T02:00")), "begun on Monday");
}
