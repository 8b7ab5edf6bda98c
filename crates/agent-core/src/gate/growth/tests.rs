//! Tests of the growth budget, with random series of documents.

use holdfast_protocol::id::JobId;

use super::*;
use crate::model::growth::UnderWay;

fn uid(n: u128) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(n))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn disk(gib: u64) -> Amount {
    Amount { disk_gib: gib, ..Amount::default() }
}

fn grown(guest: u128, second: i64, amount: Amount, passed: Passed) -> Grown {
    Grown { guest: uid(guest), at: at(second), amount, passed, under_way: UnderWay::No }
}

fn limits() -> GrowthLimits {
    GrowthLimits {
        disk_gib_per_day: 200,
        guest_disk_gib_per_day: 150,
        memory_mib_per_day: 4_096,
        guest_memory_mib_per_day: 2_048,
        cores_per_day: 8,
        guest_cores_per_day: 4,
        guests_per_day: 2,
        volumes_per_day: 3,
        guest_volumes_per_day: 2,
        ..GrowthLimits::default()
    }
}

fn lacks(ledger: &[Grown], guest: u128, amount: Amount) -> Vec<String> {
    let budget = Budget::new(&limits(), ledger, at(0));
    budget.lacks(uid(guest), &amount).iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_lacking_is_said_with_its_numbers() {
    let ledger = [grown(1, -10, disk(80), Passed::Budget)];
    assert_eq!(lacks(&ledger, 1, disk(70)), [""; 0]);
    assert_eq!(
        lacks(&ledger, 1, disk(71)),
        ["it asks 71 GiB of disk, and 70 of 150 a day are left for this guest"]
    );
    assert_eq!(
        lacks(&ledger, 2, disk(65_528)),
        [
            "it asks 65528 GiB of disk, and 150 of 150 a day are left for this guest",
            "it asks 65528 GiB of disk, and 120 of 200 a day are left for all guests"
        ]
    );
}

#[test]
fn each_kind_of_growth_has_its_own_budget() {
    let none = Amount::default();
    for (amount, unit, times) in [
        (Amount { memory_mib: 2_000, swap_mib: 49, ..none }, "MiB of memory and swap", 1),
        (Amount { cores: 5, ..none }, "cores", 1),
        (Amount { guests: 3, ..none }, "new guests", 1),
        (Amount { volumes: 3, ..none }, "new volumes", 1),
        (Amount { volumes: 4, ..none }, "new volumes", 2),
    ] {
        let lacks = lacks(&[], 1, amount);
        assert!(lacks.len() == times && lacks.iter().all(|lack| lack.contains(unit)), "{lacks:?}");
    }
}

#[test]
fn a_day_is_over_after_24_hours_and_a_clock_that_went_back_frees_nothing() {
    let used = |second| lacks(&[grown(1, second, disk(150), Passed::Budget)], 1, disk(1)).len();
    assert_eq!((used(-24 * 3_600), used(-24 * 3_600 + 1), used(3_600)), (0, 1, 1));
}

#[test]
fn what_was_signed_for_and_what_came_back_use_nothing_up() {
    let job = JobId::new(uuid::Uuid::nil());
    let all = [Passed::Signed(job), Passed::Recovery].map(|passed| grown(1, -1, disk(9_999), passed));
    assert_eq!(lacks(&all, 1, disk(150)), [""; 0]);
}

#[test]
fn very_small_growth_has_an_end_too() {
    let core = Amount { swap_mib: 1, ..Amount::default() };
    let ledger: Vec<Grown> = (0..1_024).map(|n| grown(n, -1, core, Passed::Budget)).collect();
    assert_eq!(
        lacks(&ledger, 5_000, core),
        ["it asks 1 changes of size, and 0 of 1024 a day are left for all guests"]
    );
}

fn sum(ledger: &[Grown], of: Option<GuestUid>, until: Timestamp) -> Amount {
    let since = until.checked_sub(DAY).unwrap();
    let within =
        |grown: &&Grown| of.is_none_or(|of| grown.guest == of) && grown.at > since && grown.at <= until;
    ledger.iter().filter(within).fold(Amount::default(), |sum, grown| sum.plus(grown.amount))
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Whatever is asked for, and when: what passed without a signature within any 24 hours is no more than the budget.
#[test]
fn no_series_of_growth_is_more_than_the_budget() {
    let (mut passed, mut held) = (0, 0);
    for seed in 1_u64..=200 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (mut now, mut ledger) = (0, Vec::new());
        for _ in 0..100 {
            now += i64::try_from(dice.below(10_000)).unwrap();
            let guest = u128::from(dice.below(4));
            let (memory_mib, guests) = (dice.below(3) * dice.below(1_500), dice.below(8) / 7);
            let amount = Amount {
                disk_gib: dice.below(2) * dice.below(180),
                memory_mib,
                swap_mib: memory_mib / 4,
                cores: dice.below(4),
                guests,
                volumes: guests,
            };
            let mut budget = Budget::new(&limits(), &ledger, at(now));
            if budget.lacks(uid(guest), &amount).is_empty() {
                budget.take(uid(guest), amount);
                ledger.push(grown(guest, now, amount, Passed::Budget));
                passed += 1;
            } else {
                held += 1;
            }
            for of in [None, Some(uid(guest))] {
                let sum = sum(&ledger, of, at(now));
                for (unit, used, host, one) in lines(&sum, &limits()) {
                    let limit = if of.is_some() { one.unwrap_or(host) } else { host };
                    assert!(used <= limit.into(), "seed {seed}: {used} {unit} of {limit}, {of:?}");
                }
            }
        }
    }
    assert!(passed > 1_000 && held > 1_000, "{passed} passed and {held} were held");
}

#[test]
fn what_was_used_and_when_it_eases_are_reported() {
    let ledger = [
        grown(1, -7_200, Amount { disk_gib: 80, cores: 2, ..Amount::default() }, Passed::Budget),
        grown(2, -3_600, Amount { memory_mib: 512, guests: 1, ..Amount::default() }, Passed::Budget),
        grown(3, -90_000, disk(50), Passed::Budget),
    ];
    let budget = Budget::new(&limits(), &ledger, at(0));
    let used = budget.used().into_iter().map(|line| (line.unit, line.used, line.limit));
    let wanted = [
        ("GiB of disk", 80, 200),
        ("MiB of memory and swap", 512, 4_096),
        ("cores", 2, 8),
        ("new guests", 1, 2),
        ("new volumes", 0, 3),
    ];
    let wanted = wanted.map(|(unit, used, limit)| (unit.to_owned(), used, limit));
    assert_eq!(used.collect::<Vec<_>>(), wanted);
    assert_eq!(budget.eases_at(), Some(at(-7_200 + 24 * 3_600)), "a day after the oldest that counts");
    assert_eq!(Budget::new(&limits(), &[], at(0)).eases_at(), None);
}
