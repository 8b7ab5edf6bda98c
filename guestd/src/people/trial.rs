//! `guestd try -- COMMAND`: a snapshot, the command, the health of the stacks, and back to the snapshot when one of the two is
//! not well.
//!
//! ```text
//! look what is well ─ say the plan ─ snapshot ─ command ─ health ─┬─ well: the snapshot goes when its time is over
//!                          └── no snapshot: nothing is run        └─ not well: rollback, and the guest restarts
//! ```
//! Exit codes: 0 kept; 1 nothing was run; 10 the rollback is under way (the guest restarts, so nobody may see this);
//! 11 the rollback was refused, and the guest is as the command left it. Only stacks that were well before are asked for. A
//! lost terminal, an interrupt or a SIGTERM ends the command, and the rest goes on.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::work::SnapshotRequest;
use holdfast_protocol::operation::OperationStatus;
use rustix::process::{Pid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NOT_ROLLED_BACK, EXIT_ROLLED_BACK, Output, TryArgs};
use crate::clock;
use crate::people::tried;
use crate::people::well::{self, Back, When};
use crate::place::Place;
use crate::stacks::{self, Stacks, StacksError};
use crate::work::{Session, WorkError, told_end};

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("nothing was run")]
    Work(#[from] WorkError),
    #[error("nothing was run")]
    Stacks(#[from] StacksError),
    #[error("nothing was run: no snapshot was taken: {said}")]
    NoSnapshot { said: String },
    #[error("nothing was run: signals cannot be waited for")]
    Signal(#[source] io::Error),
    #[error("nothing was run: it was interrupted; the snapshot goes when its time is over")]
    Interrupted,
}

impl TrialError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Work(error) => error.exit_code(),
            _ => EXIT_FAILED,
        }
    }
}

/// `guestd try`.
pub async fn trial(args: &TryArgs) -> Result<u8, TrialError> {
    let place = Place::new(&args.place.root);
    let session = Session::open(&args.place)?;
    let stacks = stacks::load(&place)?;
    let volumes = volumes(&session, &stacks).await?;
    // Apt takes no snapshot of its own while this goes on, and nobody else judges what it did.
    let _tried = tried::begin(&place);
    let well = well::well_now(&place, &stacks, &volumes).await;
    let name = name();
    let line: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    aside!("guestd: 1. a snapshot of this guest");
    aside!("guestd: 2. {}", line.join(" "));
    aside!("guestd: 3. these stacks must be well after it: {}", well::names(&well));
    aside!(
        "guestd: if 2 or 3 fails, the guest goes back to the snapshot and restarts: what is written from now on is lost"
    );
    let mut ends = Ends::new().map_err(TrialError::Signal)?;
    let keep_s = args.keep_hours.map(|hours| hours.saturating_mul(3_600));
    let wish = SnapshotRequest { guest: None, name, keep_s };
    let accepted = session.ask("/v1/snapshots", &wish).await?;
    let view = session.follow(accepted.operation, Output::Table).await?;
    let snapshot = accepted.snapshot.or(wish.name).filter(|_| view.status == OperationStatus::Done);
    let Some(snapshot) = snapshot else {
        return Err(TrialError::NoSnapshot { said: told_end(&view, None).trim().to_owned() });
    };
    if ends.is_wanted().await {
        return Err(TrialError::Interrupted);
    }
    // From here on it is the command that is ended: it fails, and the guest goes back.
    let failed = match run(&args.command, &mut ends).await {
        Ok(status) if status.success() => well::unwell(&place, &well, &volumes).await,
        Ok(status) => Some(format!("the command ended with {status}")),
        Err(error) => Some(format!("the command could not be run: {error}")),
    };
    match failed {
        None => {
            aside!("guestd: all is well; snapshot {snapshot} goes when its time is over");
            Ok(EXIT_DONE)
        }
        Some(why) => {
            aside!("guestd: {why}: the guest goes back to snapshot {snapshot}, and restarts");
            Ok(match well::go_back(&session, &snapshot, When::InTurn, Output::Table).await {
                Back::UnderWay => EXIT_ROLLED_BACK,
                Back::Not(why) => {
                    aside!("guestd: {why}; by hand: guestd rollback {snapshot}");
                    EXIT_NOT_ROLLED_BACK
                }
            })
        }
    }
}

/// Volumes matter only where a stack names some.
async fn volumes(session: &Session, stacks: &Stacks) -> Result<Vec<MountView>, TrialError> {
    if stacks.stacks.iter().all(|stack| stack.volumes.is_empty()) {
        return Ok(Vec::new());
    }
    Ok(session.agent.storage(&session.token).await.map_err(WorkError::from)?.volumes)
}

/// By the second, in the form of a snapshot's name. None lets the agent choose.
fn name() -> Option<SnapshotName> {
    clock::now().strftime("try-%Y%m%d-%H%M%S").to_string().parse().ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command that a person gave, in their terminal and environment"
)]
async fn run(command: &[OsString], ends: &mut Ends) -> io::Result<ExitStatus> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::inherit()).env_remove(holdfast_protocol::bootstrap::VARIABLE);
    let mut child = command.spawn()?;
    loop {
        let wanted = tokio::select! {
            ended = child.wait() => return ended,
            wanted = ends.next() => wanted,
        };
        // The keyboard's reaches the command by itself.
        if wanted == rustix::process::Signal::INT {
            continue;
        }
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Ended already is as good.
            let _ = kill_process(pid, wanted);
        }
    }
}

/// Who wants an end: a person, by the keyboard; a terminal that is lost; whoever stops the session. The judgement is made all
/// the same, or the guest would stay as a half-done command left it.
struct Ends {
    interrupt: Signal,
    hang_up: Signal,
    terminate: Signal,
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next of them.
    async fn next(&mut self) -> rustix::process::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => rustix::process::Signal::INT,
            _ = self.hang_up.recv() => rustix::process::Signal::HUP,
            _ = self.terminate.recv() => rustix::process::Signal::TERM,
        }
    }

    /// Whether one came already.
    async fn is_wanted(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.next() => true,
            () = std::future::ready(()) => false,
        }
    }
}
