//! Units of systemd: `systemctl show` tells how they are, one block a unit, in the order asked for.
//!
//! What is `PartOf=` a unit belongs to it. systemd stops such units together with theirs, but who stops only that one does
//! not wait for them: Debian's `postgresql.service` is inactive while its clusters still write. So they are parts, too, and
//! each is stopped and started by its own name.

use super::{Driver, Engine, LOOK, Part, PartHealth, PartState, ReadError};
use crate::program::{Call, Said};

/// A stack has so many units at most, those that belong to its own with them.
const PARTS_MAX: usize = 128;

/// Units, as they are looked at.
pub struct Units {
    units: Vec<String>,
}

impl Units {
    pub fn new(units: &[String]) -> Self {
        Self { units: units.to_vec() }
    }

    /// Which units each answer is about, and those that are known to belong to them and were not asked about yet.
    fn asked(&self, said: &[Said]) -> (Vec<Vec<String>>, Vec<String>) {
        let (mut rounds, mut next) = (Vec::new(), self.units.clone());
        let mut known = next.clone();
        for answer in said {
            let blocks = answer.out.trim().split("\n\n");
            let mut mentioned: Vec<String> = blocks
                .filter_map(|block| value(block, "ConsistsOf"))
                .flat_map(str::split_ascii_whitespace)
                .map(str::to_owned)
                .collect();
            mentioned.sort_unstable();
            mentioned.dedup();
            mentioned.retain(|unit| !known.contains(unit));
            mentioned.truncate(PARTS_MAX.saturating_sub(known.len()));
            known.extend(mentioned.iter().cloned());
            rounds.push(std::mem::replace(&mut next, mentioned));
        }
        (rounds, next)
    }
}

impl Driver for Units {
    fn engine(&self) -> Engine {
        Engine::Systemd
    }

    fn look(&self) -> Vec<Call> {
        vec![check(self.units.iter())]
    }

    fn look_on(&self, said: &[Said]) -> Vec<Call> {
        let (_, next) = self.asked(said);
        if next.is_empty() { Vec::new() } else { vec![check(next.iter())] }
    }

    /// Those that belong to a unit come before it: they are up when it starts, and waited for when it stops.
    fn parts(&self, said: &[Said]) -> Result<Vec<Part>, ReadError> {
        if said.is_empty() {
            return Err(silent("its units"));
        }
        let (rounds, _) = self.asked(said);
        let mut parts = Vec::new();
        for (units, answer) in rounds.iter().zip(said).rev() {
            parts.extend(checked(units.iter(), answer)?);
        }
        let own = |part: &Part| self.units.contains(&part.id);
        if let Some(part) = parts.iter().find(|part| own(part) && part.state == PartState::Gone) {
            return Err(ReadError::NoUnit { unit: part.id.clone() });
        }
        // Nobody named these: one that does not run, and did not fail, is not missed.
        parts.retain(|part| own(part) || part.state.is_up() || part.says == PartHealth::Unwell);
        Ok(parts)
    }
}

fn silent(about: &str) -> ReadError {
    ReadError::Silent { program: "systemctl", about: about.to_owned() }
}

fn value<'a>(block: &'a str, key: &str) -> Option<&'a str> {
    block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Asks for one block a unit.
pub fn check<'a>(units: impl Iterator<Item = &'a String>) -> Call {
    let words =
        ["systemctl", "show", "--property=LoadState", "--property=ActiveState", "--property=ConsistsOf"];
    Call::new(words.into_iter().chain(["--"]).chain(units.map(String::as_str)), LOOK)
}

/// What the blocks say.
pub fn checked<'a>(units: impl Iterator<Item = &'a String>, said: &Said) -> Result<Vec<Part>, ReadError> {
    let mut blocks = said.out.trim().split("\n\n");
    units
        .map(|unit| {
            let block = blocks.next().unwrap_or_default();
            let active = value(block, "ActiveState").ok_or_else(|| silent(unit))?;
            let (state, says) = match (value(block, "LoadState"), active) {
                (Some("not-found"), "inactive" | "failed") => (PartState::Gone, PartHealth::Silent),
                (_, "active" | "reloading" | "refreshing") => (PartState::Running, PartHealth::Silent),
                (_, "deactivating") => (PartState::Stopping, PartHealth::Silent),
                (_, "activating") => (PartState::Running, PartHealth::Starting),
                (_, "failed") => (PartState::Stopped, PartHealth::Unwell),
                _ => (PartState::Stopped, PartHealth::Silent),
            };
            Ok(Part { id: unit.clone(), name: unit.clone(), state, says })
        })
        .collect()
}
