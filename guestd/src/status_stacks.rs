//! What `guestd status` tells of stacks: which there are, how those are that should run, what is stopped for a backup and until when, how the last window
//! ended, how they were after packages changed, and the canaries.

use holdfast_protocol::protection::Consistency;
use holdfast_protocol::strict::chain;
use serde::Serialize;

use crate::board::{self, Told, Watched};
use crate::place::Place;
use crate::quiesce::canary::{self, Written};
use crate::quiesce::marker::{Bound, Marker};
use crate::quiesce::stop;
use crate::stacks;
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
    told: Told,
    /// The canaries that were written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    canaries: Option<Written>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum MarkerView {
    Stands { window: String, stacks: Vec<String>, left_s: u64 },
    Passed { window: String, stacks: Vec<String> },
    Unreadable { why: String },
}

impl StacksView {
    /// Looks.
    pub fn look(place: &Place) -> Self {
        let (stacks, file_problem) = match stacks::load(place) {
            Ok(stacks) => (stacks.stacks.iter().map(|stack| stack.name.to_string()).collect(), None),
            Err(error) => (Vec::new(), Some(chain(&error))),
        };
        let marker = match Marker::load(place) {
            Ok(None) => None,
            Ok(Some(marker)) => Some(view(place, &marker)),
            Err(error) => Some(MarkerView::Unreadable { why: chain(&error) }),
        };
        Self { stacks, file_problem, marker, told: board::load(place), canaries: canary::last(place) }
    }

    /// For people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let none = "none in /etc/holdfast/stacks.toml, so backups hold this guest as after a power cut";
        let names = if self.stacks.is_empty() { none.to_owned() } else { self.stacks.join(", ") };
        lines.push(("Stacks", self.file_problem.clone().unwrap_or(names)));
        lines.extend(self.marker.as_ref().map(|marker| ("Stopped", marker.line())));
        let told = &self.told;
        lines.extend(
            [&told.problem, &told.put_aside].into_iter().flatten().map(|said| ("Problem", said.clone())),
        );
        lines.extend(told.watched.iter().filter_map(watched));
        lines.extend(told.down.iter().map(|down| ("Down", format!("{}: {}", down.stack, down.why))));
        lines.extend(
            told.open
                .as_ref()
                .map(|open| ("Window", format!("{}, {} since {}", open.id, open.stands, open.since))),
        );
        if let Some(last) = &told.last {
            let held = last.label.as_ref().map_or_else(String::new, |label| {
                let consistency = match label.consistency {
                    Consistency::Application => "standing still",
                    Consistency::Crash => "as after a power cut",
                };
                format!(", the backup holds them {consistency} ({})", label.why)
            });
            let still = format!("{}.{} s", last.still_ms / 1_000, last.still_ms % 1_000 / 100);
            lines.push((
                "Last window",
                format!("{} at {}: {}, still for {still}{held}", last.id, last.ended_at, last.why),
            ));
            lines.extend(last.notes.iter().map(|note| ("", note.clone())));
        }
        if let Some(written) = &self.canaries {
            lines.push(("Canaries", format!("{}, written {}", written.canaries.len(), written.at)));
        }
        lines.extend(told.packages.as_ref().map(|one| ("Packages", format!("{}: {}", one.at, one.said))));
        lines.extend(told.tried.as_ref().map(|one| ("Tried", format!("{}: {}", one.at, one.said))));
        lines.extend(told.restore_test.clone().map(|said| ("Test", said)));
        lines
    }
}

/// A stack that should run and is not well, or that a person stopped.
fn watched(one: &Watched) -> Option<(&'static str, String)> {
    let Watched { stack, state, why, since, restarts } = one;
    let starts = match restarts {
        0 => String::new(),
        1 => "; it was started once".to_owned(),
        times => format!("; it was started {times} times"),
    };
    let why = why.as_deref().unwrap_or_default();
    let is = match state {
        State::Well | State::Runs | State::Starting => {
            return (*restarts > 0).then(|| ("Stack", format!("{stack} runs again{starts}")));
        }
        State::Stopped => {
            return Some(("Stack", format!("{stack} was stopped by somebody, and is left alone")));
        }
        State::Down => "is down",
        State::Restarting => "does not stay up",
        State::Unhealthy => "is not well",
        State::Unknown => "cannot be looked at",
    };
    Some(("Unwell", format!("{stack} {is} since {since}: {why}{starts}")))
}

fn view(place: &Place, marker: &Marker) -> MarkerView {
    let window = marker.window.to_string();
    let stacks = marker.stacks.iter().map(|stack| stack.name.to_string()).collect();
    match stop::left(place, marker) {
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
                format!(
                    "{} for window {window}, whose time is over: `guestd resume` starts them",
                    stacks.join(", ")
                )
            }
            Self::Unreadable { why } => why.clone(),
        }
    }
}
