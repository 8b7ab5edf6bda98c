//! Assessment of one poll of a stack. Pure.

use holdfast_protocol::local::hello::UnwellState;
use serde::{Deserialize, Serialize};

use crate::driver::{Ending, Engine, Group, Part, PartHealth, PartState, groups};
use crate::quiesce::stack::names;

/// How a stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It runs, and a check says that it is well.
    Well,
    /// It runs, and nothing says more.
    Runs,
    /// It may yet be well.
    Starting,
    /// Nothing of it runs, and nothing of it failed: a person stopped it, or it was never started.
    Stopped,
    Down,
    Restarting,
    Unhealthy,
    Unknown,
}

impl State {
    /// The state as it is reported to the agent. None where there is nothing to report.
    pub const fn unwell(self) -> Option<UnwellState> {
        match self {
            Self::Well | Self::Runs | Self::Starting | Self::Stopped => None,
            Self::Down => Some(UnwellState::Down),
            Self::Restarting => Some(UnwellState::Restarting),
            Self::Unhealthy => Some(UnwellState::Unhealthy),
            Self::Unknown => Some(UnwellState::Unknown),
        }
    }
}

/// What ended by itself and is not started by what runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallenStack {
    pub engine: Engine,
    /// In the order in which they start.
    pub groups: Vec<Group>,
    pub why: String,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// Nothing is wrong.
    Fine(State),
    /// Something is not well; the text says what.
    Unwell(State, String),
    /// It failed, and can be started.
    Fell(FallenStack),
}

impl Assessment {
    #[cfg(test)]
    pub const fn state(&self) -> State {
        match self {
            Self::Fine(state) | Self::Unwell(state, _) => *state,
            Self::Fell(_) => State::Down,
        }
    }

    pub const fn fallen(&self) -> Option<&FallenStack> {
        match self {
            Self::Fell(fallen) => Some(fallen),
            Self::Fine(_) | Self::Unwell(..) => None,
        }
    }
}

/// What the stack's own check says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It has none, or it was not run because no part runs.
    None,
    Well,
    Unwell(String),
}

/// Judges. `parts` are this stack's own, each with its ending as far as that is known.
pub fn assess(engine: Engine, parts: &[Part], check: Check) -> Assessment {
    let fell: Vec<&Part> =
        parts.iter().filter(|part| is_down(part) && part.ending == Ending::Failure).collect();
    if !fell.is_empty() {
        let groups = groups(fell.iter().copied());
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let why = format!("{} ended by itself", names.join(", "));
        return Assessment::Fell(FallenStack { engine, groups, why });
    }
    let odd = names(parts, |part| is_down(part) && part.ending == Ending::Unknown);
    if !odd.is_empty() {
        let why = format!("{odd} ended; whether it was stopped on purpose is unknown");
        return Assessment::Unwell(State::Down, why);
    }
    let restarting = names(parts, |part| part.state == PartState::Restarting);
    if !restarting.is_empty() {
        let who = match engine {
            Engine::Docker => "Docker",
            Engine::Systemd => "systemd",
        };
        return Assessment::Unwell(
            State::Restarting,
            format!("{restarting} fails repeatedly, and {who} restarts it"),
        );
    }
    let runs = |part: &Part| part.state == PartState::Running;
    if !parts.iter().any(runs) {
        return Assessment::Fine(State::Stopped);
    }
    let unwell = names(parts, |part| runs(part) && part.health == PartHealth::Unwell);
    match check {
        Check::Unwell(why) => Assessment::Unwell(State::Unhealthy, why),
        Check::Well | Check::None if !unwell.is_empty() => {
            Assessment::Unwell(State::Unhealthy, format!("{unwell} is unhealthy"))
        }
        Check::Well => Assessment::Fine(State::Well),
        Check::None if parts.iter().any(|part| runs(part) && part.health == PartHealth::Starting) => {
            Assessment::Fine(State::Starting)
        }
        Check::None if parts.iter().any(|part| runs(part) && part.health == PartHealth::Well) => {
            Assessment::Fine(State::Well)
        }
        Check::None => Assessment::Fine(State::Runs),
    }
}

/// Whether it is stopped. A part that is just being stopped is not yet.
pub const fn is_down(part: &Part) -> bool {
    match part.state {
        PartState::Stopped | PartState::Killed => true,
        PartState::Running
        | PartState::Restarting
        | PartState::Stopping
        | PartState::Done
        | PartState::Gone => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, state: PartState, health: PartHealth, ending: Ending) -> Part {
        let (id, run) = (format!("{name}-id"), String::new());
        Part { id, name: name.to_owned(), state, health, grace: None, run, ending }
    }

    fn up(name: &str, health: PartHealth) -> Part {
        part(name, PartState::Running, health, Ending::Unknown)
    }

    fn down(name: &str, ending: Ending) -> Part {
        part(name, PartState::Stopped, PartHealth::Silent, ending)
    }

    #[test]
    fn manual_stops_are_fine_and_failures_are_not() {
        let state = |parts: &[Part]| assess(Engine::Docker, parts, Check::None).state();
        assert_eq!(state(&[]), State::Stopped, "removed, or never deployed");
        assert_eq!(state(&[down("web", Ending::Clean)]), State::Stopped);
        assert_eq!(state(&[down("web", Ending::Clean), up("db", PartHealth::Silent)]), State::Runs);
        assert_eq!(state(&[down("web", Ending::Unknown), up("db", PartHealth::Well)]), State::Down);
        let done = part("job", PartState::Done, PartHealth::Silent, Ending::Clean);
        assert_eq!(state(&[done.clone(), up("db", PartHealth::Well)]), State::Well);
        assert_eq!(state(&[done]), State::Stopped);
        let seen = assess(
            Engine::Docker,
            &[down("web", Ending::Failure), down("tool", Ending::Clean), up("db", PartHealth::Silent)],
            Check::Well,
        );
        let fallen = seen.fallen().unwrap();
        let names: Vec<&str> = fallen.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!((names, fallen.why.as_str()), (vec!["web"], "web ended by itself"), "and nothing else");
    }

    #[test]
    fn what_runs_is_as_its_check_and_its_parts_say() {
        let judged =
            |health, check| assess(Engine::Systemd, &[up("a", health), up("b", PartHealth::Silent)], check);
        for (health, check, state) in [
            (PartHealth::Silent, Check::None, State::Runs),
            (PartHealth::Starting, Check::None, State::Starting),
            (PartHealth::Well, Check::None, State::Well),
            (PartHealth::Unwell, Check::None, State::Unhealthy),
            (PartHealth::Silent, Check::Well, State::Well),
            (PartHealth::Unwell, Check::Well, State::Unhealthy),
            (PartHealth::Well, Check::Unwell("no".to_owned()), State::Unhealthy),
        ] {
            let seen = judged(health, check.clone());
            assert_eq!(seen.state(), state, "{health:?} {check:?}");
            assert_eq!(state.unwell().is_some(), state == State::Unhealthy);
        }
        let again = part("a", PartState::Restarting, PartHealth::Unwell, Ending::Unknown);
        let Assessment::Unwell(State::Restarting, why) = assess(Engine::Systemd, &[again], Check::None)
        else {
            panic!("it is left to systemd")
        };
        assert!(why.ends_with("systemd restarts it"), "{why}");
    }
}
