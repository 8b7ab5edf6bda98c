//! What the live view shows, and where a person is in it.

use holdfast_protocol::alert::IncidentView;
use holdfast_protocol::condition::Severity;
use holdfast_protocol::id::HostName;
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::operator::{HostState, HostView};
use holdfast_protocol::report::{GuestReport, GuestStatus, Running};
use jiff::Timestamp;
use serde::Serialize;

/// A guest and its host.
#[derive(Clone, Debug, Serialize)]
pub struct GuestLine {
    pub host: HostName,
    #[serde(flatten)]
    pub guest: GuestReport,
}

/// An operation that is not at its end, and its host.
#[derive(Clone, Debug, Serialize)]
pub struct WorkLine {
    pub host: HostName,
    #[serde(flatten)]
    pub operation: OperationView,
}

/// One look at the hub: the document for programs.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// When the hub was asked.
    pub at: Timestamp,
    /// Alerts that fire, the most urgent first, acknowledged ones last.
    pub alerts: Vec<IncidentView>,
    /// Those that need a person first.
    pub hosts: Vec<HostView>,
    /// Of the hosts that were looked into; those that need a person first.
    pub guests: Vec<GuestLine>,
    /// Of the same hosts, the longest under way first.
    pub work: Vec<WorkLine>,
    /// How many hosts, from the first, were looked into.
    pub looked_into: usize,
}

impl Picture {
    pub fn of(
        at: Timestamp,
        (mut alerts, hosts): (Vec<IncidentView>, Vec<HostView>),
        (mut guests, mut work): (Vec<GuestLine>, Vec<WorkLine>),
        looked_into: usize,
    ) -> Self {
        alerts.sort_by_key(|alert| {
            (alert.acknowledged.is_some(), std::cmp::Reverse(alert.severity), alert.since)
        });
        guests.sort_by_key(|line| (urgency(&line.guest), line.host.clone(), line.guest.name.clone()));
        work.sort_by_key(|line| line.operation.opened_at);
        Self { at, alerts, hosts, guests, work, looked_into }
    }

    /// `12 hosts: 10 online, 2 offline; 3 alerts, 1 of them critical`.
    pub fn summary(&self) -> String {
        let words = [
            (HostState::Online, "online"),
            (HostState::New, "new"),
            (HostState::NeverSeen, "never seen"),
            (HostState::Degraded, "degraded"),
            (HostState::Late, "late"),
            (HostState::Offline, "offline"),
            (HostState::Frozen, "frozen"),
        ];
        let count = |state| self.hosts.iter().filter(|host| host.state == state).count();
        let states: Vec<String> = words
            .into_iter()
            .map(|(state, word)| (count(state), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let hosts = match self.hosts.len() {
            0 => "no host is enrolled".to_owned(),
            1 => format!("1 host: {}", states.join(", ")),
            more => format!("{more} hosts: {}", states.join(", ")),
        };
        let critical = self.alerts.iter().filter(|alert| alert.severity == Severity::Critical).count();
        let alerts = match self.alerts.len() {
            0 => "no alert".to_owned(),
            1 => format!("1 alert, {critical} critical"),
            more => format!("{more} alerts, {critical} critical"),
        };
        format!("{hosts}; {alerts}")
    }

    /// Which hosts guests and work are of, where it is not all.
    pub fn extent(&self) -> String {
        if self.looked_into < self.hosts.len() {
            format!(" of the first {} hosts of {}", self.looked_into, self.hosts.len())
        } else {
            String::new()
        }
    }
}

/// Small is urgent.
const fn urgency(guest: &GuestReport) -> u8 {
    match (guest.status, guest.run) {
        (GuestStatus::Broken | GuestStatus::Parked | GuestStatus::Missing, _) => 0,
        (GuestStatus::Absent, _) => 1,
        (GuestStatus::Managed | GuestStatus::Unmanaged | GuestStatus::RestoredCopy, Running::Unknown) => 2,
        (GuestStatus::Managed | GuestStatus::Unmanaged | GuestStatus::RestoredCopy, _) => 3,
        (GuestStatus::Foreign, _) => 4,
    }
}

/// The lists of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    #[default]
    Alerts,
    Hosts,
    Guests,
    Work,
}

/// Where a person is, and what went wrong at the last look.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub pane: Pane,
    /// Lines of that list above the first that is shown.
    pub above: usize,
    pub problem: Option<String>,
}

impl View {
    /// The next list, from its first line.
    pub fn next(&mut self) {
        self.above = 0;
        self.pane = match self.pane {
            Pane::Alerts => Pane::Hosts,
            Pane::Hosts => Pane::Guests,
            Pane::Guests => Pane::Work,
            Pane::Work => Pane::Alerts,
        };
    }

    pub fn down(&mut self) {
        self.above = self.above.saturating_add(1);
    }

    pub fn up(&mut self) {
        self.above = self.above.saturating_sub(1);
    }
}
