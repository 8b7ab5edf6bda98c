//! `pve-sim fault`: hand edits by an administrator, and faults armed for the next call or worker that fits.
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use pve_sim::fault::admin::Edit;
use pve_sim::fault::control::{Order, Outcome, send};
use pve_sim::fault::{Aim, Fault};

/// What goes wrong.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The state folder of the running simulator.
    #[arg(long)]
    state: PathBuf,
    #[command(subcommand)]
    what: What,
}

/// Which call.
#[derive(Debug, Args)]
struct AimArguments {
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

#[derive(Debug, Subcommand)]
enum What {
    /// By hand: set options in a guest's configuration file.
    Set {
        /// The guest.
        vmid: u32,
        /// `key=value`, one or more.
        #[arg(required = true)]
        options: Vec<String>,
    },
    /// By hand: remove options, `lock` too.
    Unset {
        /// The guest.
        vmid: u32,
        /// The keys.
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// By hand: stop a guest at once.
    Stop {
        /// The guest.
        vmid: u32,
    },
    /// By hand: start a guest.
    Start {
        /// The guest.
        vmid: u32,
    },
    /// By hand: destroy a guest and its volumes.
    Destroy {
        /// The guest.
        vmid: u32,
    },
    /// By hand: remove a volume's files.
    RemoveVolume {
        /// Its id.
        volid: String,
    },
    /// Take a storage away.
    StorageOffline {
        /// Its name.
        storage: String,
    },
    /// Bring a storage back.
    StorageOnline {
        /// Its name.
        storage: String,
    },
    /// Reboot the node.
    Reboot,
    /// Lose a task from the index.
    ForgetTask {
        /// Its name.
        upid: String,
    },
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
    /// The next change of a guest finds its lock file held by another process.
    HeldConfig {
        /// The guest.
        vmid: u32,
    },
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
    /// Tell what is armed.
    List,
    /// Disarm everything.
    Clear,
    /// Carry out a script: one order in JSON a line.
    Script {
        /// The file.
        file: PathBuf,
    },
}

/// Sends the orders.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let socket = pve_sim::state::Paths::new(&arguments.state).control();
    for order in orders(arguments.what)? {
        match send(&socket, &order)? {
            Outcome::Done => {}
            Outcome::Armed(faults) => faults
                .iter()
                .try_for_each(|fault| serde_json::to_string(fault).map(|text| println!("{text}")))?,
            Outcome::Failed(why) => anyhow::bail!("{why}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn orders(what: What) -> anyhow::Result<Vec<Order>> {
    let edit = |edit| vec![Order::Edit(edit)];
    let arm = |fault| vec![Order::Arm(fault)];
    Ok(match what {
        What::Set { vmid, options } => {
            let pair = |text: &String| -> anyhow::Result<Order> {
                let (key, value) =
                    text.split_once('=').with_context(|| format!("`{text}` is not key=value"))?;
                Ok(Order::Edit(Edit::Set { vmid, key: key.to_owned(), value: value.to_owned() }))
            };
            options.iter().map(pair).collect::<Result<_, _>>()?
        }
        What::Unset { vmid, keys } => {
            keys.into_iter().map(|key| Order::Edit(Edit::Unset { vmid, key })).collect()
        }
        What::Stop { vmid } => edit(Edit::Stop { vmid }),
        What::Start { vmid } => edit(Edit::Start { vmid }),
        What::Destroy { vmid } => edit(Edit::Destroy { vmid }),
        What::RemoveVolume { volid } => edit(Edit::RemoveVolume { volid }),
        What::StorageOffline { storage } => edit(Edit::StorageOffline { storage }),
        What::StorageOnline { storage } => edit(Edit::StorageOnline { storage }),
        What::Reboot => edit(Edit::Reboot),
        What::ForgetTask { upid } => edit(Edit::ForgetTask { upid }),
        What::LostReply(on) => arm(Fault::LostReply { on: on.into() }),
        What::LostRequest(on) => arm(Fault::LostRequest { on: on.into() }),
        What::CutBody(on) => arm(Fault::CutBody { on: on.into() }),
        What::HtmlBody(on) => arm(Fault::HtmlBody { on: on.into() }),
        What::DaemonDown(on) => arm(Fault::DaemonDown { on: on.into() }),
        What::DaemonSlow(on) => arm(Fault::DaemonSlow { on: on.into() }),
        What::HeldConfig { vmid } => arm(Fault::HeldConfig { vmid }),
        What::KillWorker { task, phase } => arm(Fault::KillWorker { task, phase }),
        What::HoldWorker { task, phase, hold_ms } => arm(Fault::HoldWorker { task, phase, hold_ms }),
        What::List => vec![Order::List],
        What::Clear => vec![Order::Clear],
        What::Script { file } => {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("{} cannot be read", file.display()))?;
            let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
            lines
                .map(|line| serde_json::from_str(line).with_context(|| format!("not an order: {line}")))
                .collect::<Result<_, _>>()?
        }
    })
}
