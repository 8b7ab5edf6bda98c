//! The reducer.
//!
//! In: a state and a signal. Out: the next state, log entries and notices.
//!
//! | module | decides |
//! | --- | --- |
//! | [`observe`] | which conditions come, go, or are unknown |
//! | [`commands`] | what operators ask for |
//! | [`timers`] | pending to firing, firing to resolved, flapping |
//! | [`routing`] | which receivers hear of an incident, and escalation |
//! | [`flush`] | which groups send a notice now |
//! | [`wakeup`] | when a tick is needed |

mod commands;
mod flush;
mod observe;
mod routing;
mod timers;
mod wakeup;

use jiff::Timestamp;

use crate::incident::{Incident, Phase};
use crate::label::Labelled;
use crate::log::{LogEntry, LogKind};
use crate::notice::Notice;
use crate::setting::Setting;
use crate::signal::Signal;
use crate::state::{Changes, ScopeState};
use crate::time::{HOUR_S, after};

/// What follows from a signal. The state, the log and the notices are kept in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The next state. Its row says when a tick is due.
    pub state: ScopeState,
    /// The rows that are to be written and removed.
    pub changes: Changes,
    /// What happened, in order.
    pub log: Vec<LogEntry>,
    /// What is to be sent.
    pub notices: Vec<Notice>,
}

/// Decides what follows from a signal.
#[must_use]
pub fn next(state: &ScopeState, signal: &Signal, setting: &Setting<'_>, now: Timestamp) -> Decision {
    let mut work = Work { state: state.clone(), setting, now, log: Vec::new(), notices: Vec::new() };
    work.state.not_after(now);
    match signal {
        Signal::Conditions { source, conditions, completeness } => {
            work.conditions(*source, conditions, *completeness);
        }
        Signal::Unknown { source, since } => work.unknown(*source, *since),
        Signal::Host { state, since } => work.host(*state, *since),
        Signal::Acknowledge { incident, by, until } => work.acknowledge(*incident, by, *until),
        Signal::Unacknowledge { incident, by } => work.unacknowledge(*incident, by),
        Signal::SilenceAdded(id) => work.log(None, LogKind::SilenceAdded { id: *id }),
        Signal::SilenceEnded(id) => work.log(None, LogKind::SilenceEnded { id: *id }),
        Signal::Maintenance(windows) => work.maintenance(windows),
        Signal::GuestDeleted { uid, by } => work.guest_deleted(*uid, by.as_ref()),
        Signal::HostRevoked { by } => work.host_revoked(by),
        Signal::Tick | Signal::RulesChanged => {}
    }
    work.adopt();
    // New rules alone do nothing: what they make due is due with the next signal of another kind.
    if *signal != Signal::RulesChanged {
        work.advance();
        work.route();
        work.escalate();
        work.flush();
    }
    work.sweep();
    work.state.row.due = work.due();
    let changes = work.state.changed_since(state);
    Decision { state: work.state, changes, log: work.log, notices: work.notices }
}

/// A decision that is being made.
struct Work<'a> {
    state: ScopeState,
    setting: &'a Setting<'a>,
    now: Timestamp,
    log: Vec<LogEntry>,
    notices: Vec<Notice>,
}

impl<'a> Work<'a> {
    fn log(&mut self, incident: Option<u64>, what: LogKind) {
        self.log.push(LogEntry { at: self.now, incident, what });
    }

    fn numbers(&self) -> Vec<u64> {
        self.state.incidents.keys().copied().collect()
    }

    fn labelled<'b>(&self, incident: &'b Incident) -> Labelled<'b>
    where
        'a: 'b,
    {
        incident.labelled(self.setting.host)
    }

    /// From when a duration is measured: what was before the hub listened does not count.
    fn counted_from(&self, at: Timestamp) -> Timestamp {
        at.max(self.setting.listening_since.min(self.now))
    }

    /// When a resolved incident is dropped. Until then it comes back under its own id.
    fn dropped_at(incident: &Incident) -> Option<Timestamp> {
        match incident.phase {
            Phase::Resolved { at, .. } => Some(after(at, HOUR_S)),
            Phase::Pending { .. } | Phase::Firing { .. } => None,
        }
    }

    fn sweep(&mut self) {
        self.state.groups.retain(|_, group| !group.members.is_empty());
        let over = |incident: &&Incident| {
            Self::dropped_at(incident).is_some_and(|at| at <= self.now)
                && !self.state.is_grouped(incident.id.number)
        };
        let over: Vec<u64> =
            self.state.incidents.values().filter(over).map(|incident| incident.id.number).collect();
        for number in over {
            self.state.incidents.remove(&number);
        }
    }
}
