//! Tests of the duration of restores.

use holdfast_protocol::local::restore_test::TestVerdict::{self, BootedOnly, Failed, NotRun, Proved};
use holdfast_protocol::protection::{Posture, Took, Trend};
use jiff::SignedDuration;

use super::posture::{backed_up, posture, prove};
use super::schedule::{Life, time};
use super::*;
use crate::model::records::{TestRecord, VolumeId};
use crate::plan::restore_duration::trend;

const GIB: u64 = 1 << 30;

/// A test in one week: verdict, size, and the seconds of both parts.
fn test(week: i64, verdict: TestVerdict, bytes: Option<u64>, (restore_s, up_s): (u64, u64)) -> TestRecord {
    let at =
        time("2026-06-10T03:00:00Z").checked_sub(SignedDuration::from_hours(7 * 24 * (20 - week))).unwrap();
    TestRecord {
        operation: op(2_000 + u128::try_from(week).unwrap()),
        guest: uid(1),
        archive: VolumeId::new(format!("backup2:backup/{week}")),
        backup: op(3_000 + u128::try_from(week).unwrap()),
        taken_at: at,
        verdict,
        why: "stacks that are well by their own check: 2".to_owned(),
        began_at: at,
        at,
        bytes,
        took: Took { restore_s: Some(restore_s), up_s: Some(up_s) },
    }
}

/// Proved tests of weeks that follow on one another, by size in GiB and seconds of both parts; the last is the newest.
fn weeks(all: &[(u64, u64, u64)]) -> Vec<TestRecord> {
    (1..)
        .zip(all)
        .map(|(week, (gib, restore_s, up_s))| test(week, Proved, Some(gib * GIB), (*restore_s, *up_s)))
        .collect()
}

fn reported(all: &[(u64, u64, u64)]) -> Trend {
    trend(weeks(all).iter())
}

#[test]
fn the_newest_is_held_against_the_median_of_those_before_it() {
    let steady = Trend::Steady { took_s: 500, usual_s: 440 };
    let cases = [
        (&[(4, 400, 40), (4, 400, 40), (4, 400, 40), (4, 460, 40)][..], steady),
        // An outlier among them moves nothing, and that they grew slower one by one does not hide it.
        (&[(4, 400, 40), (4, 9_000, 40), (4, 400, 40), (4, 460, 40)], steady),
        (
            &[(4, 400, 40), (4, 420, 40), (4, 500, 40), (4, 900, 40)],
            Trend::Slower { took_s: 940, usual_s: 460 },
        ),
        // The start is a part of the return.
        (
            &[(4, 400, 40), (4, 400, 40), (4, 400, 40), (4, 400, 600)],
            Trend::Slower { took_s: 1_000, usual_s: 440 },
        ),
        (
            &[(4, 900, 60), (4, 900, 60), (4, 900, 60), (4, 400, 40)],
            Trend::Faster { took_s: 440, usual_s: 960 },
        ),
        // Of an even number the middle of the two in the middle.
        (
            &[(4, 100, 0), (4, 300, 0), (4, 500, 0), (4, 900, 0), (4, 400, 0)],
            Trend::Steady { took_s: 400, usual_s: 400 },
        ),
    ];
    for (tests, expected) in cases {
        assert_eq!(reported(tests), expected, "{tests:?}");
    }
}

#[test]
fn a_change_is_marked_by_half_as_much_again_and_a_minute() {
    let copy_of = |took| reported(&[(4, 400, 0), (4, 400, 0), (4, 400, 0), (4, took, 0)]).short();
    assert_eq!(copy_of(600), "steady");
    assert_eq!(copy_of(601), "slower by 50 %");
    assert_eq!(copy_of(267), "steady");
    assert_eq!(copy_of(266), "faster by 33 %");
    let small = |took| reported(&[(4, 20, 0), (4, 20, 0), (4, 20, 0), (4, took, 0)]).short();
    assert_eq!(small(80), "steady", "four times as long, and a minute");
    assert_eq!(small(81), "slower by 305 %");
}

