//! Why a guest could not be run.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Why a guest could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// It runs already.
    #[error("guest {vmid} runs already")]
    AlreadyRunning { vmid: u32 },
    /// Its configuration names a bridge that the node has not.
    #[error("bridge '{bridge}' does not exist")]
    NoBridge {
        /// The missing bridge.
        bridge: String,
    },
    /// Without root a guest can only have an address of its own on the loopback network.
    #[error("guest {vmid} has the address {address}; the process runtime needs one in 127.0.0.0/8")]
    NotLoopback { vmid: u32, address: Ipv4Addr },
    /// Two interfaces of one guest have one name.
    #[error("guest {vmid} has two interfaces named {interface}")]
    DuplicateInterface { vmid: u32, interface: String },
    /// A name in the guest's configuration cannot be handed to a program safely.
    #[error("guest {vmid}: {what} `{value}` is refused")]
    BadValue {
        vmid: u32,
        /// What kind of value.
        what: &'static str,
        value: String,
    },
    /// The directory has nothing that could be booted.
    #[error("guest {vmid} has no init to boot")]
    NoInit { vmid: u32 },
    /// The guest's first process ended while it was starting.
    #[error("guest {vmid} ended while it was starting; its last words: {last_words}")]
    EndedEarly {
        vmid: u32,
        /// The end of its log.
        last_words: String,
    },
    /// The guest did not come up, or did not go down, in time.
    #[error("guest {vmid} did not {what} within {seconds} s")]
    TooSlow {
        vmid: u32,
        /// What it should have done.
        what: &'static str,
        seconds: u64,
    },
    /// A program that is needed could not be run.
    #[error("{program} could not be run; install it, or use another runtime")]
    Program {
        program: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A required program failed.
    #[error("`{command}` failed: {message}")]
    Refused {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// The system refused something.
    #[error("{what} failed for {}", path.display())]
    System {
        /// What was tried.
        what: &'static str,
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Another instance works on the same state.
    #[error("another simulator, process {pid}, runs guests from {}; stop it first", directory.display())]
    InUse {
        /// The other one.
        pid: u32,
        /// The directory that both want.
        directory: PathBuf,
    },
}

impl RuntimeError {
    /// For `map_err` on system calls.
    pub(super) fn system(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::System { what, path, source }
    }
}
