//! What one look at a stack says of it: pure.

use holdfast_protocol::local::hello::UnwellState;
use serde::{Deserialize, Serialize};

use crate::driver::{Ending, Engine, Group, Part, PartHealth, PartState, groups};
use crate::quiesce::act::names;

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
    /// Nothing of it runs, and nothing of it fell over: a person stopped it, or it was never started.
    Stopped,
    Down,
    Restarting,
    Unhealthy,
    Unknown,
}

impl State {
    /// As the agent is told. None where there is nothing to tell.
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
pub struct Fallen {
    pub engine: Engine,
    /// In the order in which they start.
    pub groups: Vec<Group>,
    pub why: String,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing is wrong.
    Fine(State),
    /// Something is not well, in words.
    Wrong(State, String),
    /// It fell over, and can be started.
    Fell(Fallen),
}

impl Seen {
    #[cfg(test)]
    pub const fn state(&self) -> State {
        match self {
            Self::Fine(state) | Self::Wrong(state, _) => *state,
            Self::Fell(_) => State::Down,
        }
    }

    pub const fn fallen(&self) -> Option<&Fallen> {
        match self {
            Self::Fell(fallen) => Some(fallen),
            Self::Fine(_) | Self::Wrong(..) => None,
        }
    }
}

/// What the stack's own check says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It has none, or it was not asked because nothing runs.
    None,
    Well,
    Unwell(String),
}

/// Judges. `parts` are this stack's own, each with its ending as far as that could be told.
pub fn judge(engine: Engine, parts: &[Part], check: Check) -> Seen {
    let fell: Vec<&Part> =
        parts.iter().filter(|part| is_down(part) && part.ending == Ending::Failure).collect();
    if !fell.is_empty() {
        let groups = groups(fell.iter().copied());
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let why = format!("{} ended by itself", names.join(", "));
        return Seen::Fell(Fallen { engine, groups, why });
    }
    let odd = names(parts, |part| is_down(part) && part.ending == Ending::Unknown);
    if !odd.is_empty() {
        let why = format!("{odd} ended, and whether somebody stopped that cannot be told");
        return Seen::Wrong(State::Down, why);
    }
    let restarting = names(parts, |part| part.state == PartState::Restarting);
    if !restarting.is_empty() {
        let who = match engine {
            Engine::Docker => "Docker",
            Engine::Systemd => "systemd",
        };
        return Seen::Wrong(
            State::Restarting,
            format!("{restarting} ends again and again, and {who} starts it"),
        );
    }
    let runs = |part: &Part| part.state == PartState::Running;
    if !parts.iter().any(runs) {
        return Seen::Fine(State::Stopped);
    }
    let unwell = names(parts, |part| runs(part) && part.says == PartHealth::Unwell);
    match check {
        Check::Unwell(why) => Seen::Wrong(State::Unhealthy, why),
        Check::Well | Check::None if !unwell.is_empty() => {
            Seen::Wrong(State::Unhealthy, format!("{unwell} says that it is not well"))
        }
        Check::Well => Seen::Fine(State::Well),
        Check::None if parts.iter().any(|part| runs(part) && part.says == PartHealth::Starting) => {
            Seen::Fine(State::Starting)
        }
        Check::None if parts.iter().any(|part| runs(part) && part.says == PartHealth::Well) => {
            Seen::Fine(State::Well)
        }
        Check::None => Seen::Fine(State::Runs),
    }
}

/// Whether it stands still. What somebody is just stopping has not.
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

    fn part(name: &str, state: PartState, says: PartHealth, ending: Ending) -> Part {
        let (id, run) = (format!("{name}-id"), String::new());
        Part { id, name: name.to_owned(), state, says, grace: None, run, ending }
    }

    fn up(name: &str, says: PartHealth) -> Part {
        part(name, PartState::Running, says, Ending::Unknown)
    }

    fn down(name: &str, ending: Ending) -> Part {
        part(name, PartState::Stopped, PartHealth::Silent, ending)
    }

    #[test]
    fn what_a_person_stopped_is_no_trouble_and_what_fell_is() {
        let state = |parts: &[Part]| judge(Engine::Docker, parts, Check::None).state();
        assert_eq!(state(&[]), State::Stopped, "removed, or never deployed");
        assert_eq!(state(&[down("web", Ending::Clean)]), State::Stopped);
        assert_eq!(state(&[down("web", Ending::Clean), up("db", PartHealth::Silent)]), State::Runs);
        assert_eq!(state(&[down("web", Ending::Unknown), up("db", PartHealth::Well)]), State::Down);
        let done = part("job", PartState::Done, PartHealth::Silent, Ending::Clean);
        assert_eq!(state(&[done.clone(), up("db", PartHealth::Well)]), State::Well);
        assert_eq!(state(&[done]), State::Stopped);
        let seen = judge(
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
            |says, check| judge(Engine::Systemd, &[up("a", says), up("b", PartHealth::Silent)], check);
        for (says, check, state) in [
            (PartHealth::Silent, Check::None, State::Runs),
            (PartHealth::Starting, Check::None, State::Starting),
            (PartHealth::Well, Check::None, State::Well),
            (PartHealth::Unwell, Check::None, State::Unhealthy),
            (PartHealth::Silent, Check::Well, State::Well),
            (PartHealth::Unwell, Check::Well, State::Unhealthy),
            (PartHealth::Well, Check::Unwell("no".to_owned()), State::Unhealthy),
        ] {
            let seen = judged(says, check.clone());
            assert_eq!(seen.state(), state, "{says:?} {check:?}");
            assert_eq!(state.unwell().is_some(), state == State::Unhealthy);
        }
        let again = part("a", PartState::Restarting, PartHealth::Unwell, Ending::Unknown);
        let Seen::Wrong(State::Restarting, why) = judge(Engine::Systemd, &[again], Check::None) else {
            panic!("it is left to systemd")
        };
        assert!(why.ends_with("systemd starts it"), "{why}");
    }
}
