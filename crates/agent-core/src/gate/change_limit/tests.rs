//! Tests of the change limit, by examples and random days.

use super::*;

const STOP: OperationKind = OperationKind::Stop;

fn uid(n: u32) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(u128::from(n)))
}

fn hour(n: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + n * 3_600).unwrap()
}

fn running(count: u32) -> BTreeSet<GuestUid> {
    (1..=count).map(uid).collect()
}

fn touched(n: u32, at: i64) -> Touched {
    Touched { guest: uid(n), at: hour(at), by: PassedBy::Brake }
}

/// How many of the guests from `first` on may be touched.
fn passes(brake: &mut Brake, first: u32) -> usize {
    (first..first + 200).filter(|n| brake.pull(uid(*n), STOP) == Pull::Go).count()
}

#[test]
fn the_rule_by_examples() {
    let rule = BrakeRule::usual();
    for (guests, limit) in [(0, 2), (1, 2), (3, 2), (10, 2), (14, 2), (15, 3), (100, 20), (10_000, 2_000)] {
        assert_eq!(rule.limit(guests), limit, "{guests} guests");
        let mut brake = Brake::new(rule, &running(u32::try_from(guests).unwrap()), &[], hour(0));
        assert_eq!(passes(&mut brake, 1), limit.min(200), "{guests} guests");
    }
}

#[test]
fn what_was_touched_counts_for_a_day_and_may_be_touched_again() {
    let rule = BrakeRule::usual();
    let before = [touched(1, 0), touched(1, 2), touched(2, 5)];
    let at = |hours: i64| Brake::new(rule, &running(10), &before, hour(hours));
    let mut brake = at(6);
    assert_eq!(
        (brake.pull(uid(3), STOP), brake.pull(uid(1), STOP), brake.touched()),
        (Pull::Held, Pull::Go, 2)
    );
    assert_eq!(at(25).pull(uid(3), STOP), Pull::Held, "the first was touched again after two hours");
    assert_eq!(at(26).pull(uid(3), STOP), Pull::Go);
    assert_eq!(at(-100).pull(uid(3), STOP), Pull::Held, "a clock that went back frees nobody");
}

/// Guests that stand still by now do not make the share of the others smaller.
#[test]
fn the_share_is_of_those_that_ran() {
    let still_run: BTreeSet<GuestUid> = (6..=25).map(uid).collect();
    let before: Vec<Touched> = (1..=5).map(|n| touched(n, 0)).collect();
    assert_eq!(Brake::new(BrakeRule::usual(), &still_run, &before, hour(1)).limit(), 5);
}

fn document(generation: u64, content: &str) -> Numbered {
    Numbered { generation: Generation::new(generation), content: ContentHash::of(content.as_bytes()) }
}

#[test]
fn a_release_is_for_its_guests_its_operations_and_its_document() {
    let changes = [(uid(3), STOP), (uid(4), OperationKind::Reconfigure)].into();
    let release = Release { document: document(7, "seven"), changes };
    let brake = |shown: Option<Numbered>| {
        let before = [touched(1, 0), touched(2, 0)];
        let brake = Brake::new(BrakeRule::usual(), &running(9), &before, hour(1));
        brake.with(Some(&release), shown)
    };
    let right = || brake(Some(document(7, "seven")));
    assert_eq!([3, 4, 5].map(|n| right().pull(uid(n), STOP)), [Pull::Go, Pull::Held, Pull::Held]);
    assert_eq!(right().pull(uid(4), OperationKind::Reconfigure), Pull::Go);
    for other in [Some(document(8, "seven")), Some(document(7, "another")), None] {
        assert_eq!(brake(other).pull(uid(3), STOP), Pull::Held, "{other:?}");
    }
    // Once in a plan, and for nothing else that is done to the same guest.
    let mut brake = right();
    assert_eq!([STOP, STOP].map(|kind| brake.pull(uid(3), kind)), [Pull::Go, Pull::Held]);
    assert_eq!(brake.pull(uid(3), OperationKind::Reconfigure), Pull::Held);
}

/// A guest that a signature let pass counts, and is no freer than any other afterwards.
#[test]
fn what_a_release_let_pass_lets_nothing_else_pass() {
    let by_release = |n: u32| Touched { by: PassedBy::Release, ..touched(n, 0) };
    let mut brake =
        Brake::new(BrakeRule::usual(), &running(9), &[touched(1, 0), touched(2, 0), by_release(3)], hour(1));
    assert_eq!(brake.touched(), 3);
    assert_eq!(brake.pull(uid(3), OperationKind::Reconfigure), Pull::Held, "it was signed for to be stopped");
    assert_eq!(brake.pull(uid(1), OperationKind::Reconfigure), Pull::Go, "it was within the limit");
}

/// A small generator, so that a failure names its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// However a stolen hub cuts its requests into documents, and whenever it sends them, in no window are more guests
/// touched than the rule allows of all there are; and a request below the limit is carried out.
#[test]
fn no_one_drips_a_bulk_change_through() {
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        let guests = 1 + dice.below(60);
        let rule = BrakeRule {
            at_least: dice.below(4),
            share_percent: dice.below(101),
            window_h: 1 + dice.below(48),
        };
        let (mut journal, mut stands, mut now): (Vec<Touched>, BTreeSet<GuestUid>, i64) =
            (vec![], [].into(), 0);
        for _document in 0..60 {
            now += i64::from(dice.below(6));
            let up: BTreeSet<GuestUid> = running(guests).difference(&stands).copied().collect();
            // The agent forgets everything but its journal: each plan begins anew.
            let mut brake = Brake::new(rule, &up, &journal, hour(now));
            let room = brake.limit() > brake.touched();
            for _goal in 0..=dice.below(5) {
                let guest = uid(1 + dice.below(guests));
                let (fresh, first) = (!journal.iter().any(|t| t.guest == guest), brake.touched());
                match brake.pull(guest, STOP) {
                    Pull::Go => {
                        journal.push(Touched { guest, at: hour(now), by: PassedBy::Brake });
                        if dice.below(2) == 0 {
                            stands.insert(guest)
                        } else {
                            stands.remove(&guest)
                        };
                    }
                    Pull::Held => assert!(first >= brake.limit(), "seed {seed}: held without need"),
                }
                assert!(
                    !(fresh && room && first == 0 && brake.touched() == 0),
                    "seed {seed}: nothing goes on"
                );
            }
            let since = hour(now - i64::from(rule.window_h));
            let within: BTreeSet<GuestUid> =
                journal.iter().filter(|t| t.at > since).map(|t| t.guest).collect();
            assert!(within.len() <= rule.limit(guests as usize), "seed {seed}: {} of {guests}", within.len());
        }
    }
}

#[test]
fn what_an_operator_would_sign() {
    let change = |n: u32, operation| BulkChange {
        guest: uid(n),
        name: format!("web-{n}").parse().unwrap(),
        operation,
    };
    let held = BulkHeld {
        generation: Generation::new(9),
        content: Some(ContentHash::of(b"document 9")),
        changes: vec![change(3, OperationKind::Stop), change(4, OperationKind::Reconfigure)],
        touched: 2,
        limit: 2,
        window_h: 24,
    };
    let report = held.report();
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}\n{}",
        report.effect,
        report.reason,
        report.payload,
        held.reason(OperationKind::Stop)
    ));
}
