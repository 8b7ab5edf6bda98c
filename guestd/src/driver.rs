//! Drivers of stacks: calls to Docker Compose and systemd, and their answers.
//!
//! What comes in: a stack as it was written down, or parts that were stopped. What goes out: calls to make, and what
//! was read from their answers. Everything here is pure; `program` makes the calls. Parts are stopped and started by
//! their identity (a container's id, a unit's name). So exactly what ran runs again, even if a compose file was changed
//! meanwhile.

mod compose;
mod docker;
mod systemd;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::program::{Call, ProgramOutput};
use crate::stacks::{DriverOf, Stack};

/// The time limit of one status call.
const LOOK: Duration = Duration::from_secs(30);

/// Of the time for a stop, this is left for Docker to kill what did not end.
const LAST_STOP: Duration = Duration::from_secs(5);

/// One thing of a stack that runs or does not: a container, a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub id: String,
    /// The name that people use: a service, a unit.
    pub name: String,
    pub state: PartState,
    pub health: PartHealth,
    /// How long Docker waits for it to end by itself. systemd's own bound is not read, since systemd runs its jobs one
    /// after the other.
    pub grace: Option<Duration>,
    /// An identifier that differs for each start of the part; empty where it is unknown.
    pub run: String,
    pub ending: Ending,
}

/// Why a part does not run, as far as its engine shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It runs, or its ending is unknown.
    Unknown,
    /// It was stopped by hand, or it had done its work.
    Clean,
    /// It failed by itself, and its engine does not start it again.
    Failure,
}

/// Whether a part runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    Running,
    /// It failed, and its engine starts it again after a while.
    Restarting,
    /// It is being stopped, and still works.
    Stopping,
    Stopped,
    /// It was signalled to end, and then killed.
    Killed,
    /// It ended by itself, and well: a job.
    Done,
    /// It is not there any more.
    Gone,
}

impl PartState {
    /// Whether it may still write.
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Running | Self::Restarting | Self::Stopping)
    }

    /// Whether it is meant to run, whatever its state.
    pub const fn is_wanted(self) -> bool {
        matches!(self, Self::Running | Self::Restarting)
    }
}

/// What a part says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartHealth {
    /// It has no check.
    Silent,
    Starting,
    Well,
    Unwell,
}

/// Parts that stop and start together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: String,
    pub ids: Vec<String>,
}

/// Where containers come from: who removed them can have them made again there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Home {
    /// As Docker Compose calls the project.
    pub project: String,
    /// The command that makes what is missing.
    pub up: Vec<String>,
}

/// What parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    Docker,
    Systemd,
}

/// What is known of what is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Baseline {
    /// Exactly what ran. Nothing else is started with it.
    BeforeStop,
    /// What a person wants to run; what that takes is theirs to say.
    #[default]
    Enabled,
}

/// Why an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not in the form that the program documents.
    #[error("the output of `{program}` has an unknown format: check its version")]
    Form {
        program: &'static str,
        #[source]
        source: serde_json::Error,
    },
    /// Fewer answers than questions.
    #[error("`{program}` printed nothing about {about}")]
    Silent { program: &'static str, about: String },
    /// A unit that systemd does not know.
    #[error("systemd knows no unit {unit}: correct stacks.toml, or install it")]
    NoUnit { unit: String },
    /// Some of them would be stopped, and not started again.
    #[error("systemd would stop more than {max} units together with {unit}: reduce its dependencies")]
    TooMany { unit: String, max: usize },
}

/// How a stack is inspected.
pub trait Driver {
    /// What its parts are.
    fn engine(&self) -> Engine;
    /// The calls that show what there is.
    fn look(&self) -> Vec<Call>;
    /// Further calls that depend on the answers so far; their answers come after those.
    fn look_on(&self, _said: &[ProgramOutput]) -> Vec<Call> {
        Vec::new()
    }
    /// All parts, in the order in which they start.
    fn parts(&self, said: &[ProgramOutput]) -> Result<Vec<Part>, ReadError>;
    /// Where they come from, if they can be made again.
    fn home(&self, _said: &[ProgramOutput]) -> Option<Home> {
        None
    }
}

/// Lists which services of a project run now, in any containers.
pub fn services(home: &Home) -> Call {
    docker::services(&home.project)
}

/// Asks the engine's own record which of these containers a person stopped since one of them was started. None where
/// the start is unknown.
pub fn stops(part: &Part) -> Option<Call> {
    (!part.run.is_empty()).then(|| docker::stops(&part.id, &part.run))
}

/// The driver of a stack. `env` names its volumes.
pub fn of(stack: &Stack, paths: &Paths, env: &[(String, String)]) -> Box<dyn Driver> {
    match &stack.driver {
        DriverOf::Compose(project) => Box::new(compose::Compose::new(project, paths, env)),
        DriverOf::Systemd(units) => Box::new(systemd::Units::new(units)),
    }
}

impl Engine {
    /// Stops groups, the last first.
    pub fn stop(self, groups: &[Group], limit: Duration) -> Vec<Call> {
        groups.iter().rev().map(|group| self.one("stop", group, limit)).collect()
    }

    /// Starts groups, the first first.
    pub fn start(self, groups: &[Group], known: Baseline, limit: Duration) -> Vec<Call> {
        let start = |group: &Group| match (self, known) {
            (Self::Systemd, Baseline::BeforeStop) if systemd::is_target(group) => {
                systemd::start_alone(group, limit)
            }
            _ => self.one("start", group, limit),
        };
        groups.iter().map(start).collect()
    }

    /// Checks their state. A container that is gone makes the call fail, but the answer still names it.
    pub fn check(self, groups: &[Group]) -> Call {
        let ids = groups.iter().flat_map(|group| &group.ids);
        match self {
            Self::Docker => docker::check(ids),
            Self::Systemd => systemd::check(ids),
        }
    }

    /// How they are, in their order.
    pub fn checked(self, groups: &[Group], said: &ProgramOutput) -> Result<Vec<Part>, ReadError> {
        match self {
            Self::Docker => docker::checked(groups, said),
            Self::Systemd => systemd::checked(groups.iter().flat_map(|group| &group.ids), said),
        }
    }

    /// Stops one group within a bound, even where Docker would wait for longer: what ends after we have gone would stay down.
    pub fn stop_within(self, group: &Group, parts: &[Part], left: Duration) -> Call {
        let wait = left.saturating_sub(LAST_STOP).max(left / 2).as_secs().max(1);
        let of_group = parts.iter().filter(|part| group.ids.contains(&part.id));
        let own = of_group.filter_map(|part| part.grace).max();
        match own {
            Some(own) if own.as_secs() > wait => {
                let words = ["docker".to_owned(), "stop".to_owned(), "-t".to_owned(), wait.to_string()];
                let argv = words.into_iter().chain(group.ids.iter().cloned()).collect();
                Call { argv, env: Vec::new(), folder: None, limit: left }
            }
            _ => self.one("stop", group, left),
        }
    }

    fn one(self, verb: &str, group: &Group, limit: Duration) -> Call {
        let words = match self {
            Self::Docker => vec!["docker", verb],
            Self::Systemd => vec!["systemctl", verb, "--"],
        };
        Call::new(words.into_iter().chain(group.ids.iter().map(String::as_str)), limit)
    }
}

/// Puts parts that follow each other and have one name into groups.
pub fn groups<'a>(parts: impl Iterator<Item = &'a Part>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        match groups.last_mut() {
            Some(last) if last.name == part.name => last.ids.push(part.id.clone()),
            _ => groups.push(Group { name: part.name.clone(), ids: vec![part.id.clone()] }),
        }
    }
    groups
}
