//! Guests that use most of what is short on their host.
//!
//! In: a sample of use each minute, and how many CPUs host and guests have. Out: which guest uses most of which resource, since
//! when, with the figures at that time. A guest counts when the host was short of the resource and most of it was this guest's,
//! both as means over the window; it stops to count below lower values, so that a mean between them changes nothing. The figures
//! stay as they were until a share moves by a tenth, so that a report does not change each minute. Deliberately absent: words,
//! and the grace before an operator hears of it.
//!
//! The host is short of CPU time when its CPUs are busy or tasks wait for one, of memory and disks when tasks wait for them. A
//! kernel without pressure says nothing of the last two. Nothing says how much a network carries: there the amount decides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample};
use jiff::{SignedDuration, Timestamp};

use super::usage::UsageReading;

/// So many samples are one judgement.
pub const WINDOW: usize = 5;

/// Samples that are further apart are no window.
const GAP_MAX: SignedDuration = SignedDuration::from_secs(180);

const MIB: u64 = 1 << 20;

/// What guests of one host share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedResource {
    Cpu,
    Memory,
    Disk,
    Network,
}

impl SharedResource {
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Disk, Self::Network];
}

/// How many CPUs there are, in hundredths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuScale {
    host: Option<u64>,
    guests: BTreeMap<GuestUid, u64>,
}

impl CpuScale {
    /// Of one reading.
    #[must_use]
    pub fn of(reading: &UsageReading) -> Self {
        let guests = reading.guests.iter().filter_map(|(uid, guest)| Some((*uid, guest.cpus_centi?)));
        Self { host: reading.cpus_centi, guests: guests.collect() }
    }
}

/// A guest that uses most of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoisyGuest {
    /// The first sample of the window in which it did.
    pub since: Timestamp,
    /// Its part of what is used, in thousandths; of memory, its part of all of the host's.
    pub share_permille: u64,
    /// What it used: thousandths of the host's CPUs, bytes of memory, or bytes in a second.
    pub amount: u64,
    /// How busy the host's CPUs were, in thousandths.
    pub host_cpu_permille: Option<u64>,
    /// In which part of the time tasks waited for the resource, in thousandths.
    pub pressure_permille: Option<u64>,
    /// How many other guests ran.
    pub others: usize,
}

/// What is known of neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    noisy: BTreeMap<(GuestUid, SharedResource), NoisyGuest>,
    /// Guests with a whole window.
    judged: BTreeSet<GuestUid>,
}

impl Neighbours {
    /// Guests that use most of a resource.
    pub fn noisy(&self) -> impl Iterator<Item = (GuestUid, SharedResource, &NoisyGuest)> {
        self.noisy.iter().map(|((uid, resource), guest)| (*uid, *resource, guest))
    }

    /// Whether a whole window is known of it.
    #[must_use]
    pub fn has_judged(&self, guest: GuestUid) -> bool {
        self.judged.contains(&guest)
    }
}

/// What one guest used in one minute.
type Amounts = BTreeMap<SharedResource, u64>;

#[derive(Clone, Debug)]
struct Minute {
    at: Timestamp,
    host: Readings,
    guests: BTreeMap<GuestUid, Amounts>,
}

/// The last minutes, with what was judged of them.
#[derive(Clone, Debug, Default)]
pub struct NeighbourWindow {
    minutes: VecDeque<Minute>,
    known: Neighbours,
}

/// Where a mean lies between the value at which something begins and the one at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Reached,
    /// Nothing changes; also where it is not known.
    Between,
    Left,
}

impl Level {
    const fn of(value: u64, (reached, left): (u64, u64)) -> Self {
        if value >= reached {
            Self::Reached
        } else if value < left {
            Self::Left
        } else {
            Self::Between
        }
    }

    const fn both(self, other: Self) -> Self {
        match (self, other) {
            (Self::Left, _) | (_, Self::Left) => Self::Left,
            (Self::Reached, Self::Reached) => Self::Reached,
            (Self::Between, _) | (_, Self::Between) => Self::Between,
        }
    }
}

