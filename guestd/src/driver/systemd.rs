//! systemd driver.
//!
//! `systemctl show` prints the state of units, one block for each, in the order of the arguments.
//!
//! systemd stops more units than it is asked to stop. A unit that is `PartOf=` another belongs to it, and a stop of
//! only the other does not wait for it: Debian's `postgresql.service` is inactive while its clusters still write. A
//! unit that requires another is stopped with it, and systemd does not start it again. So all of these units are parts,
//! and so are the units that they take with them in turn; each is stopped and started by its own name.

mod order;

use std::time::Duration;

use super::{Driver, Ending, Engine, Group, LOOK, Part, PartHealth, PartState, ReadError};
use crate::program::{Call, ProgramOutput};
use order::{Tie, Ties};

/// The most units of a stack, including those that systemd stops with the stack's own.
const PARTS_MAX: usize = 128;

/// What systemd calls the units that a stop of this one stops, too.
const TIES: [(&str, Tie); 5] = [
    ("ConsistsOf", Tie::Belongs),
    ("RequiredBy", Tie::Needs),
    ("RequisiteOf", Tie::Needs),
    ("BoundBy", Tie::Needs),
    ("PropagatesStopTo", Tie::Needs),
];

/// Units, as they are inspected.
pub struct Units {
    units: Vec<String>,
}

/// The dependencies that the answers show.
struct UnitQuery {
    /// Which units each answer is about.
    rounds: Vec<Vec<String>>,
    /// Units that are known by now, and were not queried yet.
    next: Vec<String>,
    ties: Ties,
}

impl Units {
    pub fn new(units: &[String]) -> Self {
        Self { units: units.to_vec() }
    }

    fn asked(&self, said: &[ProgramOutput]) -> UnitQuery {
        let mut asked =
            UnitQuery { rounds: Vec::new(), next: self.units.clone(), ties: Ties::new(self.units.clone()) };
        for answer in said {
            let mut mentioned = Vec::new();
            for (unit, block) in asked.next.iter().zip(answer.out.trim().split("\n\n")) {
                for (key, tie) in TIES {
                    for other in value(block, key).unwrap_or_default().split_ascii_whitespace() {
                        asked.ties.tie(unit, other, tie);
                        mentioned.push(other.to_owned());
                    }
                }
            }
            mentioned.sort_unstable();
            mentioned.dedup();
            mentioned.retain(|unit| asked.ties.meet(unit));
            asked.rounds.push(std::mem::replace(&mut asked.next, mentioned));
        }
        asked
    }
}

impl Driver for Units {
    fn engine(&self) -> Engine {
        Engine::Systemd
    }

    fn look(&self) -> Vec<Call> {
        vec![check(self.units.iter())]
    }

    fn look_on(&self, said: &[ProgramOutput]) -> Vec<Call> {
        let asked = self.asked(said);
        let all: usize = asked.rounds.iter().chain([&asked.next]).map(Vec::len).sum();
        // Too many are refused with the answers that name them.
        if asked.next.is_empty() || all > PARTS_MAX { Vec::new() } else { vec![check(asked.next.iter())] }
    }

    fn parts(&self, said: &[ProgramOutput]) -> Result<Vec<Part>, ReadError> {
        if said.is_empty() {
            return Err(silent("its units"));
        }
        let asked = self.asked(said);
        if !asked.next.is_empty() {
            return Err(ReadError::TooMany { unit: self.units.join(" "), max: PARTS_MAX });
        }
        let mut parts = Vec::new();
        for (units, answer) in asked.rounds.iter().zip(said) {
            parts.extend(checked(units.iter(), answer)?);
        }
        let own = |part: &Part| self.units.contains(&part.id);
        if let Some(part) = parts.iter().find(|part| own(part) && part.state == PartState::Gone) {
            return Err(ReadError::NoUnit { unit: part.id.clone() });
        }
        // These units are not named in `stacks.toml`: one that does not run, and did not fail, is left out.
        parts.retain(|part| own(part) || part.state.is_up() || part.health == PartHealth::Unwell);
        let order = asked.ties.order();
        parts.sort_by_key(|part| order.get(&part.id).copied());
        Ok(parts)
    }
}

fn silent(about: &str) -> ReadError {
    ReadError::Silent { program: "systemctl", about: about.to_owned() }
}

fn value<'a>(block: &'a str, key: &str) -> Option<&'a str> {
    block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Prints one block per unit.
pub fn check<'a>(units: impl Iterator<Item = &'a String>) -> Call {
    let asked = ["LoadState", "ActiveState", "SubState", "Result", "InvocationID", "ExecMainStatus"]
        .into_iter()
        .chain(TIES.map(|(key, _)| key));
    let asked = asked.map(|key| format!("--property={key}"));
    let argv = ["systemctl", "show"].map(str::to_owned).into_iter().chain(asked);
    let argv = argv.chain(["--".to_owned()]).chain(units.cloned()).collect();
    Call { argv, env: Vec::new(), folder: None, limit: LOOK }
}

/// Whether these are targets.
pub fn is_target(group: &Group) -> bool {
    group.ids.iter().all(|id| id.ends_with(".target"))
}

/// Starts a target and nothing that it would pull in: that ran and is started by its own name, or was never stopped, or was
/// stopped by a person, whose it stays. What it takes is up by then, so no order is lost.
pub fn start_alone(group: &Group, limit: Duration) -> Call {
    let words = ["systemctl", "start", "--job-mode=ignore-dependencies", "--"];
    Call::new(words.into_iter().chain(group.ids.iter().map(String::as_str)), limit)
}

/// Whether it ended otherwise than by itself. A program that ends with a code of its own was not killed.
fn was_killed(block: &str) -> bool {
    matches!(value(block, "Result"), Some("timeout" | "signal" | "core-dump" | "oom-kill" | "watchdog"))
}

/// The exit code of a Java or shell program on SIGTERM: systemd calls that a failure unless the unit says otherwise.
const TERMINATED: &str = "143";

/// What the blocks say.
pub fn checked<'a>(
    units: impl Iterator<Item = &'a String>,
    said: &ProgramOutput,
) -> Result<Vec<Part>, ReadError> {
    let mut blocks = said.out.trim().split("\n\n");
    units
        .map(|unit| {
            let block = blocks.next().unwrap_or_default();
            let active = value(block, "ActiveState").ok_or_else(|| silent(unit))?;
            let run = value(block, "InvocationID").unwrap_or_default().to_owned();
            let (state, health) = match (value(block, "LoadState"), active) {
                (Some("not-found"), "inactive" | "failed") => (PartState::Gone, PartHealth::Silent),
                (_, "active" | "reloading" | "refreshing") => (PartState::Running, PartHealth::Silent),
                (_, "deactivating") => (PartState::Stopping, PartHealth::Silent),
                (_, "activating") if value(block, "SubState") == Some("auto-restart") => {
                    (PartState::Restarting, PartHealth::Unwell)
                }
                (_, "activating") => (PartState::Running, PartHealth::Starting),
                (_, "failed") if was_killed(block) => (PartState::Killed, PartHealth::Unwell),
                (_, "failed") => (PartState::Stopped, PartHealth::Unwell),
                _ => (PartState::Stopped, PartHealth::Silent),
            };
            let ending = match active {
                "failed" if value(block, "ExecMainStatus") != Some(TERMINATED) => Ending::Failure,
                "failed" | "inactive" => Ending::Clean,
                _ => Ending::Unknown,
            };
            Ok(Part { id: unit.clone(), name: unit.clone(), state, health, grace: None, run, ending })
        })
        .collect()
}
