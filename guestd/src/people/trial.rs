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
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::work::{RollBackRequest, SnapshotRequest};
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::strict::chain;
use rustix::process::{Pid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NOT_ROLLED_BACK, EXIT_ROLLED_BACK, Output, TryArgs};
use crate::clock;
use crate::place::Place;
use crate::quiesce::act::{self, Expected, Health};
use crate::quiesce::mounts;
use crate::quiesce::stop::{self, Running};
use crate::stacks::{self, Stacks, StacksError};
use crate::work::{Session, WorkError, told_end};

/// Between two questions about health.
const PAUSE: Duration = Duration::from_secs(2);

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
    let well = well_now(&place, &stacks, &volumes).await;
    let name = name();
    let line: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let names: Vec<&str> = well.iter().map(|running| running.stack.name.as_str()).collect();
    aside!("guestd: 1. a snapshot of this guest");
    aside!("guestd: 2. {}", line.join(" "));
    aside!(
        "guestd: 3. these stacks must be well after it: {}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );
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
        Ok(status) if status.success() => unwell(&place, &well, &volumes).await,
        Ok(status) => Some(format!("the command ended with {status}")),
        Err(error) => Some(format!("the command could not be run: {error}")),
    };
    match failed {
        None => {
            aside!("guestd: all is well; snapshot {snapshot} goes when its time is over");
            Ok(EXIT_DONE)
        }
        Some(why) => Ok(go_back(&session, snapshot, &why).await),
    }
}

/// Volumes matter only where a stack names some.
async fn volumes(session: &Session, stacks: &Stacks) -> Result<Vec<MountView>, TrialError> {
    if stacks.stacks.iter().all(|stack| stack.volumes.is_empty()) {
        return Ok(Vec::new());
    }
    Ok(session.agent.storage(&session.token).await.map_err(WorkError::from)?.volumes)
}

/// What runs and is well now. A stack that is not well before the command says nothing of the command.
async fn well_now(place: &Place, stacks: &Stacks, volumes: &[MountView]) -> Vec<Running> {
    let running = match stop::look(place, stacks, volumes).await {
        Ok(running) => running,
        Err(error) => {
            aside!("guestd: {}: no stack is asked for after the command", chain(&error));
            return Vec::new();
        }
    };
    let mut well = Vec::new();
    for one in running {
        let Ok(known) = mounts::volumes(&one.stack, volumes) else { continue };
        match act::health(place, &one.stack, &known, Expected::Named(&one.stopped.groups)).await {
            Health::Well | Health::Runs => well.push(one),
            Health::Starting(why) | Health::Unwell(why) => {
                aside!(
                    "guestd: stack {} is not well now ({why}), so it is not asked for after the command",
                    one.stack.name
                );
            }
        }
    }
    well
}

/// What is not well after the command, in words.
async fn unwell(place: &Place, well: &[Running], volumes: &[MountView]) -> Option<String> {
    for Running { stack, stopped } in well {
        let known = match mounts::volumes(stack, volumes) {
            Ok(known) => known,
            Err(error) => return Some(chain(&error)),
        };
        // Containers may be others now; services and units are the same.
        match act::until_well(place, stack, &known, (Expected::Named(&stopped.groups), PAUSE)).await {
            Health::Well | Health::Runs => {}
            Health::Starting(why) | Health::Unwell(why) => {
                return Some(format!("stack {} is not well: {why}", stack.name));
            }
        }
    }
    None
}

async fn go_back(session: &Session, snapshot: SnapshotName, why: &str) -> u8 {
    aside!("guestd: {why}: the guest goes back to snapshot {snapshot}, and restarts");
    let wish = RollBackRequest { guest: None, snapshot: snapshot.clone() };
    let by_hand = format!("guestd rollback {snapshot}");
    let accepted = match session.ask("/v1/rollback", &wish).await {
        Ok(accepted) => accepted,
        Err(error) => {
            aside!("guestd: it was not rolled back: {}; by hand: {by_hand}", chain(&error));
            return EXIT_NOT_ROLLED_BACK;
        }
    };
    // Mostly the guest goes down under this look.
    match session.follow(accepted.operation, Output::Table).await {
        Ok(view) if view.status != OperationStatus::Done => {
            aside!("guestd: {}; by hand: {by_hand}", told_end(&view, Some(&snapshot)).trim());
            EXIT_NOT_ROLLED_BACK
        }
        Ok(_) | Err(_) => EXIT_ROLLED_BACK,
    }
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
