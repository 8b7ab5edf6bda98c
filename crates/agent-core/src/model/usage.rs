//! Samples of use, made from readings.
//!
//! In: what each observation says of the host and its guests. Out: one sample a minute: means of what was read, and rates of
//! what is counted. A counter that fell was begun anew, so its rate is unknown. Deliberately absent: reading, and sending.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::usage::{
    Readings, SAMPLE_EVERY_S, SAMPLE_GUESTS_MAX, SAMPLES_PER_CHECKIN, UsageMetric, UsageSample,
};
use jiff::Timestamp;

/// How long samples are kept for a hub that is away: as long as the hub keeps them by the minute.
const KEPT: usize = 120;

/// The time of one sample.
const EVERY: Duration = Duration::from_secs(SAMPLE_EVERY_S as u64);

/// What one observation says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageReading {
    /// When, by the monotonic clock.
    pub at: Duration,
    pub host: Readings,
    /// The host's CPUs, in hundredths.
    pub cpus_centi: Option<u64>,
    /// Guests that run.
    pub guests: BTreeMap<GuestUid, GuestReading>,
}

/// What one observation says of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestReading {
    /// Where its processes are counted.
    pub vmid: Option<Vmid>,
    pub levels: Readings,
    /// The CPUs that it may use, in hundredths.
    pub cpus_centi: Option<u64>,
    /// Bytes since the guest's start, by the metric of their rate.
    pub counted: Readings,
}

/// What is read once for a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinuteReading {
    pub host: Readings,
    pub guests: BTreeMap<GuestUid, Readings>,
}

/// The sum of what was read of one subject.
#[derive(Debug, Default)]
struct Sums(BTreeMap<UsageMetric, (u128, u32)>);

impl Sums {
    fn add(&mut self, levels: &Readings) {
        for (metric, value) in levels {
            let (sum, count) = self.0.entry(*metric).or_default();
            (*sum, *count) = (sum.saturating_add(u128::from(*value)), count.saturating_add(1));
        }
    }

    fn means(&self) -> Readings {
        let mean = |sum: u128, count: u32| u64::try_from(sum.checked_div(u128::from(count))?).ok();
        self.0.iter().filter_map(|(metric, (sum, count))| Some((*metric, mean(*sum, *count)?))).collect()
    }
}

/// Counters of a guest, and when they were read.
#[derive(Clone, Debug)]
struct Counted {
    at: Duration,
    bytes: Readings,
}

impl Counted {
    /// Bytes in a second since an earlier reading.
    fn rates_since(&self, before: &Self) -> Readings {
        let Some(span_ms) = self.at.checked_sub(before.at).map(|span| span.as_millis()).filter(|ms| *ms > 0)
        else {
            return Readings::new();
        };
        let rate = |metric: &UsageMetric, now: u64| {
            let more = now.checked_sub(*before.bytes.get(metric)?)?;
            u64::try_from(u128::from(more).saturating_mul(1000).checked_div(span_ms)?).ok()
        };
        self.bytes.iter().filter_map(|(metric, now)| Some((*metric, rate(metric, *now)?))).collect()
    }
}

/// What is read of one guest within the minute.
#[derive(Debug)]
struct GuestMeter {
    vmid: Option<Vmid>,
    sums: Sums,
    /// At the end of the minute before.
    begin: Counted,
    last: Counted,
}

impl GuestMeter {
    fn begin(begin: Counted) -> Self {
        Self { vmid: None, sums: Sums::default(), last: begin.clone(), begin }
    }
}

/// Gathers readings until a minute is over.
#[derive(Debug)]
pub struct UsageMeter {
    every: Duration,
    begun: Option<Duration>,
    host: Sums,
    guests: BTreeMap<GuestUid, GuestMeter>,
}

impl Default for UsageMeter {
    fn default() -> Self {
        Self::every(EVERY)
    }
}

impl UsageMeter {
    /// One with other minutes, for tests that wait for real ones.
    #[must_use]
    pub fn every(every: Duration) -> Self {
        Self { every, begun: None, host: Sums::default(), guests: BTreeMap::new() }
    }

    /// Takes in a reading. The first one begins the first minute.
    pub fn note(&mut self, reading: UsageReading) {
        self.begun.get_or_insert(reading.at);
        self.host.add(&reading.host);
        for (uid, guest) in reading.guests.into_iter().take(SAMPLE_GUESTS_MAX) {
            let last = Counted { at: reading.at, bytes: guest.counted };
            let begin = last.clone();
            let meter = self.guests.entry(uid).or_insert_with(|| GuestMeter::begin(begin));
            meter.sums.add(&guest.levels);
            (meter.vmid, meter.last) = (guest.vmid, last);
        }
    }

    /// Whether a minute is over.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.begun.is_some_and(|begun| now.saturating_sub(begun) >= self.every)
    }

    /// Guests with a reading in this minute or the one before.
    pub fn guests(&self) -> impl Iterator<Item = (GuestUid, Option<Vmid>)> {
        self.guests.iter().map(|(uid, meter)| (*uid, meter.vmid))
    }

    /// The sample of the minute, with what is read once in it; the next minute begins.
    pub fn take(&mut self, (now, at): (Duration, Timestamp), once: &MinuteReading) -> UsageSample {
        self.begun = Some(now);
        let mut host = std::mem::take(&mut self.host).means();
        host.extend(once.host.iter());
        let mut guests = BTreeMap::new();
        let mut kept = BTreeMap::new();
        for (uid, meter) in std::mem::take(&mut self.guests) {
            let mut readings = meter.sums.means();
            if readings.is_empty() {
                // It did not run in this minute.
                continue;
            }
            readings.extend(meter.last.rates_since(&meter.begin));
            readings.extend(once.guests.get(&uid).into_iter().flatten());
            guests.insert(uid, readings);
            kept.insert(uid, GuestMeter { vmid: meter.vmid, ..GuestMeter::begin(meter.last) });
        }
        self.guests = kept;
        UsageSample { at, host, guests }
    }
}

/// Samples that the hub has not acknowledged, the oldest first.
#[derive(Debug, Default)]
pub struct UsageBacklog(VecDeque<UsageSample>);

impl UsageBacklog {
    /// Adds the newest; the oldest goes when there are too many.
    pub fn push(&mut self, sample: UsageSample) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// What the next check-in carries.
    #[must_use]
    pub fn batch(&self) -> Vec<UsageSample> {
        self.0.iter().take(SAMPLES_PER_CHECKIN).cloned().collect()
    }

    /// The hub has a batch.
    pub fn acknowledge(&mut self, batch: &[UsageSample]) {
        // By each time, not by the last: a clock may have been set back between two samples.
        self.0.retain(|sample| batch.iter().all(|sent| sent.at != sample.at));
    }

    /// The newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<&UsageSample> {
        self.0.back()
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
