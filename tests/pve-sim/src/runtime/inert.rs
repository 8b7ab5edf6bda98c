//! Guests without a process.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::error::RuntimeError;
use super::net::Interface;
use super::spec::GuestSpec;
use super::{LostGuest, RunState, Runtime, ShutdownOutcome};

/// Guests that are only reported as running.
pub struct Inert {
    file: PathBuf,
    running: Mutex<BTreeMap<u32, Vec<Interface>>>,
}

impl Inert {
    /// Keeps its state in `running.json` in an existing directory. Until `reconcile`, no guest runs.
    pub fn new(directory: &Path) -> Self {
        Self { file: directory.join("running.json"), running: Mutex::new(BTreeMap::new()) }
    }

    /// The guests that ran when the state was last written, for callers that keep no record of their own.
    pub fn remembered(&self) -> Result<Vec<u32>, RuntimeError> {
        let bytes = match std::fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(RuntimeError::system("reading", &self.file)(error)),
        };
        serde_json::from_slice(&bytes)
            .map_err(std::io::Error::from)
            .map_err(RuntimeError::system("reading", &self.file))
    }

    /// Changes who runs: first on disk, then in memory.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<u32, Vec<Interface>>)) -> Result<(), RuntimeError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = running.clone();
        change(&mut next);
        let vmids: Vec<u32> = next.keys().copied().collect();
        let failed = || RuntimeError::system("writing", &self.file);
        let text = serde_json::to_vec(&vmids).map_err(std::io::Error::from).map_err(failed())?;
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let mut fresh = tempfile::NamedTempFile::new_in(directory).map_err(failed())?;
        fresh.write_all(&text).map_err(failed())?;
        fresh.persist(&self.file).map_err(|error| failed()(error.error))?;
        *running = next;
        Ok(())
    }
}

fn interfaces_of(guest: &GuestSpec) -> Vec<Interface> {
    let own = guest.nets.iter().map(Interface::as_wanted);
    std::iter::once(Interface::loopback(Vec::new())).chain(own).collect()
}

impl Runtime for Inert {
    fn name(&self) -> &'static str {
        "inert"
    }

    fn start(&self, guest: &GuestSpec) -> Result<(), RuntimeError> {
        guest.check()?;
        if self.state(guest.vmid) != RunState::Stopped {
            return Err(RuntimeError::AlreadyRunning { vmid: guest.vmid });
        }
        self.change(|running| {
            running.insert(guest.vmid, interfaces_of(guest));
        })
    }

    fn stop(&self, vmid: u32) -> Result<(), RuntimeError> {
        self.change(|running| {
            running.remove(&vmid);
        })
    }

    fn shutdown(&self, vmid: u32, _patience: Duration) -> Result<ShutdownOutcome, RuntimeError> {
        self.stop(vmid)?;
        Ok(ShutdownOutcome::Down)
    }

    fn state(&self, vmid: u32) -> RunState {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.contains_key(&vmid) { RunState::Running { pid: None } } else { RunState::Stopped }
    }

    fn interfaces(&self, vmid: u32) -> Result<Option<Vec<Interface>>, RuntimeError> {
        Ok(self.running.lock().unwrap_or_else(PoisonError::into_inner).get(&vmid).cloned())
    }

    fn reconcile(&self, should_run: &[GuestSpec]) -> Result<Vec<LostGuest>, RuntimeError> {
        let wanted = should_run.iter().map(|guest| (guest.vmid, interfaces_of(guest))).collect();
        self.change(|running| *running = wanted)?;
        Ok(Vec::new())
    }

    fn close(&self) -> Result<(), RuntimeError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::spec::tests::guest;

    #[test]
    fn the_word_survives_a_restart() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let first = Inert::new(folder.path());
        first.start(&guest(100, folder.path())).expect("started");
        first.start(&guest(101, folder.path())).expect("started");
        first.stop(101).expect("stopped");
        let second = Inert::new(folder.path());
        assert_eq!(second.remembered().expect("read"), [100]);
        assert_eq!(second.state(100), RunState::Stopped);
        second.reconcile(&[guest(100, folder.path())]).expect("reconciled");
        assert_eq!(second.state(100), RunState::Running { pid: None });
        let interfaces = second.interfaces(100).expect("seen").expect("running");
        assert_eq!(interfaces[1].addresses[0].0.to_string(), "127.66.0.91");
    }

    #[test]
    fn a_second_start_is_refused_and_a_second_stop_is_not() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let runtime = Inert::new(folder.path());
        runtime.start(&guest(100, folder.path())).expect("started");
        let error = runtime.start(&guest(100, folder.path())).expect_err("refused");
        assert!(matches!(error, RuntimeError::AlreadyRunning { vmid: 100 }));
        runtime.stop(100).expect("stopped");
        runtime.stop(100).expect("stopped again");
        assert_eq!(runtime.interfaces(100).expect("seen"), None);
    }
}
