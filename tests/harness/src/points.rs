//! Where the agent can be killed, and what decides it.
//!
//! Points are the agent's own failpoints (before and after each journal write and each effect). Both sides of every
//! request that could change something are points, too: before it reaches the simulator, and after it was carried out
//! while the answer is still on its way. In: the planned faults. Out: the points in the order in which they were
//! reached. A dead agent reaches nothing any more.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use agentd::execute::failpoint::{Failpoints, Killed, Moment, Point, Side};
use agentd::operation::log::Status;
use tokio::sync::Notify;
use tokio::task;

use crate::power::server::Served;

/// What a point is next to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// One of the agent's failpoints.
    Agent(Moment),
    Request,
    /// A step of the exchange with the hub.
    Exchange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The step's name, or `operation`.
    pub step: &'static str,
    /// Before or after.
    pub side: Side,
    pub at: At,
}

impl Place {
    /// `before:intent`
    #[must_use]
    pub fn moment(&self) -> String {
        let text = self.to_string();
        text.split_once(':').map(|(_, moment)| moment.to_owned()).unwrap_or(text)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at, self.side) {
            (At::Agent(moment), side) => Point { step: self.step, side, moment }.fmt(f),
            (At::Request, Side::Before) => write!(f, "{}:before:request", self.step),
            (At::Request, Side::After) => write!(f, "{}:after:request", self.step),
            (At::Exchange, Side::Before) => write!(f, "{}:before:exchange", self.step),
            (At::Exchange, Side::After) => write!(f, "{}:after:exchange", self.step),
        }
    }
}

/// Outcomes that were reached before: how far the frame was, and the step.
pub type VisitedPoints = Arc<Mutex<BTreeSet<(usize, &'static str)>>>;

/// When the agent dies.
#[derive(Clone, Debug)]
pub enum Kill {
    /// Not at all.
    Never,
    /// At the point with this number, from 0.
    At(usize),
    /// Before the first outcome of each step, on the way there and on the way back: each step is done again.
    BeforeEachOutcome(VisitedPoints),
    /// At the first point after this disk has lost its power.
    WithDisk(Arc<Served>),
}

/// How requests of one step fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Refused with an error text that the agent does not know.
    Refused,
    /// Carried out, and the answer is lost.
    ReplyLost,
    /// Lost before they arrive.
    RequestLost,
}

/// A step whose requests fail.
#[derive(Clone, Copy, Debug)]
pub struct Fail {
    pub step: &'static str,
    pub how: How,
    /// How often; then all is well again.
    pub times: u32,
}

struct State {
    places: Vec<Place>,
    kill: Kill,
    fail: Option<Fail>,
    /// The step that each task of the agent is in: operations of several guests run at once, each in a task of its own.
    steps: HashMap<Option<task::Id>, &'static str>,
    frames_to_undo: usize,
    written: u32,
    dead: Option<Place>,
}

/// Decides about one run of the agent.
pub struct Conductor {
    state: Mutex<State>,
    killed: Notify,
}

/// The agent is dead.
#[derive(Clone, Copy, Debug)]
pub struct Dead;

impl Conductor {
    /// With a kill and a failure, or without.
    #[must_use]
    pub fn new(kill: Kill, fail: Option<Fail>) -> Arc<Self> {
        let state = State {
            places: Vec::new(),
            kill,
            fail,
            steps: HashMap::new(),
            frames_to_undo: 2,
            written: 0,
            dead: None,
        };
        Arc::new(Self { state: Mutex::new(state), killed: Notify::new() })
    }

    /// Without faults.
    #[must_use]
    pub fn undisturbed() -> Arc<Self> {
        Self::new(Kill::Never, None)
    }

    fn reach(&self, place: Place) -> Result<(), Dead> {
        let mut state = self.state.lock().unwrap();
        if state.dead.is_some() {
            return Err(Dead);
        }
        // The exchange with the hub runs next to the operations.
        if place.at != At::Exchange {
            state.steps.insert(task::try_id(), place.step);
        }
        let nth = state.places.len();
        state.places.push(place);
        let outcome = place.at == At::Agent(Moment::Outcome) && place.side == Side::Before;
        let dies = match &state.kill {
            Kill::Never => false,
            Kill::At(wanted) => *wanted == nth,
            Kill::WithDisk(disk) => disk.is_cut(),
            Kill::BeforeEachOutcome(seen) => {
                outcome && seen.lock().unwrap().insert((state.frames_to_undo, place.step))
            }
        };
        let writes =
            matches!(place.at, At::Agent(Moment::Intent | Moment::Posted | Moment::Outcome | Moment::Frame));
        if writes && place.side == Side::After {
            state.written += 1;
        }
        if place == (Place { step: "operation", side: Side::After, at: At::Agent(Moment::Frame) }) {
            state.frames_to_undo = state.frames_to_undo.saturating_sub(1);
        }
        if dies {
            state.dead = Some(place);
            self.killed.notify_one();
            return Err(Dead);
        }
        Ok(())
    }

    /// A request is about to arrive, or was carried out.
    ///
    /// # Errors
    /// [`Dead`]: nothing more may be done.
    pub fn request(&self, side: Side) -> Result<(), Dead> {
        let step = self.step();
        self.reach(Place { step, side, at: At::Request })
    }

    /// A step of the exchange with the hub.
    ///
    /// # Errors
    /// [`Dead`]: nothing more may be done.
    pub fn exchange(&self, step: &'static str, side: Side) -> Result<(), Dead> {
        self.reach(Place { step, side, at: At::Exchange })
    }

    /// The agent dies at this many points from here.
    pub fn kill_after(&self, points: usize) {
        let mut state = self.state.lock().unwrap();
        state.kill = Kill::At(state.places.len() + points);
    }

    /// How the next request of this step fails, if it does.
    pub fn fails(&self) -> Option<How> {
        let step = self.step();
        let mut state = self.state.lock().unwrap();
        let fail = state.fail.as_mut().filter(|fail| fail.step == step && fail.times > 0)?;
        fail.times -= 1;
        Some(fail.how)
    }

    /// The step of the agent's task that makes the request.
    #[must_use]
    pub fn step(&self) -> &'static str {
        self.state.lock().unwrap().steps.get(&task::try_id()).copied().unwrap_or("operation")
    }

    /// The run begins with an operation in this status: its frames say when the way back begins.
    pub fn takes_up(&self, status: Status) {
        self.state.lock().unwrap().frames_to_undo = match status {
            Status::Queued => 2,
            Status::UndoBefore(_) | Status::UndoDuring(_) | Status::AllUndone => 0,
            _ => 1,
        };
    }

    /// Returns once the agent is dead.
    pub async fn death(&self) -> Place {
        loop {
            if let Some(place) = self.state.lock().unwrap().dead {
                return place;
            }
            self.killed.notified().await;
        }
    }

    /// Where the agent died.
    #[must_use]
    pub fn dead(&self) -> Option<Place> {
        self.state.lock().unwrap().dead
    }

    /// The points that were reached.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        self.state.lock().unwrap().places.clone()
    }

    /// How many events of the journal were written to disk.
    #[must_use]
    pub fn written(&self) -> u32 {
        self.state.lock().unwrap().written
    }
}

impl Failpoints for Conductor {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        let Point { step, side, moment } = point;
        self.reach(Place { step, side, at: At::Agent(moment) }).map_err(|Dead| Killed(point))
    }
}
