//! Which guests run, since when, and whether they are frozen.
//!
//! In: starts and stops from the calls. Out: who runs. The work is done by a [`Runtime`]; this module keeps a mark per running guest in
//! `STATE/run/guests`, so that a restart of the simulator starts them again, as a node would not but a debugger of one wants.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::runtime::{GuestSpec, Interface, RunState, Runtime, RuntimeError, ShutdownOutcome};

/// A running guest.
#[derive(Debug, Clone)]
pub struct Running {
    /// Since when, in seconds that pass evenly: no clock that is set moves them.
    pub since_s: i64,
    /// Frozen by a backup or a snapshot; the API still says `running`.
    pub frozen: bool,
    /// The process that represents it.
    pub pid: u32,
}

/// The record of running guests.
pub struct Power {
    runtime: Box<dyn Runtime>,
    marks: PathBuf,
    held: Mutex<BTreeMap<u32, Running>>,
}

impl std::fmt::Debug for Power {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Power")
            .field("runtime", &self.runtime.name())
            .field("held", &self.lock())
            .finish_non_exhaustive()
    }
}

impl Power {
    /// With this runtime; marks are kept in this folder.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(runtime: Box<dyn Runtime>, marks: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(marks)?;
        Ok(Self { runtime, marks: marks.to_owned(), held: Mutex::default() })
    }

    /// Guests that ran when the simulator ended, and since when.
    ///
    /// # Errors
    /// When the marks cannot be read.
    pub fn marked(&self) -> std::io::Result<BTreeMap<u32, i64>> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&self.marks)? {
            let entry = entry?;
            if let Some(vmid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) {
                found.insert(vmid, std::fs::read_to_string(entry.path())?.trim().parse().unwrap_or_default());
            }
        }
        Ok(found)
    }

    /// Brings the runtime in line with the marks after a restart. Guests that do not come up are logged and forgotten.
    ///
    /// # Errors
    /// When the runtime or the marks fail altogether.
    pub fn resume(&self, specs: &[GuestSpec]) -> Result<(), RuntimeError> {
        let marked = self.marked().unwrap_or_default();
        let lost = self.runtime.reconcile(specs)?;
        for guest in &lost {
            tracing::warn!(vmid = guest.vmid, error = %guest.reason, "guest did not come up again");
        }
        for (vmid, since_s) in marked {
            match self.runtime.state(vmid) {
                RunState::Running { pid } => drop(self.lock().insert(
                    vmid,
                    Running { since_s, frozen: false, pid: pid.unwrap_or_else(|| stand_in(vmid)) },
                )),
                RunState::Stopped => self.forget(vmid),
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Running>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A running guest.
    #[must_use]
    pub fn running(&self, vmid: u32) -> Option<Running> {
        let known = self.lock().get(&vmid).cloned()?;
        match self.runtime.state(vmid) {
            RunState::Running { .. } => Some(known),
            RunState::Stopped => {
                // It ended by itself, as a guest may.
                self.forget(vmid);
                None
            }
        }
    }

    /// Whether a guest runs.
    #[must_use]
    pub fn is_running(&self, vmid: u32) -> bool {
        self.running(vmid).is_some()
    }

    fn forget(&self, vmid: u32) {
        self.lock().remove(&vmid);
        let _ = std::fs::remove_file(self.marks.join(vmid.to_string()));
    }

    /// Starts a guest.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn start(&self, spec: &GuestSpec, now_s: i64) -> Result<(), RuntimeError> {
        self.runtime.start(spec)?;
        let mark = self.marks.join(spec.vmid.to_string());
        if let Err(error) = std::fs::write(&mark, now_s.to_string()) {
            tracing::error!(vmid = spec.vmid, %error, "mark of a running guest not written");
        }
        let pid = match self.runtime.state(spec.vmid) {
            RunState::Running { pid: Some(pid) } => pid,
            _ => stand_in(spec.vmid),
        };
        self.lock().insert(spec.vmid, Running { since_s: now_s, frozen: false, pid });
        Ok(())
    }

    /// Stops a guest at once.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn stop(&self, vmid: u32) -> Result<(), RuntimeError> {
        self.runtime.stop(vmid)?;
        self.forget(vmid);
        Ok(())
    }

    /// Requests an orderly shutdown of a guest and returns whether it went down.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn shutdown(&self, vmid: u32, patience: Duration) -> Result<bool, RuntimeError> {
        let down = self.runtime.shutdown(vmid, patience)? == ShutdownOutcome::Down;
        if down {
            self.forget(vmid);
        }
        Ok(down)
    }

    /// The interfaces of a running guest.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn interfaces(&self, vmid: u32) -> Result<Option<Vec<Interface>>, RuntimeError> {
        self.runtime.interfaces(vmid)
    }

    /// Freezes a guest.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn freeze(&self, vmid: u32) -> Result<(), RuntimeError> {
        self.runtime.freeze(vmid)?;
        self.note_frozen(vmid, true);
        Ok(())
    }

    /// Lets a frozen guest continue.
    pub fn thaw(&self, vmid: u32) {
        if let Err(error) = self.runtime.thaw(vmid) {
            tracing::error!(vmid, %error, "guest still frozen");
            return;
        }
        self.note_frozen(vmid, false);
    }

    fn note_frozen(&self, vmid: u32, frozen: bool) {
        if let Some(running) = self.lock().get_mut(&vmid) {
            running.frozen = frozen;
        }
    }

    /// All running guests.
    #[must_use]
    pub fn all(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    /// Ends all guests but keeps the marks: the simulator ends, but the node's state stays.
    pub fn close(&self) {
        if let Err(error) = self.runtime.close() {
            tracing::warn!(%error, "guests could not all be ended");
        }
    }
}

/// A number that looks like a process id, for a guest without a process.
const fn stand_in(vmid: u32) -> u32 {
    4_000 + vmid % 20_000
}
