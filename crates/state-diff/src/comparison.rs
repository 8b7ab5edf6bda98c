//! All changes between two snapshots, the worst first.

use holdfast_protocol::id::{CustomerId, GuestUid, HostId, HostName};
use holdfast_protocol::state::{StateHead, StateTail};
use serde::Serialize;

use crate::change::{Change, Direction};

/// Hosts with changes that are listed; the rest is counted.
const HOSTS_MAX: usize = 10_000;

/// Whether something is in both snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Both,
    /// In the later one alone.
    New,
    /// In the earlier one alone.
    Gone,
}

/// What changed of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuestChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<GuestUid>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    pub presence: Presence,
    pub changes: Vec<Change>,
}

/// What changed of a host and its guests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostChanges {
    pub id: HostId,
    pub host: HostName,
    pub presence: Presence,
    pub changes: Vec<Change>,
    pub guests: Vec<GuestChanges>,
}

/// One of the two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    pub head: StateHead,
    pub tail: StateTail,
}

/// How many changes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub worse: u32,
    pub better: u32,
    pub different: u32,
    /// Hosts that are as they were.
    pub hosts_unchanged: u32,
    /// Hosts with changes that are not listed, because there are too many.
    pub hosts_left_out: u32,
}

/// What changed between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub before: Side,
    pub after: Side,
    pub totals: Totals,
    pub hosts: Vec<HostChanges>,
}

impl GuestChanges {
    fn worst(&self) -> Option<Direction> {
        self.changes.iter().map(|change| change.direction).min()
    }
}

impl HostChanges {
    /// All changes, those of guests too.
    pub fn all(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().chain(self.guests.iter().flat_map(|guest| &guest.changes))
    }

    fn count(&self, direction: Direction) -> usize {
        self.all().filter(|change| change.direction == direction).count()
    }

    /// The worst first, and nothing at all where nothing changed.
    pub(crate) fn sorted(mut self) -> Option<Self> {
        self.changes.sort_by_key(|change| (change.direction, change.area));
        for guest in &mut self.guests {
            guest.changes.sort_by_key(|change| (change.direction, change.area));
        }
        self.guests.retain(|guest| guest.presence != Presence::Both || !guest.changes.is_empty());
        self.guests.sort_by(|one, other| {
            let order = |guest: &GuestChanges| guest.worst().unwrap_or(Direction::Different);
            order(one).cmp(&order(other)).then_with(|| one.name.cmp(&other.name))
        });
        let nothing = self.presence == Presence::Both && self.changes.is_empty() && self.guests.is_empty();
        (!nothing).then_some(self)
    }
}

impl Comparison {
    /// Of the changes of each host; none for one that is as it was.
    #[must_use]
    pub fn collect(
        (before, after): (Side, Side),
        hosts: impl IntoIterator<Item = Option<HostChanges>>,
    ) -> Self {
        let (mut totals, mut listed) = (Totals::default(), Vec::new());
        let add = |count: &mut u32, more: usize| {
            *count = count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        };
        for host in hosts {
            let Some(host) = host else {
                add(&mut totals.hosts_unchanged, 1);
                continue;
            };
            add(&mut totals.worse, host.count(Direction::Worse));
            add(&mut totals.better, host.count(Direction::Better));
            add(&mut totals.different, host.count(Direction::Different));
            if listed.len() < HOSTS_MAX { listed.push(host) } else { add(&mut totals.hosts_left_out, 1) }
        }
        listed.sort_by(|one: &HostChanges, other| {
            let worse = |host: &HostChanges| std::cmp::Reverse(host.count(Direction::Worse));
            worse(one).cmp(&worse(other)).then_with(|| one.host.cmp(&other.host))
        });
        Self { before, after, totals, hosts: listed }
    }

    /// Whether nothing is another.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }
}
