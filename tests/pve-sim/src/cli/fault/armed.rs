//! Armed faults as command-line arguments.
use clap::{Args, Subcommand};
use pve_sim::fault::{Aim, Fault};

/// Which call.
#[derive(Debug, Args)]
pub struct AimArguments {
    /// `POST`, …; any by default.
    #[arg(long, default_value = "")]
    method: String,
    /// A part of the path; any by default.
    #[arg(long, default_value = "")]
    path: String,
}

impl From<AimArguments> for Aim {
    fn from(aim: AimArguments) -> Self {
        Self { method: aim.method, path: aim.path }
    }
}

/// A fault.
#[derive(Debug, Subcommand)]
pub enum Armed {
    /// The next call that fits takes effect, its answer is lost.
    LostReply(AimArguments),
    /// The next call that fits is lost before it takes effect.
    LostRequest(AimArguments),
    /// Half of the next answer arrives.
    CutBody(AimArguments),
    /// A proxy's HTML page instead of the next answer.
    HtmlBody(AimArguments),
    /// 595 for the next call.
    DaemonDown(AimArguments),
    /// 596 for the next call, which takes effect all the same.
    DaemonSlow(AimArguments),
    /// 401 for the next call.
    Unauthorised(AimArguments),
    /// 503 for the next call.
    Unavailable(AimArguments),
    /// The cluster's file system is down for the next call.
    NoClusterFiles(AimArguments),
    /// The daemon restarts: so many calls get no answer.
    Outage {
        /// How many.
        calls: u32,
    },
    /// The next change of a guest finds its lock file held by another process.
    HeldConfig {
        /// The guest.
        vmid: u32,
    },
    /// The next backup job does not get the node's lock.
    HeldBackups,
    /// Kill the next worker of a kind, at once or in a phase.
    KillWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
        /// The phase.
        #[arg(default_value = "")]
        phase: String,
    },
    /// Keep the next worker of a kind in a phase.
    HoldWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
        /// The phase.
        phase: String,
        /// How long, in milliseconds.
        hold_ms: u64,
    },
    /// The next worker of a kind fails, at once or in a phase, and cleans up.
    FailWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
        /// The error text.
        text: String,
        /// The phase.
        #[arg(default_value = "")]
        phase: String,
    },
    /// The next worker of a kind does its work and ends with `unexpected status`.
    UnknownEnd {
        /// `vzdump`, `vzrestore`, …
        task: String,
    },
    /// The next worker of a kind does its work, and its task is gone from the index.
    VanishTask {
        /// `vzdump`, `vzrestore`, …
        task: String,
    },
    /// The next worker of a kind ends with a warning.
    WarnWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
    },
    /// The next destroy of a guest ends OK and leaves a volume.
    KeepVolume {
        /// The guest.
        vmid: u32,
    },
    /// The next resize of a guest ends OK and nothing grew.
    NoGrow {
        /// The guest.
        vmid: u32,
    },
    /// The next backup of a guest ends OK and there is no archive.
    NoArchive {
        /// The guest.
        vmid: u32,
    },
    /// The line to the backup server is cut in the next backup of a guest.
    CutUpload {
        /// The guest.
        vmid: u32,
    },
    /// The next backup of a guest fails, and its archive appears later all the same.
    OrphanBackup {
        /// The guest.
        vmid: u32,
        /// How much later, in milliseconds.
        after_ms: u64,
    },
}

impl From<Armed> for Fault {
    fn from(armed: Armed) -> Self {
        match armed {
            Armed::LostReply(on) => Self::LostReply { on: on.into() },
            Armed::LostRequest(on) => Self::LostRequest { on: on.into() },
            Armed::CutBody(on) => Self::CutBody { on: on.into() },
            Armed::HtmlBody(on) => Self::HtmlBody { on: on.into() },
            Armed::DaemonDown(on) => Self::DaemonDown { on: on.into() },
            Armed::DaemonSlow(on) => Self::DaemonSlow { on: on.into() },
            Armed::Unauthorised(on) => Self::Unauthorised { on: on.into() },
            Armed::Unavailable(on) => Self::Unavailable { on: on.into() },
            Armed::NoClusterFiles(on) => Self::NoClusterFiles { on: on.into() },
            Armed::Outage { calls } => Self::Outage { calls },
            Armed::HeldConfig { vmid } => Self::HeldConfig { vmid },
            Armed::HeldBackups => Self::HeldBackups,
            Armed::KillWorker { task, phase } => Self::KillWorker { task, phase },
            Armed::HoldWorker { task, phase, hold_ms } => Self::HoldWorker { task, phase, hold_ms },
            Armed::FailWorker { task, text, phase } => Self::FailWorker { task, phase, text },
            Armed::UnknownEnd { task } => Self::UnknownEnd { task },
            Armed::VanishTask { task } => Self::VanishTask { task },
            Armed::WarnWorker { task } => Self::WarnWorker { task },
            Armed::KeepVolume { vmid } => Self::KeepVolume { vmid },
            Armed::NoGrow { vmid } => Self::NoGrow { vmid },
            Armed::NoArchive { vmid } => Self::NoArchive { vmid },
            Armed::CutUpload { vmid } => Self::CutUpload { vmid },
            Armed::OrphanBackup { vmid, after_ms } => Self::OrphanBackup { vmid, after_ms },
        }
    }
}
