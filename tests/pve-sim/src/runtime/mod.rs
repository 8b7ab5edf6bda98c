//! Runtimes of a guest: none, a process, or a container.
//!
//! In: a `GuestSpec`, drawn from the guest's configuration when it is started. Out: a running guest and its interfaces.
//! All calls block; callers with an event loop give them a thread of their own.
//! Deliberately absent: tasks, locks and Proxmox's messages, which belong to the callers.
//!
//! | runtime | needs | a running guest is |
//! | --- | --- | --- |
//! | [`Inert`] | nothing | an entry in a state file |
//! | [`Process`] | nothing | its own `guestd` as a child on a loopback address |
//! | [`Nspawn`] | root | its directory, booted by `systemd-nspawn` on a private bridge |

mod bridges;
mod error;
mod inert;
mod keeper;
mod leftover;
mod net;
mod nspawn;
mod process;
mod spec;

use std::time::Duration;

pub use bridges::{Bridge, BridgesError, bridges_of_interfaces};
pub use error::RuntimeError;
pub use inert::Inert;
pub use net::{Cidr, CidrError, Interface, Link, Net};
pub use nspawn::{Nspawn, NspawnSettings, listen_in_namespace};
pub use process::Process;
pub use spec::{Features, GuestMount, GuestSpec};

/// Whether a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It does not.
    Stopped,
    Running {
        /// The process that represents it on this machine, where there is one.
        pid: Option<u32>,
    },
}

/// How an orderly shutdown ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownOutcome {
    /// The guest went down by itself.
    Down,
    /// It still runs; the caller decides whether to stop it hard.
    StillRunning,
}

/// A guest that could not be started again.
#[derive(Debug)]
pub struct LostGuest {
    pub vmid: u32,
    pub reason: RuntimeError,
}

pub trait Runtime: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Starts a guest; starting one that runs is an error.
    fn start(&self, guest: &GuestSpec) -> Result<(), RuntimeError>;

    /// Ends a guest at once. Stopping one that does not run changes nothing.
    fn stop(&self, vmid: u32) -> Result<(), RuntimeError>;

    /// Requests an orderly shutdown of a guest, and waits for it at most `patience`.
    fn shutdown(&self, vmid: u32, patience: Duration) -> Result<ShutdownOutcome, RuntimeError>;

    /// Freezes every process of a running guest, and waits until all are frozen. A runtime whose guests are only a state
    /// entry or a controller has nothing to freeze.
    fn freeze(&self, _vmid: u32) -> Result<(), RuntimeError> {
        Ok(())
    }

    /// Lets a frozen guest continue. A guest that is not frozen keeps running.
    fn thaw(&self, _vmid: u32) -> Result<(), RuntimeError> {
        Ok(())
    }

    /// Whether a guest runs.
    fn state(&self, vmid: u32) -> RunState;

    /// The network interfaces of a running guest; nothing when it does not run.
    fn interfaces(&self, vmid: u32) -> Result<Option<Vec<Interface>>, RuntimeError>;

    /// After a restart of the simulator: ends whatever an earlier one left over, and starts the guests that should
    /// run. Those that cannot are named; the others run.
    fn reconcile(&self, should_run: &[GuestSpec]) -> Result<Vec<LostGuest>, RuntimeError>;

    /// Ends all guests and removes everything that was made for them outside the state directory.
    fn close(&self) -> Result<(), RuntimeError>;
}
