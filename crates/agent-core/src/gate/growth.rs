//! The daily budget by which unsigned documents may let guests grow.
//!
//! What comes in: the limits of the operators' policy, and what was counted within the last 24 hours. What goes out, for one
//! operation after the other: nothing, or what is lacking, with its numbers. What operators signed for and what brings a lost
//! guest back is written down and uses nothing up. Pure. Deliberately absent: whether there is room for it (`plan/capacity`).

use std::collections::BTreeMap;
use std::fmt;

use holdfast_protocol::id::GuestUid;
use holdfast_trust::growth::GrowthLimits;
use jiff::{SignedDuration, Timestamp};

use crate::model::growth::{Amount, Grown, Passed};
use crate::model::limits;
use crate::model::view::GrowthLine;

/// For so long growth counts.
pub const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Whose budget it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grower {
    /// That of all guests of the host.
    Host,
    /// That of the one guest.
    Guest,
}

/// What is lacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Of which budget.
    pub owner: Grower,
    /// Of what, in words.
    pub unit: &'static str,
    /// So much is asked for.
    pub asked: u64,
    /// So much is left.
    pub left: u64,
    /// Of so much a day.
    pub limit: u64,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = match self.owner {
            Grower::Host => "all guests",
            Grower::Guest => "this guest",
        };
        let Self { asked, unit, left, limit, .. } = self;
        write!(f, "it asks {asked} {unit}, and {left} of {limit} a day are left for {owner}")
    }
}

/// Each kind of growth, of an amount, with its limits for the host and for one guest.
fn lines(amount: &Amount, limits: &GrowthLimits) -> [(&'static str, u64, u32, Option<u32>); 5] {
    let memory = amount.memory_mib.saturating_add(amount.swap_mib);
    [
        ("GiB of disk", amount.disk_gib, limits.disk_gib_per_day, Some(limits.guest_disk_gib_per_day)),
        ("MiB of memory and swap", memory, limits.memory_mib_per_day, Some(limits.guest_memory_mib_per_day)),
        ("cores", amount.cores, limits.cores_per_day, Some(limits.guest_cores_per_day)),
        ("new guests", amount.guests, limits.guests_per_day, None),
        ("new volumes", amount.volumes, limits.volumes_per_day, Some(limits.guest_volumes_per_day)),
    ]
}

/// What is left of the day, in one plan.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: GrowthLimits,
    host: Amount,
    guests: BTreeMap<GuestUid, Amount>,
    operations: usize,
    oldest: Option<Timestamp>,
}

impl Budget {
    /// From what was counted. Times in the future, because the clock went back, count.
    #[must_use]
    pub fn new(limits: &GrowthLimits, ledger: &[Grown], now: Timestamp) -> Self {
        let since = now.checked_sub(DAY).unwrap_or(Timestamp::MIN);
        let (host, guests) = (Amount::default(), BTreeMap::new());
        let mut budget = Self { limits: *limits, host, guests, operations: 0, oldest: None };
        for grown in ledger.iter().filter(|grown| grown.at > since && grown.passed == Passed::Budget) {
            budget.take(grown.guest, grown.amount);
            budget.oldest = Some(budget.oldest.map_or(grown.at, |oldest| oldest.min(grown.at)));
        }
        budget
    }

    /// What is lacking for this; nothing, if it may be.
    #[must_use]
    pub fn lacks(&self, guest: GuestUid, amount: &Amount) -> Vec<Lack> {
        let own = self.guests.get(&guest).copied().unwrap_or_default();
        let asked = lines(amount, &self.limits);
        let used = lines(&self.host, &self.limits).into_iter().zip(lines(&own, &self.limits));
        let mut lacks = Vec::new();
        for ((unit, asked, host, of_guest), (all, one)) in asked.into_iter().zip(used) {
            let sides = [(Grower::Guest, one.1, of_guest), (Grower::Host, all.1, Some(host))];
            for (owner, used, limit) in sides {
                let Some(limit) = limit.map(u64::from) else { continue };
                let left = limit.saturating_sub(used);
                if asked > left {
                    lacks.push(Lack { owner, unit, asked, left, limit });
                }
            }
        }
        // Each costs a row of the records, however small it is.
        if self.operations >= limits::GROWTHS_PER_DAY {
            let limit = limits::GROWTHS_PER_DAY as u64;
            lacks.push(Lack { owner: Grower::Host, unit: "changes of size", asked: 1, left: 0, limit });
        }
        lacks
    }

    pub fn take(&mut self, guest: GuestUid, amount: Amount) {
        self.host = self.host.plus(amount);
        let own = self.guests.entry(guest).or_default();
        *own = own.plus(amount);
        self.operations += 1;
    }

    /// What was used of the budget of all guests, and of which limits.
    #[must_use]
    pub fn used(&self) -> Vec<GrowthLine> {
        let line = |(unit, used, limit, _): (&str, u64, u32, _)| GrowthLine {
            unit: unit.to_owned(),
            used,
            limit: limit.into(),
        };
        lines(&self.host, &self.limits).map(line).into()
    }

    /// When the oldest growth that counts is over.
    #[must_use]
    pub fn eases_at(&self) -> Option<Timestamp> {
        self.oldest?.checked_add(DAY).ok()
    }
}

#[cfg(test)]
mod tests;
