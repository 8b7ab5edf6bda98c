//! Tests of samples.

use UsageMetric::{Cpu, CpuPressure, Load, MemoryUsed, NetIn, NetOut};

use super::*;

fn uid(n: u128) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(n))
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn reading(at: u64, cpu: u64, guests: &[(u128, u64, u64)]) -> UsageReading {
    let guest = |(n, memory, net): &(u128, u64, u64)| {
        let levels = Readings::from([(MemoryUsed, *memory)]);
        (
            uid(*n),
            GuestReading {
                levels,
                counted: Readings::from([(NetIn, *net), (NetOut, 0)]),
                ..GuestReading::default()
            },
        )
    };
    let guests = guests.iter().map(guest).collect();
    UsageReading { at: seconds(at), host: Readings::from([(Cpu, cpu)]), cpus_centi: None, guests }
}

fn at(s: u64) -> (Duration, Timestamp) {
    (seconds(s), Timestamp::from_second(1_800_000_000 + i64::try_from(s).unwrap()).unwrap())
}

#[test]
fn a_minute_has_means_rates_and_what_is_read_once() {
    let mut meter = UsageMeter::default();
    assert!(!meter.is_due(seconds(500)), "nothing was read yet");
    meter.note(reading(100, 100, &[(1, 10, 1000)]));
    meter.note(reading(130, 300, &[(1, 30, 4000)]));
    assert!(!meter.is_due(seconds(159)));
    assert!(meter.is_due(seconds(160)));
    let once = MinuteReading {
        host: Readings::from([(Load, 150)]),
        guests: BTreeMap::from([(uid(1), Readings::from([(CpuPressure, 7)]))]),
    };
    let sample = meter.take(at(160), &once);
    assert_eq!(sample.host, Readings::from([(Cpu, 200), (Load, 150)]));
    let expected = Readings::from([(MemoryUsed, 20), (NetIn, 100), (NetOut, 0), (CpuPressure, 7)]);
    assert_eq!(sample.guests, BTreeMap::from([(uid(1), expected)]));
    // The rate of the next minute begins where this one ended.
    meter.note(reading(190, 0, &[(1, 30, 4600)]));
    let sample = meter.take(at(220), &MinuteReading::default());
    assert_eq!(sample.guests[&uid(1)][&NetIn], 10);
}

#[test]
fn a_counter_that_fell_has_no_rate_and_a_guest_that_stopped_no_sample() {
    let mut meter = UsageMeter::default();
    meter.note(reading(0, 0, &[(1, 1, 900), (2, 1, 0)]));
    drop(meter.take(at(60), &MinuteReading::default()));
    meter.note(reading(70, 0, &[(1, 1, 5)]));
    let sample = meter.take(at(120), &MinuteReading::default());
    assert_eq!(sample.guests.keys().copied().collect::<Vec<_>>(), [uid(1)]);
    assert!(!sample.guests[&uid(1)].contains_key(&NetIn));
    assert_eq!(meter.guests().collect::<Vec<_>>(), [(uid(1), None)], "the one that stopped is forgotten");
}

#[test]
fn the_backlog_is_bounded_and_sent_in_order() {
    let mut backlog = UsageBacklog::default();
    for minute in 0..200 {
        backlog.push(UsageSample { at: at(minute * 60).1, host: Readings::new(), guests: BTreeMap::new() });
    }
    let batch = backlog.batch();
    assert_eq!(
        batch.iter().map(|sample| sample.at).collect::<Vec<_>>(),
        [80, 81, 82, 83, 84].map(|m| at(m * 60).1)
    );
    assert_eq!(backlog.batch(), batch, "it is sent until it is acknowledged");
    backlog.acknowledge(&batch);
    assert_eq!(backlog.batch()[0].at, at(85 * 60).1);
    assert_eq!(backlog.newest().unwrap().at, at(199 * 60).1);
}

#[test]
fn samples_around_a_clock_that_was_set_back_are_sent_once() {
    let mut backlog = UsageBacklog::default();
    for minute in [10, 3, 4] {
        backlog.push(UsageSample { at: at(minute * 60).1, host: Readings::new(), guests: BTreeMap::new() });
    }
    let batch = backlog.batch();
    assert_eq!(batch.len(), 3);
    backlog.acknowledge(&batch);
    assert_eq!(backlog.batch(), [], "also the one before the clock was set back");
}
