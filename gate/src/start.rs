//! The check before each start of the agent.
//!
//! In: the state, what the agent downloaded, the slots. Out: the link that the unit starts, and a started watch where a
//! build is on trial. A start of a build on trial is counted on the disk before it happens. Where that cannot be stored,
//! the confirmed build starts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agent_slots::machine::{Event, next};
use agent_slots::start::{NoBuild, Program, choose, choose_settled};
use agent_slots::state::SlotsState;
use holdfast_protocol::json::chain;

use crate::failpoint::{self, Point};
use crate::settings::Settings;
use crate::slots_folder::{self, PROGRAM};
use crate::store::{Store, StoreError, Stored};
use crate::unit::{self, UnitError};
use crate::{clock, install};

/// Why the agent is not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Clock(#[from] clock::ClockError),
    #[error(transparent)]
    NoBuild(#[from] NoBuild),
    #[error("the link {} to the agent cannot be made", path.display())]
    Link {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Runs the check.
///
/// # Errors
/// [`StartError`]: no agent is started then.
pub fn run(settings: &Settings) -> Result<(), StartError> {
    let store = Store::lock(&settings.paths.slots)?;
    let keys = match settings.release_keys() {
        Ok(keys) => Some(keys),
        Err(error) => {
            eprintln!("{}", chain(&error));
            None
        }
    };
    let state = match store.read()? {
        Stored::State(state) => *state,
        Stored::Absent => SlotsState::default(),
        Stored::Damaged(error) => {
            let state = SlotsState::of_slots(slots_folder::signed_builds(store.folder(), keys.as_ref()));
            eprintln!(
                "the state of the slots was damaged and is made anew from the slots ({}): {}",
                store.path().display(),
                chain(&error)
            );
            state
        }
    };
    let state = install::offered(settings, &store, state.clone()).unwrap_or_else(|error| {
        eprintln!("{}", chain(&error));
        state
    });
    let (sound, faults) = slots_folder::judge(store.folder(), &state, keys.as_ref());
    for (slot, why) in faults {
        eprintln!("slot {} is not started: {why}", slot.as_str());
    }
    let start =
        Event::Start { packaged: settings.packaged, sound, now: clock::moment()?, at: Some(clock::wall()) };
    // An event that does not fit changes nothing; a start always fits.
    let started = next(&state, start).unwrap_or_else(|_| state.clone());
    let stored = if started == SlotsState::default() { Ok(()) } else { store.write(&started) };
    let (program, watched) = match stored {
        Ok(()) => (choose(&started, settings.packaged, sound)?, started.is_watched()),
        Err(error) => {
            eprintln!("a start could not be counted, so nothing is tried: {}", chain(&error));
            (choose_settled(&state, settings.packaged, sound)?, false)
        }
    };
    failpoint::at(settings, Point::StartCounted);
    if let Err(error) = slots_folder::tidy(store.folder(), &started) {
        eprintln!("what a failed build left cannot be removed: {}", chain(&error));
    }
    let to = program_path(settings, program);
    link(&settings.paths.link, &to)?;
    failpoint::at(settings, Point::LinkMade);
    println!("the agent is {}", to.display());
    if watched {
        unit::start_watch(settings)?;
        failpoint::at(settings, Point::WatchStarted);
    }
    Ok(())
}

/// Where a program lies.
#[must_use]
pub fn program_path(settings: &Settings, program: Program) -> PathBuf {
    match program {
        Program::Packaged => settings.paths.packaged.clone(),
        Program::InSlot(slot) => settings.paths.slots.join(slot.as_str()).join(PROGRAM),
    }
}

/// Makes the link anew, in one rename. It lies in memory and follows from the state, so no power cut can leave it old.
fn link(path: &Path, to: &Path) -> Result<(), StartError> {
    let failed = |source| StartError::Link { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
        // The agent's user must reach the link, and the unit's mask would close the folder.
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    let fresh = path.with_extension("new");
    match std::fs::remove_file(&fresh) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    std::os::unix::fs::symlink(to, &fresh).map_err(failed)?;
    std::fs::rename(&fresh, path).map_err(failed)
}