/// Values at which something is reached and left.
type Pair = (u64, u64);

/// The host's CPUs are busy.
const CPU_BUSY: Pair = (850, 750);
/// The share of what is used that is most of it.
const SHARE: Pair = (500, 400);
/// Of a network, nearly all of it: nobody knows what is short.
const NETWORK_SHARE: Pair = (800, 700);
/// Bytes in a second of a network that are much: nine tenths of a gigabit.
const NETWORK_AMOUNT: Pair = (100 * MIB, 80 * MIB);
/// Below this a guest's disk traffic slows down nobody.
const DISK_AMOUNT: Pair = (MIB, MIB / 2);

/// Tasks wait for it, in thousandths of the time.
const fn pressure(resource: SharedResource) -> Option<(UsageMetric, Pair)> {
    match resource {
        SharedResource::Cpu => Some((UsageMetric::CpuPressure, (250, 150))),
        SharedResource::Memory => Some((UsageMetric::MemoryPressure, (100, 50))),
        SharedResource::Disk => Some((UsageMetric::IoPressure, (300, 200))),
        SharedResource::Network => None,
    }
}

impl NeighbourWindow {
    /// Takes in a sample.
    pub fn note(&mut self, sample: &UsageSample, scale: &CpuScale) {
        let apart = self.minutes.back().map(|last| sample.at.duration_since(last.at));
        if apart.is_some_and(|apart| apart > GAP_MAX || apart.is_negative()) {
            self.minutes.clear();
        }
        if self.minutes.len() >= WINDOW {
            self.minutes.pop_front();
        }
        let amounts = |(uid, readings): (&GuestUid, &Readings)| (*uid, amounts(*uid, readings, scale));
        let guests = sample.guests.iter().map(amounts).collect();
        self.minutes.push_back(Minute { at: sample.at, host: sample.host.clone(), guests });
        self.judge();
    }

    /// What is known now.
    #[must_use]
    pub fn known(&self) -> &Neighbours {
        &self.known
    }

    fn judge(&mut self) {
        let Some(newest) = self.minutes.back() else { return };
        let there: BTreeSet<GuestUid> = newest.guests.keys().copied().collect();
        let whole = self.minutes.len() == WINDOW;
        let in_all = |uid: &GuestUid| self.minutes.iter().all(|minute| minute.guests.contains_key(uid));
        let judged: BTreeSet<GuestUid> = there.iter().filter(|uid| whole && in_all(uid)).copied().collect();
        // One that stopped, or whose figures could not be read, is judged anew.
        let mut noisy = self.known.noisy.clone();
        noisy.retain(|(uid, _), _| there.contains(uid));
        for resource in SharedResource::ALL {
            for uid in &judged {
                self.judge_one((*uid, resource), there.len(), &mut noisy);
            }
        }
        self.known = Neighbours { noisy, judged };
    }

    fn judge_one(
        &self,
        (uid, resource): (GuestUid, SharedResource),
        running: usize,
        noisy: &mut BTreeMap<(GuestUid, SharedResource), NoisyGuest>,
    ) {
        let used = |minute: &Minute| minute.guests.get(&uid)?.get(&resource).copied();
        let (Some(amount), Some(begin)) = (self.mean(used), self.minutes.front()) else { return };
        let Some(all) = self.mean(|minute| minute.all(resource)) else { return };
        let share = permille(amount, all);
        let others = running.saturating_sub(1);
        let most = match resource {
            SharedResource::Cpu | SharedResource::Memory => Level::of(share, SHARE),
            SharedResource::Disk => Level::of(share, SHARE).both(Level::of(amount, DISK_AMOUNT)),
            SharedResource::Network => {
                Level::of(share, NETWORK_SHARE).both(Level::of(amount, NETWORK_AMOUNT))
            }
        };
        let alone = if others == 0 { Level::Left } else { Level::Reached };
        let found = NoisyGuest {
            since: begin.at,
            share_permille: share,
            amount,
            host_cpu_permille: self.mean_of(UsageMetric::Cpu),
            pressure_permille: pressure(resource).and_then(|(metric, _)| self.mean_of(metric)),
            others,
        };
        let key = (uid, resource);
        match self.shortage(resource).both(most).both(alone) {
            Level::Left => {
                noisy.remove(&key);
            }
            Level::Between => {}
            Level::Reached => match noisy.get_mut(&key) {
                None => {
                    noisy.insert(key, found);
                }
                Some(before) if before.share_permille.abs_diff(share) >= 100 => {
                    *before = NoisyGuest { since: before.since, ..found };
                }
                Some(_) => {}
            },
        }
    }

