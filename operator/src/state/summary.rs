//! A snapshot in figures: each host, its guests, and what is wrong.

use std::collections::BTreeMap;

use holdfast_protocol::condition::Severity;
use holdfast_protocol::id::HostName;
use holdfast_protocol::operator::HostState;
use holdfast_protocol::protection::Posture;
use holdfast_protocol::report::Running;
use holdfast_protocol::state::{Line, StateCondition, StateHead, StateHost, StateTail};
use jiff::Timestamp;
use serde::Serialize;

/// Critical conditions that are listed.
const WORST_MAX: usize = 50;

/// A host in figures.
#[derive(Debug, Serialize)]
pub struct HostSummary {
    pub host: HostName,
    pub state: HostState,
    pub seen_at: Option<Timestamp>,
    pub generation: u64,
    pub held: u64,
    pub guests: u32,
    pub running: u32,
    /// Guests by how they are protected.
    pub postures: BTreeMap<&'static str, u32>,
    pub critical: u32,
    pub warnings: u32,
    pub agent: Option<String>,
}

/// A critical condition.
#[derive(Debug, Serialize)]
pub struct CriticalCondition {
    pub host: HostName,
    pub guest: Option<String>,
    pub code: String,
    pub since: Timestamp,
    pub message: String,
}

/// A snapshot in figures.
#[derive(Debug, Default, Serialize)]
pub struct StateSummary {
    pub head: Option<StateHead>,
    pub tail: Option<StateTail>,
    pub hosts: Vec<HostSummary>,
    /// Critical conditions, the oldest first.
    pub worst: Vec<CriticalCondition>,
    pub worst_left_out: usize,
}

impl StateSummary {
    /// Takes the next line.
    pub fn take(&mut self, line: Line) {
        match line {
            Line::Head(head) => self.head = Some(head),
            Line::Tail(tail) => {
                self.tail = Some(tail);
                self.worst.sort_by_key(|one| one.since);
                self.worst_left_out = self.worst.len().saturating_sub(WORST_MAX);
                self.worst.truncate(WORST_MAX);
            }
            Line::Host(host) => {
                self.hosts.push(summary(&host));
                self.worst.extend(worst(&host));
            }
        }
    }
}

fn conditions(host: &StateHost) -> impl Iterator<Item = (Option<&str>, &StateCondition)> {
    let of_guests = host
        .guests
        .iter()
        .flat_map(|guest| guest.conditions.iter().map(|one| (Some(guest.name.as_str()), one)));
    host.conditions.iter().map(|one| (None, one)).chain(of_guests)
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

fn summary(host: &StateHost) -> HostSummary {
    let ours = || host.guests.iter().filter(|guest| guest.uid.is_some());
    let mut postures: BTreeMap<&'static str, u32> = BTreeMap::new();
    for guest in ours() {
        let posture = guest.protection.as_ref().and_then(|protection| protection.posture);
        let word = posture.map_or("not promised", Posture::as_str);
        *postures.entry(word).or_default() += 1;
    }
    let runs = |guest: &&holdfast_protocol::state::StateGuest| {
        guest.current.as_ref().is_some_and(|current| current.run == Running::Running)
    };
    let of = |severity| count(conditions(host).filter(move |(_, one)| one.severity == severity));
    HostSummary {
        host: host.name.clone(),
        state: host.state,
        seen_at: host.observed.seen_at,
        generation: host.desired.as_ref().map_or(0, |desired| desired.generation.number()),
        held: host.held.number(),
        guests: count(ours()),
        running: count(ours().filter(runs)),
        postures,
        critical: of(Severity::Critical),
        warnings: of(Severity::Warning),
        agent: host.versions.agent.clone(),
    }
}

fn worst(host: &StateHost) -> Vec<CriticalCondition> {
    let critical = conditions(host).filter(|(_, one)| one.severity == Severity::Critical);
    let worst = critical.map(|(guest, one)| CriticalCondition {
        host: host.name.clone(),
        guest: guest.map(str::to_owned),
        code: one.code.to_string(),
        since: one.observed.since,
        message: one.observed.message.as_str().to_owned(),
    });
    worst.collect()
}
