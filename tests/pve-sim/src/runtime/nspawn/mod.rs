//! Guests booted by `systemd-nspawn` on a private bridge.
//!
//! ```text
//!   network namespace hfsim-ID              network namespace hfsim-ID-VMID
//!   ┌────────────────────────────┐          ┌──────────────────────────────┐
//!   │ vmbr0 10.66.0.1/24         │          │ eth0 10.66.0.91/24           │
//!   │   └─ vethVMIDi0 ───────────┼──────────┼──┘   systemd-nspawn --boot   │
//!   │ lo   (API, agent, hub)     │          │ lo                           │
//!   └────────────────────────────┘          └──────────────────────────────┘
//! ```
//! Neither has a way out to the host's networks. The address and the route are set from outside, as LXC does. ID is
//! derived from the state directory, so several simulators can run next to each other. What a killed one left over is
//! found by its names and removed by the next one.
//! Deliberately absent: user namespaces; the guest's root is held by nspawn's own limits.

mod boot;
mod cgroup;
mod instance;
mod namespace;
mod network;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use self::boot::Place;
use self::instance::Instance;
pub use self::namespace::listen_in_namespace;
use self::network::Network;
use super::bridges::Bridge;
use super::error::RuntimeError;
use super::keeper::{Keeper, Target};
use super::net::Interface;
use super::spec::GuestSpec;
use super::{LostGuest, RunState, Runtime, ShutdownOutcome};

/// SIGKILL acts at once; longer than this means that a process hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// A process that waits for a disk freezes when the disk has answered.
const FREEZE_PATIENCE: Duration = Duration::from_secs(60);

/// What the runtime works with.
#[derive(Clone, Debug)]
pub struct NspawnSettings {
    /// An existing directory for logs; the instance's names are drawn from it.
    pub directory: PathBuf,
    /// The node's bridges.
    pub bridges: Vec<Bridge>,
}

/// Guests booted by `systemd-nspawn`.
pub struct Nspawn {
    directory: PathBuf,
    instance: Instance,
    network: Network,
    running: Mutex<BTreeMap<u32, BootedGuest>>,
}

struct BootedGuest {
    spec: GuestSpec,
    keeper: Keeper,
}

impl Nspawn {
    /// Whether this machine can run guests in this way; otherwise what is missing.
    pub fn is_possible() -> Result<(), String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        for program in ["systemd-nspawn", "ip", "unshare", "mount"] {
            let found = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
                .iter()
                .any(|directory| Path::new(directory).join(program).exists());
            if !found {
                return Err(format!("{program} is not installed"));
            }
        }
        Ok(())
    }

    /// Removes what killed simulators left over, and makes the node's network.
    pub fn open(settings: &NspawnSettings) -> Result<Self, RuntimeError> {
        let instance = Instance::claim(&settings.directory)?;
        let network = Network::create(&instance.namespace(), &settings.bridges)?;
        Ok(Self {
            directory: settings.directory.clone(),
            instance,
            network,
            running: Mutex::new(BTreeMap::new()),
        })
    }

    /// The node's network namespace: the API, an agent and its local API must live in it to be reached by guests.
    pub fn namespace_path(&self) -> PathBuf {
        namespace::path_of(&self.instance.namespace())
    }

    /// The file that a guest's console is written to.
    pub fn log_path(&self, vmid: u32) -> PathBuf {
        self.directory.join(format!("{vmid}.log"))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, BootedGuest>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self, guest: &GuestSpec) -> Result<BootedGuest, RuntimeError> {
        guest.check()?;
        let namespace = self.instance.guest_namespace(guest.vmid);
        self.network.plug(&namespace, guest)?;
        let place = Place {
            namespace: namespace.clone(),
            machine: namespace.clone(),
            cgroup: self.instance.cgroup(guest.vmid),
            log: self.log_path(guest.vmid),
            record: self.instance.record(guest.vmid),
        };
        match boot::start(guest, place) {
            Ok(keeper) => Ok(BootedGuest { spec: guest.clone(), keeper }),
            Err(error) => {
                self.clear(guest)?;
                Err(error)
            }
        }
    }

    /// Removes what a guest that ended has outside its directory.
    fn clear(&self, guest: &GuestSpec) -> Result<(), RuntimeError> {
        let namespace = self.instance.guest_namespace(guest.vmid);
        cgroup::end_and_remove(&self.instance.cgroup(guest.vmid))?;
        self.network.unplug(&namespace, guest.vmid)?;
        boot::remove_traces(&guest.rootfs, &namespace)
    }

    fn end(
        &self,
        vmid: u32,
        (signal, target): (Signal, Target),
        patience: Duration,
    ) -> Result<ShutdownOutcome, RuntimeError> {
        let Some(mut guest) = self.lock().remove(&vmid) else { return Ok(ShutdownOutcome::Down) };
        // Not under the lock: a slow shutdown of one guest must not hold up the others.
        if guest.keeper.end(signal, target, patience) {
            self.clear(&guest.spec)?;
            return Ok(ShutdownOutcome::Down);
        }
        self.lock().insert(vmid, guest);
        Ok(ShutdownOutcome::StillRunning)
    }

    fn is_running(&self, vmid: u32) -> bool {
        self.state(vmid) != RunState::Stopped
    }
}

