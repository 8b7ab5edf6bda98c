//! Since when each condition holds.
//!
//! In: what was reported last, also by an earlier run of the agent, and what is found now. Out: what is reported next. A
//! condition that goes on keeps its beginning. What cannot be seen at present keeps the condition that it had: it is neither
//! wrong anew nor well again. Deliberately absent: files and clocks.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Subject};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::{GuestReport, StorageReport, StorageState};
use jiff::Timestamp;

use super::Finding;
use super::hardware::HardwareCoverage;
use super::source::{Deriver, Source, deriver};
use super::{neighbours, tunnels, usage};
use crate::model::hardware_health::HardwareView;
use crate::model::storage::{FirstPoll, StorageView};
use crate::model::tunnel::TunnelsView;
use crate::model::usage_levels::UsageLevels;
use crate::model::view::HostSnapshot;

/// Whether a source was read since the agent started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    Yes,
    NotYet,
}

/// What is known at present.
#[derive(Clone, Copy, Debug)]
pub struct Coverage<'a> {
    pub host: Polled,
    pub storage: Polled,
    /// Guests with a power state that says nothing of a fault.
    pub power_unclear: &'a BTreeSet<GuestUid>,
    /// Guests that were not judged.
    pub unjudged: &'a BTreeSet<GuestUid>,
    /// The storages of the host, where it answered.
    pub storages: Option<&'a [StorageReport]>,
    pub hardware: HardwareCoverage<'a>,
    pub levels: &'a UsageLevels,
    pub tunnels: &'a TunnelsView,
    pub guests: &'a [GuestReport],
}

impl<'a> Coverage<'a> {
    /// Of the last cycle and the last poll.
    #[must_use]
    pub const fn of(
        view: &'a HostSnapshot,
        storage: &StorageView,
        (hardware, now): (&'a HardwareView, Timestamp),
        levels: &'a UsageLevels,
        tunnels: &'a TunnelsView,
    ) -> Self {
        let host = if view.seen_at.is_some() { Polled::Yes } else { Polled::NotYet };
        let storage = match storage.looked {
            FirstPoll::Yes => Polled::Yes,
            FirstPoll::NotYet => Polled::NotYet,
        };
        let storages = match &view.host {
            Some(host) => Some(host.storages.as_slice()),
            None => None,
        };
        Self {
            host,
            storage,
            power_unclear: &view.facts.power_unclear,
            unjudged: &view.facts.unjudged,
            storages,
            hardware: HardwareCoverage { view: hardware, now },
            levels,
            tunnels,
            guests: view.guests.as_slice(),
        }
    }

    /// Whether a condition that is not found does not hold.
    fn covers(&self, code: ConditionCode, subject: &Subject) -> bool {
        let Deriver::Agent(source) = deriver(code) else { return true };
        let judged = |not: &BTreeSet<GuestUid>| subject.guest().is_none_or(|uid| !not.contains(&uid));
        let host = self.host == Polled::Yes;
        match source {
            Source::Own => true,
            Source::Observation => host,
            Source::Judgement => host && judged(self.unjudged),
            Source::Power => host && judged(self.power_unclear),
            Source::FillLevel => self.has_level(subject),
            Source::Disk => self.hardware.has_disk(subject),
            Source::DiskErrors => self.hardware.has_disk_errors(subject),
            Source::MemoryErrors => self.hardware.has_memory_errors(),
            Source::Temperature => self.hardware.has_temperature(subject),
            Source::Packages => self.hardware.has_packages(),
            Source::PendingPackages => self.hardware.has_pending(),
            Source::Tunnel => tunnels::covers(self.tunnels, code, subject),
            Source::Usage => usage::covers(self.levels, self.guests, subject),
            Source::Neighbours => neighbours::covers(self.levels, self.guests, subject),
            Source::Assigned => self.storages.is_some_and(|storages| {
                storages.iter().all(|storage| storage.state != StorageState::Unknown)
            }),
            Source::Storage => self.storage == Polled::Yes,
            Source::Both => host && self.storage == Polled::Yes && judged(self.unjudged),
        }
    }

    /// A storage that the host does not use any more has no level that could be too high.
    fn has_level(&self, subject: &Subject) -> bool {
        let Subject::Storage { storage } = subject else { return true };
        let same = |report: &&StorageReport| report.name == storage.as_str();
        self.storages.is_some_and(|storages| {
            storages.iter().find(same).is_none_or(|report| report.state == StorageState::Active)
        })
    }
}

/// What is reported next. No condition began in the future, also where a clock was set back.
#[must_use]
pub fn merge(
    last: &[ReportedCondition],
    found: Vec<Finding>,
    coverage: &Coverage<'_>,
    now: Timestamp,
) -> Vec<ReportedCondition> {
    let began: BTreeMap<(ConditionCode, &Subject), Timestamp> =
        last.iter().map(|condition| (condition.identity(), condition.since)).collect();
    let mut next: Vec<ReportedCondition> = Vec::with_capacity(found.len());
    for Finding { code, subject, since, severity, message } in found {
        let before = began.get(&(code, &subject)).copied();
        let since = before.into_iter().chain(since).min().unwrap_or(now).min(now);
        let mut condition = ReportedCondition::new(code, subject, since, &message);
        condition.severity = severity.unwrap_or(condition.severity);
        next.push(condition);
    }
    let found: BTreeSet<(ConditionCode, &Subject)> = next.iter().map(ReportedCondition::identity).collect();
    let unknown = |condition: &&ReportedCondition| {
        !found.contains(&condition.identity()) && !coverage.covers(condition.code, &condition.subject)
    };
    let kept: Vec<ReportedCondition> = last
        .iter()
        .filter(unknown)
        .map(|condition| ReportedCondition { since: condition.since.min(now), ..condition.clone() })
        .collect();
    next.extend(kept);
    next
}
