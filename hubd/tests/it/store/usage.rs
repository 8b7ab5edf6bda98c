//! Stories of kept use.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample, UsageSpan};
use hubd::store::{Thinned, UsageQuery};
use hubd::task::upkeep::thin_usage;
use uuid::Uuid;

use super::fixture::{Fixture, at, fresh_key, host_id, named};

const GUEST: GuestUid = GuestUid::new(Uuid::from_u128(7));

fn sample(minute: i64, cpu: u64) -> UsageSample {
    let guests = BTreeMap::from([(GUEST, Readings::from([(UsageMetric::Cpu, cpu)]))]);
    UsageSample { at: at(minute * 60), host: Readings::from([(UsageMetric::Load, 150)]), guests }
}

/// Means and maxima of the guest's CPU.
async fn cpu(fixture: &Fixture, span: UsageSpan, now: i64) -> Vec<(i64, u64, u64)> {
    let query = UsageQuery { host: named("box7"), guest: Some(GUEST), span };
    let series = fixture.store.usage(query, at(now * 60)).await.unwrap().unwrap();
    let points = series.metrics.get(&UsageMetric::Cpu).cloned().unwrap_or_default();
    points.iter().map(|point| (point.at.as_second() - at(0).as_second(), point.mean, point.max)).collect()
}

/// The stories begin 800 seconds into an hour, and 200 into a step of five minutes.
pub async fn samples_are_kept_once_thinned_and_removed(fixture: Fixture) {
    let host = fixture.box7().await;
    let minutes = |from: i64, to: i64| (from..to).map(|m| sample(m, m.unsigned_abs())).collect::<Vec<_>>();
    let keep = async |samples, now: i64| {
        fixture.store.keep_usage(vec![(host, samples)], at(now * 60)).await.unwrap()
    };
    keep(minutes(1, 4), 4).await;
    keep(minutes(2, 5), 5).await;
    let raw = cpu(&fixture, UsageSpan::Hours2, 5).await;
    assert_eq!(raw.iter().map(|point| point.1).collect::<Vec<_>>(), [1, 2, 3, 4], "each once");
    assert_eq!(
        cpu(&fixture, UsageSpan::Days7, 5).await[0].1,
        1,
        "the step that holds the first minute is over"
    );
    // A whole hour later the steps and the hour before are there.
    keep(minutes(5, 130), 130).await;
    let thinned = cpu(&fixture, UsageSpan::Days7, 130).await;
    let steps: Vec<_> = thinned.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(
        thinned.len() > 7 && steps.iter().all(|step| *step == 900),
        "a quarter of an hour each: {thinned:?}"
    );
    let hours = cpu(&fixture, UsageSpan::Days400, 130).await;
    assert_eq!(hours.len(), 1, "two days a point of 12 hours: {hours:?}");
    assert_eq!(hours[0].2, 106, "the highest minute of the second hour");
    let raw = cpu(&fixture, UsageSpan::Hours2, 130).await;
    assert_eq!((raw.first().unwrap().1, raw.last().unwrap().1), (10, 129));
    // Silence for a year, and the hourly upkeep.
    fixture.store.prune(&fixture.term().await, at(370 * 86_400)).await.unwrap();
    let year = 370 * 24 * 60;
    assert_eq!(cpu(&fixture, UsageSpan::Days7, year).await, []);
    assert_eq!(cpu(&fixture, UsageSpan::Days400, year).await.len(), 1);
    fixture.store.prune(&fixture.term().await, at(410 * 86_400)).await.unwrap();
    assert_eq!(cpu(&fixture, UsageSpan::Days400, year).await, []);
}

pub async fn samples_of_a_stranger_or_a_wrong_clock_change_nothing(fixture: Fixture) {
    let host = fixture.box7().await;
    let samples = vec![(host_id(99), vec![sample(1, 1)]), (host, vec![sample(-300, 2), sample(60, 3)])];
    fixture.store.keep_usage(samples, at(60)).await.unwrap();
    assert_eq!(cpu(&fixture, UsageSpan::Hours2, 5).await, []);
    let unknown = UsageQuery { host: named("box8"), guest: None, span: UsageSpan::Hours2 };
    assert_eq!(fixture.store.usage(unknown, at(0)).await.unwrap(), None);
}

pub async fn kept_use_has_a_bound_and_the_oldest_of_all_hosts_goes_first(fixture: Fixture) {
    let (store, box7) = (&fixture.store, fixture.box7().await);
    let box8 = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    assert_eq!(store.usage_bytes().await.unwrap(), 0);
    // Ten hours of one host, and the last five of another.
    for (host, from) in [(box7, 1), (box8, 300)] {
        for begin in (from..600).step_by(60) {
            let samples = (begin..begin + 60).map(|minute| sample(minute, 1)).collect();
            store.keep_usage(vec![(host, samples)], at((begin + 60) * 60)).await.unwrap();
        }
    }
    let hours = async |name: &str| {
        let query = UsageQuery { host: named(name), guest: None, span: UsageSpan::Days400 };
        let series = store.usage(query, at(600 * 60)).await.unwrap().unwrap();
        series.metrics.values().flatten().map(|point| point.at).min()
    };
    let whole = store.usage_bytes().await.unwrap();
    let (old7, old8) = (hours("box7").await, hours("box8").await);
    assert!(whole > 0 && old7.is_some() && old8.is_some());
    assert_eq!(store.thin_usage(&fixture.term().await, whole).await.unwrap(), Thinned::Nothing);
    assert_eq!(store.thin_usage(&fixture.term().await, whole - 1).await.unwrap(), Thinned::Hour);
    let less = store.usage_bytes().await.unwrap();
    assert!(less < whole, "{less} of {whole}");
    assert_eq!(hours("box8").await, old8, "its hours are younger");
    // A replaced row counts once: the same samples again change nothing.
    store.keep_usage(vec![(box8, vec![sample(599, 1)])], at(600 * 60)).await.unwrap();
    assert_eq!(store.usage_bytes().await.unwrap(), less);
    let minutes = cpu(&fixture, UsageSpan::Hours2, 600).await;
    thin_usage(store, &fixture.term().await, 1).await.unwrap();
    assert_eq!(cpu(&fixture, UsageSpan::Hours2, 600).await, minutes, "the last two hours stay");
    assert_eq!((hours("box7").await, hours("box8").await), (None, None));
    assert_eq!(cpu(&fixture, UsageSpan::Days7, 600).await, []);
    let left = store.usage_bytes().await.unwrap();
    assert!(left > 0 && left < less, "{left}");
    // Everything is past its time, and the count ends at nothing.
    store.prune(&fixture.term().await, at(500 * 86_400)).await.unwrap();
    assert_eq!(store.usage_bytes().await.unwrap(), 0);
}
