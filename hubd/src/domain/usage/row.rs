//! A host and its guests in one step of time.
//!
//! It is stored as one compact value: a host with twenty guests takes about two kilobytes. A metric of a later version is passed
//! over when it is read.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{Readings, SAMPLE_GUESTS_MAX, UsageMetric, UsageSample};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A metric over one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub mean: u64,
    pub max: u64,
}

type Figures = BTreeMap<UsageMetric, Figure>;

/// A host and its guests in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageRow {
    pub host: Figures,
    pub guests: BTreeMap<GuestUid, Figures>,
}

/// A stored row that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("a row of kept use cannot be read")]
pub struct RowError(#[from] postcard::Error);

/// As it is stored: number of the metric, mean, and what the maximum is above it.
type StoredFigures = Vec<(u8, u64, u64)>;

#[derive(Serialize, Deserialize)]
struct StoredRow {
    host: StoredFigures,
    guests: Vec<([u8; 16], StoredFigures)>,
}

impl UsageRow {
    /// A sample as a row. Metrics that its subject cannot have are left out, and so are guests beyond the bound.
    #[must_use]
    pub fn of(sample: &UsageSample) -> Self {
        let guests = sample.guests.iter().take(SAMPLE_GUESTS_MAX);
        Self {
            host: single(&sample.host, UsageMetric::is_of_hosts),
            guests: guests
                .map(|(uid, readings)| (*uid, single(readings, UsageMetric::is_of_guests)))
                .collect(),
        }
    }

    /// Several rows as one: the mean of the means, and the highest of all. A subject or metric that is missing in some is
    /// taken from the others.
    #[must_use]
    pub fn merged<'a>(rows: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut host = Merge::default();
        let mut guests: BTreeMap<GuestUid, Merge> = BTreeMap::new();
        for row in rows {
            host.add(&row.host);
            for (uid, figures) in &row.guests {
                guests.entry(*uid).or_default().add(figures);
            }
        }
        Self {
            host: host.done(),
            guests: guests.into_iter().map(|(uid, merge)| (uid, merge.done())).collect(),
        }
    }

    /// The means as a sample.
    #[must_use]
    pub fn sample(&self, at: Timestamp) -> UsageSample {
        let means =
            |figures: &Figures| figures.iter().map(|(metric, figure)| (*metric, figure.mean)).collect();
        let guests = self.guests.iter().map(|(uid, figures)| (*uid, means(figures))).collect();
        UsageSample { at, host: means(&self.host), guests }
    }

    /// The stored form.
    ///
    /// # Errors
    /// None is known: it is written to memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RowError> {
        let guests =
            self.guests.iter().map(|(uid, figures)| (*uid.uuid().as_bytes(), stored(figures))).collect();
        Ok(postcard::to_stdvec(&StoredRow { host: stored(&self.host), guests })?)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`RowError`] when it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RowError> {
        let stored: StoredRow = postcard::from_bytes(bytes)?;
        let guest = |(uid, figures)| (GuestUid::new(Uuid::from_bytes(uid)), read(figures));
        Ok(Self { host: read(stored.host), guests: stored.guests.into_iter().map(guest).collect() })
    }
}

fn single(readings: &Readings, has: fn(UsageMetric) -> bool) -> Figures {
    let had = readings.iter().filter(|(metric, _)| has(**metric));
    had.map(|(metric, value)| (*metric, Figure { mean: *value, max: *value })).collect()
}

fn stored(figures: &Figures) -> StoredFigures {
    let above = |figure: &Figure| figure.max.saturating_sub(figure.mean);
    figures.iter().map(|(metric, figure)| (metric.spec().number, figure.mean, above(figure))).collect()
}

fn read(stored: StoredFigures) -> Figures {
    let figure = |(number, mean, above): (u8, u64, u64)| {
        Some((UsageMetric::numbered(number)?, Figure { mean, max: mean.saturating_add(above) }))
    };
    stored.into_iter().filter_map(figure).collect()
}