impl Runtime for Nspawn {
    fn name(&self) -> &'static str {
        "nspawn"
    }

    fn start(&self, guest: &GuestSpec) -> Result<(), RuntimeError> {
        if self.is_running(guest.vmid) {
            return Err(RuntimeError::AlreadyRunning { vmid: guest.vmid });
        }
        // A guest that switched itself off is still in the book, and its network still there.
        self.stop(guest.vmid)?;
        let booted = self.launch(guest)?;
        self.lock().insert(guest.vmid, booted);
        Ok(())
    }

    fn stop(&self, vmid: u32) -> Result<(), RuntimeError> {
        match self.end(vmid, (Signal::KILL, Target::Group), KILL_PATIENCE)? {
            ShutdownOutcome::Down => Ok(()),
            ShutdownOutcome::StillRunning => {
                Err(RuntimeError::TooSlow { vmid, what: "stop", seconds: KILL_PATIENCE.as_secs() })
            }
        }
    }

    fn shutdown(&self, vmid: u32, patience: Duration) -> Result<ShutdownOutcome, RuntimeError> {
        // nspawn hands the request on to the guest's own init.
        self.end(vmid, (Signal::TERM, Target::Child), patience)
    }

    fn freeze(&self, vmid: u32) -> Result<(), RuntimeError> {
        if !self.is_running(vmid) {
            return Ok(());
        }
        if cgroup::freeze(&self.instance.cgroup(vmid), FREEZE_PATIENCE)? {
            return Ok(());
        }
        cgroup::thaw(&self.instance.cgroup(vmid))?;
        Err(RuntimeError::TooSlow { vmid, what: "freeze", seconds: FREEZE_PATIENCE.as_secs() })
    }

    fn thaw(&self, vmid: u32) -> Result<(), RuntimeError> {
        cgroup::thaw(&self.instance.cgroup(vmid))
    }

    fn state(&self, vmid: u32) -> RunState {
        match self.lock().get(&vmid) {
            Some(guest) if !guest.keeper.has_ended() => RunState::Running { pid: guest.keeper.pid() },
            _ => RunState::Stopped,
        }
    }

    fn interfaces(&self, vmid: u32) -> Result<Option<Vec<Interface>>, RuntimeError> {
        if !self.is_running(vmid) {
            return Ok(None);
        }
        network::interfaces(&self.instance.guest_namespace(vmid)).map(Some)
    }

    fn reconcile(&self, should_run: &[GuestSpec]) -> Result<Vec<LostGuest>, RuntimeError> {
        // Leftovers were ended when the instance was claimed: they held the names that this one uses.
        let mut lost = Vec::new();
        for guest in should_run {
            if let Err(reason) = self.start(guest) {
                lost.push(LostGuest { vmid: guest.vmid, reason });
            }
        }
        Ok(lost)
    }

    fn close(&self) -> Result<(), RuntimeError> {
        let vmids: Vec<u32> = self.lock().values().map(|guest| guest.spec.vmid).collect();
        for vmid in vmids {
            self.stop(vmid)?;
        }
        self.instance.release()
    }
}

#[cfg(test)]
mod tests;
