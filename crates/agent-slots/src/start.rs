//! The build that a start runs.
//!
//! In: a state, the version of the package's build, and which slots hold the bytes that were signed. Out: one program,
//! or that none may run. A build below the floor never runs: its database may be newer than it can read.

use holdfast_protocol::release::VersionNumber;

use crate::state::{Slot, SlotsState};

/// Which slots hold what was signed, as the gate has just read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound {
    pub a: Soundness,
    pub b: Soundness,
}

/// Whether a slot's program is the signed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Soundness {
    /// Its digest and its release's signatures were checked.
    Checked,
    /// It is missing, changed, or nobody's key signed it.
    #[default]
    Unusable,
}

impl Sound {
    /// Whether a slot can be started.
    #[must_use]
    pub fn holds(self, slot: Slot) -> bool {
        let of = match slot {
            Slot::A => self.a,
            Slot::B => self.b,
        };
        of == Soundness::Checked
    }

    /// With one slot judged.
    #[must_use]
    pub const fn with(mut self, slot: Slot, soundness: Soundness) -> Self {
        match slot {
            Slot::A => self.a = soundness,
            Slot::B => self.b = soundness,
        }
        self
    }
}

/// A program that may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// The one that the package installed.
    Packaged,
    /// The one in a slot.
    InSlot(Slot),
}

/// No build may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "no agent may run: the confirmed build is damaged, and the package's version {packaged} is below {floor}, which was \
     confirmed here; install a package of {floor} or newer (`apt install holdfast-agent`)"
)]
pub struct NoBuild {
    pub packaged: VersionNumber,
    pub floor: VersionNumber,
}

/// Chooses after [`Event::Start`](crate::Event::Start) was applied and stored.
///
/// # Errors
/// [`NoBuild`].
pub fn choose(state: &SlotsState, packaged: VersionNumber, sound: Sound) -> Result<Program, NoBuild> {
    if let Some(trial) = &state.trial {
        return Ok(Program::InSlot(trial.slot));
    }
    choose_settled(state, packaged, sound)
}

/// The same as if nothing were on trial: for a start whose count could not be stored.
///
/// # Errors
/// [`NoBuild`].
pub fn choose_settled(state: &SlotsState, packaged: VersionNumber, sound: Sound) -> Result<Program, NoBuild> {
    let confirmed = state.confirmed.filter(|slot| sound.holds(*slot));
    let newer =
        confirmed.filter(|slot| state.content(*slot).build().is_some_and(|build| build.version > packaged));
    match (newer, state.floor) {
        (Some(slot), _) => Ok(Program::InSlot(slot)),
        (None, Some(floor)) if packaged < floor => Err(NoBuild { packaged, floor }),
        (None, _) => Ok(Program::Packaged),
    }
}