/// Figures of one subject that are put together.
#[derive(Default)]
struct Merge(BTreeMap<UsageMetric, (u128, u64, u64)>);

impl Merge {
    fn add(&mut self, figures: &Figures) {
        for (metric, figure) in figures {
            let (sum, count, max) = self.0.entry(*metric).or_default();
            *sum = sum.saturating_add(u128::from(figure.mean));
            (*count, *max) = (count.saturating_add(1), (*max).max(figure.max));
        }
    }

    fn done(self) -> Figures {
        let figure = |(sum, count, max): (u128, u64, u64)| {
            let mean = u64::try_from(sum.checked_div(u128::from(count))?).ok()?;
            Some(Figure { mean, max })
        };
        self.0.into_iter().filter_map(|(metric, merged)| Some((metric, figure(merged)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UsageMetric::{Cpu, Load, MemoryUsed, NetIn};

    fn row(cpu: u64, guests: &[(u128, u64)]) -> UsageRow {
        let guest = |(uid, memory): &(u128, u64)| {
            (GuestUid::new(Uuid::from_u128(*uid)), Readings::from([(MemoryUsed, *memory)]))
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        let host = Readings::from([(Cpu, cpu)]);
        UsageRow::of(&UsageSample { at, host, guests: guests.iter().map(guest).collect() })
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let merged = UsageRow::merged(&[row(10, &[(1, 5), (2, u64::MAX)]), row(31, &[(1, 8)])]);
        assert_eq!(merged.host[&Cpu], Figure { mean: 20, max: 31 });
        let guest = &merged.guests[&GuestUid::new(Uuid::from_u128(2))];
        assert_eq!(guest[&MemoryUsed], Figure { mean: u64::MAX, max: u64::MAX });
        let bytes = merged.to_bytes().unwrap();
        assert_eq!(UsageRow::from_bytes(&bytes).unwrap(), merged);
        for cut in 0..bytes.len() {
            assert!(UsageRow::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn what_a_subject_cannot_have_is_left_out() {
        let uid = GuestUid::new(Uuid::from_u128(1));
        let sample = UsageSample {
            at: jiff::Timestamp::UNIX_EPOCH,
            host: Readings::from([(Cpu, 1), (NetIn, 2)]),
            guests: BTreeMap::from([(uid, Readings::from([(Load, 1), (NetIn, 2)]))]),
        };
        let row = UsageRow::of(&sample);
        assert_eq!(row.host.keys().collect::<Vec<_>>(), [&Cpu]);
        assert_eq!(row.guests[&uid].keys().collect::<Vec<_>>(), [&NetIn]);
    }

    #[test]
    fn a_metric_of_a_later_version_is_passed_over() {
        let stored = StoredRow { host: vec![(1, 5, 0), (250, 9, 9)], guests: Vec::new() };
        let read = UsageRow::from_bytes(&postcard::to_stdvec(&stored).unwrap()).unwrap();
        assert_eq!(read.host.keys().collect::<Vec<_>>(), [&Cpu]);
    }

    #[test]
    fn twenty_guests_take_about_two_kilobytes() {
        let readings = |metrics: fn(UsageMetric) -> bool| {
            let of = UsageMetric::ALL.iter().filter(|metric| metrics(**metric));
            of.map(|metric| (*metric, 3_000_000_000)).collect::<Readings>()
        };
        let guests =
            (0..20).map(|n| (GuestUid::new(Uuid::from_u128(n)), readings(UsageMetric::is_of_guests)));
        let host = readings(UsageMetric::is_of_hosts);
        let sample = UsageSample { at: jiff::Timestamp::UNIX_EPOCH, host, guests: guests.collect() };
        let length = UsageRow::of(&sample).to_bytes().unwrap().len();
        assert!((1500..2500).contains(&length), "{length}");
    }
}
