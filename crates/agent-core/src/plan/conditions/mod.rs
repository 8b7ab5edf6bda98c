//! Conditions of the host, derived from what its agent knows.
//!
//! In: the last observation, the status of storage, jobs, recovery codes, and the state of the agent's own records. Out: what
//! is wrong, by the codes of the table, each with its facts. Only what was observed is stated. What is unknown at present keeps
//! the condition that it had ([`merge`]). Deliberately absent: incidents and notices, which are the hub's.
//!
//! | module | derives |
//! | --- | --- |
//! | `guest` | conditions of guests |
//! | `protection` | conditions of tiers and policies |
//! | `storage` | conditions of targets and storages |
//! | `host` | conditions of Proxmox, clock, records and images |
//! | `agent_update` | the condition of a release of the agent that did not stay |
//! | `break_glass` | the condition of an open way into the host |
//! | [`mod@hardware`] | conditions of disks, memory and temperatures |
//! | `packages` | conditions of pending upgrades and due restarts |
//! | `escrow` | conditions of recovery codes |
//! | `tunnels` | conditions of tunnels |
//! | `trust` | what waits for signatures, and what ends |
//! | `neighbours` | conditions of guests that use most of what is short, and of a host that was promised too often |
//! | `usage` | conditions of what is nearly used up |
//! | [`facts`] | what a cycle leaves for conditions |
//! | [`source`] | who derives a code, and from what |
//! | [`mod@merge`] | since when each condition holds |

mod agent_update;
mod break_glass;
mod escrow;
pub mod facts;
mod guest;
pub mod hardware;
mod host;
pub mod merge;
mod neighbours;
mod packages;
mod protection;
pub mod source;
mod storage;
mod trust;
mod tunnels;
mod usage;

use std::collections::BTreeMap;

use holdfast_protocol::break_glass::BreakGlassStatus;
use holdfast_protocol::condition::{ConditionCode, Severity, Subject};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::JobReport;
use holdfast_protocol::report::AgentBuilds;
use jiff::Timestamp;

pub use self::merge::{Coverage, Polled, merge};
use crate::model::escrow::Codes;
use crate::model::fill_history::FillHistory;
use crate::model::hardware_health::HardwareView;
use crate::model::host_maintenance::HostMaintenance;
use crate::model::storage::{StorageView, TargetRecord};
use crate::model::token_age::TokenAge;
use crate::model::tunnel::TunnelsView;
use crate::model::usage_levels::UsageLevels;
use crate::model::view::HostSnapshot;

/// A condition that holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: ConditionCode,
    pub subject: Subject,
    /// Since when, where the facts say so.
    pub since: Option<Timestamp>,
    /// Another urgency than that of the table.
    pub severity: Option<Severity>,
    /// The facts, for operators.
    pub message: String,
}

impl Finding {
    fn new(code: ConditionCode, subject: Subject, message: impl Into<String>) -> Self {
        Self { code, subject, since: None, severity: None, message: message.into() }
    }

    /// Takes in the facts of the same condition from another cause, such as the second of two copies.
    fn join(&mut self, other: &Self) {
        self.since = self.since.into_iter().chain(other.since).min();
        self.severity = self.severity.max(other.severity);
        if !self.message.contains(&other.message) {
            self.message = format!("{}; {}", self.message, other.message);
        }
    }

    fn since(self, since: Timestamp) -> Self {
        Self { since: Some(since), ..self }
    }
}

/// Why the agent's records take no writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordsFault {
    /// The disk is full.
    Full(String),
    /// The disk or the file failed.
    Broken(String),
    /// The file was damaged at the start.
    Damaged(String),
}

/// All that conditions are derived from.
#[derive(Clone, Debug)]
pub struct HostKnowledge<'a> {
    /// The time, by the clock that is trusted.
    pub now: Timestamp,
    /// The time by the wall clock, as readings of the hardware have it. It may be behind the other by days.
    pub wall: Timestamp,
    /// The last cycle.
    pub view: &'a HostSnapshot,
    /// The last poll of storage.
    pub storage: &'a StorageView,
    /// The fill levels of storages before.
    pub fill_history: &'a FillHistory,
    /// Disks, memory and temperatures.
    pub hardware: &'a HardwareView,
    /// Levels of use that are too high.
    pub levels: &'a UsageLevels,
    /// The tunnels that root's settings name.
    pub tunnels: &'a TunnelsView,
    /// The builds of the agent that came by releases.
    pub builds: Option<&'a AgentBuilds>,
    /// What root's break-glass program says, where it said something.
    pub break_glass: Option<&'a BreakGlassStatus>,
    /// The last maintenance of the host.
    pub maintenance: Option<&'a HostMaintenance>,
    pub jobs: &'a [JobReport],
    /// Recovery codes and copies of wrapped keys.
    pub codes: &'a Codes,
    /// The approved storage targets.
    pub targets: &'a [TargetRecord],
    /// Why the agent's records take no writes, where that is a fault.
    pub records: Option<RecordsFault>,
    /// When the certificate ends that the host shows to the hub.
    pub certificate_ends_at: Timestamp,
    /// The ages of the tokens for Proxmox.
    pub token_ages: &'a [TokenAge],
}

/// Everything that is wrong now, sorted, each once.
#[must_use]
pub fn derive(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let areas = [
        guest::all,
        protection::all,
        storage::all,
        host::all,
        hardware::all,
        agent_update::all,
        break_glass::all,
        packages::all,
        escrow::all,
        usage::all,
        neighbours::noisy,
        neighbours::overcommitted,
        tunnels::all,
        trust::all as fn(&HostKnowledge<'_>) -> _,
    ];
    let mut found: Vec<Finding> = areas.into_iter().flat_map(|area| area(known)).collect();
    found.sort_by(|one, other| (one.code, &one.subject).cmp(&(other.code, &other.subject)));
    found.dedup_by(|next, kept| {
        let same = (next.code, &next.subject) == (kept.code, &kept.subject);
        if same {
            kept.join(next);
        }
        same
    });
    found
}

/// The names of guests, for messages.
struct Names<'a>(BTreeMap<GuestUid, &'a str>);

impl<'a> Names<'a> {
    fn of(view: &'a HostSnapshot) -> Self {
        Self(view.guests.iter().filter_map(|guest| Some((guest.uid?, guest.name.as_str()))).collect())
    }

    fn name(&self, uid: GuestUid) -> String {
        self.0.get(&uid).map_or_else(|| uid.to_string(), |name| (*name).to_owned())
    }
}

#[cfg(test)]
mod tests;