/// What a larger backup explains is no trend, and neither is it when only a part of the work is per byte.
#[test]
fn growth_of_the_backup_is_no_trend() {
    let grown = |restore_s| reported(&[(4, 400, 40), (4, 400, 40), (4, 400, 40), (16, restore_s, 40)]);
    assert_eq!(grown(1_600), Trend::Steady { took_s: 1_640, usual_s: 440 });
    assert_eq!(grown(400), Trend::Steady { took_s: 440, usual_s: 440 });
    assert_eq!(grown(2_500), Trend::Slower { took_s: 2_540, usual_s: 1_640 });
    assert_eq!(grown(200), Trend::Faster { took_s: 240, usual_s: 440 });
    // A size that is not known stretches nothing.
    let mut unknown = weeks(&[(4, 400, 40), (4, 400, 40), (4, 400, 40), (16, 1_600, 40)]);
    for bytes in [None, Some(0)] {
        unknown[1].bytes = bytes;
        assert_eq!(trend(unknown.iter()), Trend::Slower { took_s: 1_640, usual_s: 440 });
    }
    unknown[1].bytes = Some(1);
    unknown[3].bytes = Some(u64::MAX);
    assert_eq!(trend(unknown.iter()).short(), "steady", "a size that nobody believes overflows nothing");
}

#[test]
fn too_few_are_said_to_be_too_few() {
    assert_eq!(trend([].into_iter()), Trend::TooFew { tests: 0, needed: 4 });
    assert_eq!(reported(&[(4, 1, 1), (4, 1, 1), (4, 900, 1)]), Trend::TooFew { tests: 3, needed: 4 });
    // What did not come back, what was not timed, and what was asked less count for nothing.
    let mut all = weeks(&[(4, 1, 1), (4, 1, 1), (4, 900, 1)]);
    all.extend([Failed, NotRun, BootedOnly].map(|verdict| test(2, verdict, None, (5, 5))));
    let mut untimed = test(9, Proved, None, (5, 5));
    untimed.took.up_s = None;
    all.push(untimed);
    assert_eq!(trend(all.iter()), Trend::TooFew { tests: 3, needed: 4 });
}

/// Those of long ago say nothing of now.
#[test]
fn no_more_than_two_months_of_weekly_ones_are_looked_at() {
    let long = |slow: usize| {
        let seconds = std::iter::repeat_n(4_000, slow).chain(std::iter::repeat_n(400, 12 - slow));
        let all: Vec<_> = seconds.map(|restore_s| (4, restore_s, 0)).collect();
        reported(&all)
    };
    assert_eq!(long(3), Trend::Steady { took_s: 400, usual_s: 400 });
    assert_eq!(long(8).short(), "faster by 90 %", "five of the eight before it");
}

/// A guest that is protected, and whose return takes longer with each week.
fn slower() -> Life {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    life.world.records.tests = weeks(&[(4, 400, 40), (4, 400, 40), (4, 400, 40), (4, 900, 40)]);
    life
}

#[test]
fn a_return_that_takes_longer_is_reported_and_turns_nobodys_posture() {
    let mut life = slower();
    let said = posture(&life);
    assert_eq!(said.is, Posture::Protected, "{said:?}");
    let words = "a return from its local backups is slower by 113 %: back in 15 min 40 s, usually 7 min 20 s; `agentd \
                 restore-tests` shows the tests";
    assert!(said.why[1..].iter().any(|why| why == words), "{said:?}");
    let conditions = life.plan().verdicts[0].conditions.clone();

    life.world.records.tests[3].took.restore_s = Some(410);
    let steady = posture(&life);
    assert!(!steady.why.iter().any(|why| why.contains("a return from")), "{steady:?}");
    assert_eq!((steady.is, &life.plan().verdicts[0].conditions), (said.is, &conditions));
}

/// The report carries the last test of each tier and its trend, and nothing of tiers that were never tried.
#[test]
fn the_report_reports_the_last_test_and_the_trend_of_each_tier() {
    let tested = |life: &Life| life.plan().verdicts[0].protection.as_ref().unwrap().tested.clone();
    let mut life = slower();
    let reported = tested(&life);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!((reported[0].last.verdict, reported[0].trend.short().as_str()), (Proved, "slower by 113 %"));
    // The last result is the one that failed since; how long a return takes is known all the same.
    life.world.records.tests.push(TestRecord { took: Took::default(), ..test(19, Failed, None, (0, 0)) });
    let reported = tested(&life);
    assert_eq!(
        (reported[0].last.verdict, reported[0].last.took, reported[0].trend.short().as_str()),
        (Failed, Took::default(), "slower by 113 %")
    );
    life.world.records.tests.clear();
    assert_eq!(tested(&life), Vec::new());
}
