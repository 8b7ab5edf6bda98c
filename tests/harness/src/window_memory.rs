//! Windows of guests, as their controllers remember them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use holdfast_protocol::id::OperationId;

/// Stopped programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stood {
    /// For which window.
    pub window: OperationId,
    /// From when, since the world began.
    pub from: Duration,
    /// Until when, by the controller's own bound.
    pub deadline: Duration,
    /// When it last heard its agent.
    pub heard: Duration,
    /// When it ended in fact.
    pub to: Option<Duration>,
}

impl Stood {
    /// The latest moment at which its controller starts it, whatever it receives from now on.
    pub(crate) fn at_the_latest(&self) -> Duration {
        self.deadline.min(self.heard + SILENCE_MAX)
    }
}

/// What the controllers of one world remember.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HeldWindow>);

impl Memory {
    /// All the times at which programs were stopped.
    #[must_use]
    pub fn stood(&self) -> Vec<Stood> {
        self.0.lock().unwrap().stood.clone()
    }

    pub(crate) fn of(&self, window: OperationId) -> Option<Stood> {
        self.0.lock().unwrap().stood.iter().find(|stood| stood.window == window).cloned()
    }

    pub(crate) fn stop(&self, window: OperationId, from: Duration, left: Duration) {
        let stood = Stood { window, from, deadline: from + left, heard: from, to: None };
        self.0.lock().unwrap().stood.push(stood);
    }

    /// The agent was heard.
    pub(crate) fn hear(&self, window: OperationId, now: Duration) {
        for stood in self.0.lock().unwrap().stood.iter_mut().filter(|stood| stood.window == window) {
            stood.heard = now;
        }
    }

    /// Starts every program that is stopped past its own bounds.
    pub(crate) fn keep_bounds(&self, now: Duration) {
        for stood in &mut self.0.lock().unwrap().stood {
            let latest = stood.at_the_latest();
            if stood.to.is_none() && now >= latest {
                stood.to = Some(latest);
            }
        }
    }

    pub(crate) fn start(&self, window: OperationId, now: Duration) {
        for stood in &mut self.0.lock().unwrap().stood {
            if stood.window == window && stood.to.is_none() {
                stood.to = Some(now.min(stood.deadline));
            }
        }
    }

    pub(crate) fn is_done(&self, window: OperationId) -> bool {
        self.0.lock().unwrap().done.contains(&window)
    }

    pub(crate) fn done(&self, window: OperationId) {
        self.0.lock().unwrap().done.insert(window);
    }

    pub(crate) fn standing(&self) -> Vec<OperationId> {
        self.0.lock().unwrap().stood.iter().map(|stood| stood.window).collect()
    }
}

#[derive(Debug, Default)]
struct HeldWindow {
    stood: Vec<Stood>,
    /// Windows whose end was reported, or that were only refused.
    done: BTreeSet<OperationId>,
}

/// After such a silence of its agent a controller starts what it stopped, as `guestd` does.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(120);
