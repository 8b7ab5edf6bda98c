//! `guestd try -- COMMAND`: a snapshot, the command, the health of the stacks, and back to the snapshot when one of the two is
//! not well.
//!
//! ```text
//! look what is well ─ say the plan ─ snapshot ─ command ─ health ─┬─ well: the snapshot goes when its time is over
//!                          └── no snapshot: nothing is run        └─ not well: rollback, and the guest restarts
//! ```
//! Exit codes: 0 kept; 1 nothing was run; 10 the rollback is under way (the guest restarts, so nobody may see this);
//! 11 the rollback was refused, and the guest is as the command left it. Only stacks that were well before are asked for.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::work::{RollBackRequest, SnapshotRequest};
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::strict::chain;
use tokio::signal::unix::{SignalKind, signal};

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
    eprintln!("guestd: 1. a snapshot of this guest");
    eprintln!("guestd: 2. {}", line.join(" "));
    eprintln!(
        "guestd: 3. these stacks must be well after it: {}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );
    eprintln!(
        "guestd: if 2 or 3 fails, the guest goes back to the snapshot and restarts: what is written from now on is lost"
    );
    // From here on an interrupt is the command's: it fails, and the guest goes back.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(TrialError::Signal)?;
    let keep_s = args.keep_hours.map(|hours| hours.saturating_mul(3_600));
    let wish = SnapshotRequest { guest: None, name, keep_s };
    let accepted = session.ask("/v1/snapshots", &wish).await?;
    let view = session.follow(accepted.operation, Output::Table).await?;
    let snapshot = accepted.snapshot.or(wish.name).filter(|_| view.status == OperationStatus::Done);
    let Some(snapshot) = snapshot else {
        return Err(TrialError::NoSnapshot { said: told_end(&view, None).trim().to_owned() });
    };
    let outcome = {
        let running = run(&args.command);
        tokio::pin!(running);
        loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                _ = interrupt.recv() => {}
            }
        }
    };
    let failed = match outcome {
        Ok(status) if status.success() => unwell(&place, &well, &volumes).await,
        Ok(status) => Some(format!("the command ended with {status}")),
        Err(error) => Some(format!("the command could not be run: {error}")),
    };
    match failed {
        None => {
            eprintln!("guestd: all is well; snapshot {snapshot} goes when its time is over");
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
            eprintln!("guestd: {}: no stack is asked for after the command", chain(&error));
            return Vec::new();
        }
    };
    let mut well = Vec::new();
    for one in running {
        let Ok(known) = mounts::volumes(&one.stack, volumes) else { continue };
        match act::health(place, &one.stack, &known, Expected::Named(&one.stopped.groups)).await {
            Health::Well | Health::Runs => well.push(one),
            Health::Starting(why) | Health::Unwell(why) => {
                eprintln!(
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
    eprintln!("guestd: {why}: the guest goes back to snapshot {snapshot}, and restarts");
    let wish = RollBackRequest { guest: None, snapshot: snapshot.clone() };
    let by_hand = format!("guestd rollback {snapshot}");
    let accepted = match session.ask("/v1/rollback", &wish).await {
        Ok(accepted) => accepted,
        Err(error) => {
            eprintln!("guestd: it was not rolled back: {}; by hand: {by_hand}", chain(&error));
            return EXIT_NOT_ROLLED_BACK;
        }
    };
    // Mostly the guest goes down under this look.
    match session.follow(accepted.operation, Output::Table).await {
        Ok(view) if view.status != OperationStatus::Done => {
            eprintln!("guestd: {}; by hand: {by_hand}", told_end(&view, Some(&snapshot)).trim());
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
async fn run(command: &[OsString]) -> io::Result<ExitStatus> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::inherit()).env_remove(holdfast_protocol::bootstrap::VARIABLE);
    command.status().await
}
