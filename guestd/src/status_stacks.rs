//! Stacks in `guestd status`: health, windows, package checks, canaries.

use holdfast_protocol::json::chain;
use holdfast_protocol::protection::Consistency;
use serde::Serialize;

use crate::paths::Paths;
use crate::quiesce::canary::{self, CanaryList};
use crate::quiesce::marker::{Bound, Marker};
use crate::quiesce::stop;
use crate::stacks;
use crate::status_file::{self, StackStatus, StatusFile};
use crate::watch::State;

/// What is known.
#[derive(Debug, Serialize)]
pub struct StacksView {
    /// Names, in the order in which they start.
    stacks: Vec<String>,
    /// Why the file cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_problem: Option<String>,
    /// What is stopped for a backup now.
    #[serde(skip_serializing_if = "Option::is_none")]
    marker: Option<MarkerView>,
    /// What the controller and the last window said.
    status: StatusFile,
    /// The canaries that were written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    canaries: Option<CanaryList>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum MarkerView {
    Stands { window: String, stacks: Vec<String>, left_s: u64 },
    Passed { window: String, stacks: Vec<String> },
    Unreadable { why: String },
}

impl StacksView {
    pub fn look(paths: &Paths) -> Self {
        let (stacks, file_problem) = match stacks::load(paths) {
            Ok(stacks) => (stacks.stacks.iter().map(|stack| stack.name.to_string()).collect(), None),
            Err(error) => (Vec::new(), Some(chain(&error))),
        };
        let marker = match Marker::load(paths) {
            Ok(None) => None,
            Ok(Some(marker)) => Some(view(paths, &marker)),
            Err(error) => Some(MarkerView::Unreadable { why: chain(&error) }),
        };
        Self { stacks, file_problem, marker, status: status_file::load(paths), canaries: canary::last(paths) }
    }

    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let none = "none in /etc/holdfast/stacks.toml: backups are crash-consistent";
        let names = if self.stacks.is_empty() { none.to_owned() } else { self.stacks.join(", ") };
        lines.push(("Stacks", self.file_problem.clone().unwrap_or(names)));
        lines.extend(self.marker.as_ref().map(|marker| ("Stopped", marker.line())));
        let status = &self.status;
        lines.extend(
            [&status.problem, &status.marker_problem]
                .into_iter()
                .flatten()
                .map(|said| ("Problem", said.clone())),
        );
        lines.extend(status.stack_status.iter().filter_map(stack_status));
        lines.extend(status.down.iter().map(|down| ("Down", format!("{}: {}", down.stack, down.why))));
        lines.extend(
            status
                .open
                .as_ref()
                .map(|open| ("Window", format!("{}, {} since {}", open.id, open.phase, open.since))),
        );
        if let Some(last) = &status.last {
            let held = last.label.as_ref().map_or_else(String::new, |label| {
                let consistency = match label.consistency {
                    Consistency::Application => "application-consistent",
                    Consistency::Crash => "crash-consistent",
                };
                format!(", the backup is {consistency} ({})", label.why)
            });
            let still = format!("{}.{} s", last.stopped_ms / 1_000, last.stopped_ms % 1_000 / 100);
            lines.push((
                "Last window",
                format!("{} at {}: {}, stopped for {still}{held}", last.id, last.ended_at, last.why),
            ));
            lines.extend(last.notes.iter().map(|note| ("", note.clone())));
        }
        if let Some(written) = &self.canaries {
            lines.push(("Canaries", format!("{}, written {}", written.canaries.len(), written.at)));
        }
        lines
            .extend(status.packages.as_ref().map(|one| ("Packages", format!("{}: {}", one.at, one.message))));
        lines.extend(status.last_try.as_ref().map(|one| ("Tried", format!("{}: {}", one.at, one.message))));
        lines.extend(status.restore_test.clone().map(|said| ("Test", said)));
        lines
    }
}

/// A stack that should run and is not well, or that a person stopped.
fn stack_status(one: &StackStatus) -> Option<(&'static str, String)> {
    let StackStatus { stack, state, why, since, restarts } = one;
    let starts = match restarts {
        0 => String::new(),
        1 => "; restarted once".to_owned(),
        times => format!("; restarted {times} times"),
    };
    let why = why.as_deref().unwrap_or_default();
    let is = match state {
        State::Well | State::Runs | State::Starting => {
            return (*restarts > 0).then(|| ("Stack", format!("{stack} runs again{starts}")));
        }
        State::Stopped => {
            return Some(("Stack", format!("{stack} was stopped by hand, and is left stopped")));
        }
        State::Down => "is down",
        State::Restarting => "fails repeatedly",
        State::Unhealthy => "is unhealthy",
        State::Unknown => "cannot be checked",
    };
    Some(("Unwell", format!("{stack} {is} since {since}: {why}{starts}")))
}

fn view(paths: &Paths, marker: &Marker) -> MarkerView {
    let window = marker.window.to_string();
    let stacks = marker.stacks.iter().map(|stack| stack.name.to_string()).collect();
    match stop::left(paths, marker) {
        Bound::Left(left) => MarkerView::Stands { window, stacks, left_s: left.as_secs() },
        Bound::Passed => MarkerView::Passed { window, stacks },
    }
}

impl MarkerView {
    fn line(&self) -> String {
        match self {
            Self::Stands { window, stacks, left_s } => {
                format!("{} for window {window}, for {left_s} s at most", stacks.join(", "))
            }
            Self::Passed { window, stacks } => {
                format!("{} for window {window}, expired: run `guestd resume`", stacks.join(", "))
            }
            Self::Unreadable { why } => why.clone(),
        }
    }
}