    /// Whether the host is short of it.
    fn shortage(&self, resource: SharedResource) -> Level {
        let Some((metric, pair)) = pressure(resource) else { return Level::Reached };
        let waits = self.mean_of(metric).map(|value| Level::of(value, pair));
        let busy = match resource {
            SharedResource::Cpu => self.mean_of(UsageMetric::Cpu).map(|value| Level::of(value, CPU_BUSY)),
            SharedResource::Memory | SharedResource::Disk | SharedResource::Network => None,
        };
        match (waits, busy) {
            (Some(Level::Reached), _) | (_, Some(Level::Reached)) => Level::Reached,
            (Some(Level::Left), None | Some(Level::Left)) | (None, Some(Level::Left)) => Level::Left,
            (None, None) | (Some(Level::Between), _) | (_, Some(Level::Between)) => Level::Between,
        }
    }

    fn mean_of(&self, metric: UsageMetric) -> Option<u64> {
        self.mean(|minute| minute.host.get(&metric).copied())
    }

    /// Over the window; none where a minute lacks it.
    fn mean(&self, of: impl Fn(&Minute) -> Option<u64>) -> Option<u64> {
        let values: Option<Vec<u64>> = self.minutes.iter().map(of).collect();
        let values = values?;
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        u64::try_from(sum.checked_div(u128::try_from(values.len()).ok()?)?).ok()
    }
}

impl Minute {
    /// What there is to share: all that was used; of memory, all of the host's.
    fn all(&self, resource: SharedResource) -> Option<u64> {
        match resource {
            SharedResource::Cpu => self.host.get(&UsageMetric::Cpu).copied(),
            SharedResource::Memory => self.host.get(&UsageMetric::MemoryTotal).copied(),
            SharedResource::Disk | SharedResource::Network => {
                let amounts = self.guests.values().filter_map(|amounts| amounts.get(&resource));
                Some(amounts.fold(0, |sum, amount| sum.saturating_add(*amount)))
            }
        }
    }
}

fn amounts(uid: GuestUid, readings: &Readings, scale: &CpuScale) -> Amounts {
    let get = |metric| readings.get(&metric).copied();
    let sum = |one, other| Some(get(one)?.saturating_add(get(other)?));
    let of_host = || {
        let own = get(UsageMetric::Cpu)?.saturating_mul(*scale.guests.get(&uid)?);
        own.checked_div(scale.host?)
    };
    let all = [
        (SharedResource::Cpu, of_host()),
        (SharedResource::Memory, get(UsageMetric::MemoryUsed)),
        (SharedResource::Disk, sum(UsageMetric::DiskRead, UsageMetric::DiskWrite)),
        (SharedResource::Network, sum(UsageMetric::NetIn, UsageMetric::NetOut)),
    ];
    all.into_iter().filter_map(|(resource, amount)| Some((resource, amount?))).collect()
}

/// More than all of it is an error of measurement.
fn permille(part: u64, all: u64) -> u64 {
    let share = u128::from(part).saturating_mul(1000).checked_div(u128::from(all)).unwrap_or(0);
    u64::try_from(share).unwrap_or(1000).min(1000)
}

#[cfg(test)]
#[path = "neighbours_tests.rs"]
mod tests;
