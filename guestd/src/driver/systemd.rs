//! Units of systemd: `systemctl show` tells how they are, one block a unit, in the order asked for.

use super::{Driver, Engine, LOOK, Part, PartHealth, PartState, ReadError};
use crate::program::{Call, Said};

/// Units, as they are looked at.
pub struct Units {
    units: Vec<String>,
}

impl Units {
    pub fn new(units: &[String]) -> Self {
        Self { units: units.to_vec() }
    }
}

impl Driver for Units {
    fn engine(&self) -> Engine {
        Engine::Systemd
    }

    fn look(&self) -> Vec<Call> {
        vec![check(self.units.iter())]
    }

    fn parts(&self, said: &[Said]) -> Result<Vec<Part>, ReadError> {
        let said = said.first().ok_or_else(|| silent("its units"))?;
        let parts = checked(self.units.iter(), said)?;
        match parts.iter().find(|part| part.state == PartState::Gone) {
            Some(part) => Err(ReadError::NoUnit { unit: part.id.clone() }),
            None => Ok(parts),
        }
    }
}

fn silent(about: &str) -> ReadError {
    ReadError::Silent { program: "systemctl", about: about.to_owned() }
}

/// Asks for one block a unit.
pub fn check<'a>(units: impl Iterator<Item = &'a String>) -> Call {
    let words = ["systemctl", "show", "--property=LoadState", "--property=ActiveState", "--"];
    Call::new(words.into_iter().chain(units.map(String::as_str)), LOOK)
}

/// What the blocks say.
pub fn checked<'a>(units: impl Iterator<Item = &'a String>, said: &Said) -> Result<Vec<Part>, ReadError> {
    let mut blocks = said.out.trim().split("\n\n");
    units
        .map(|unit| {
            let block = blocks.next().unwrap_or_default();
            let value = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            let active = value("ActiveState").ok_or_else(|| silent(unit))?;
            let (state, says) = match (value("LoadState"), active) {
                (Some("not-found"), "inactive" | "failed") => (PartState::Gone, PartHealth::Silent),
                (_, "active" | "reloading" | "refreshing") => (PartState::Running, PartHealth::Silent),
                (_, "activating") => (PartState::Running, PartHealth::Starting),
                (_, "failed") => (PartState::Stopped, PartHealth::Unwell),
                _ => (PartState::Stopped, PartHealth::Silent),
            };
            Ok(Part { id: unit.clone(), name: unit.clone(), state, says })
        })
        .collect()
}
