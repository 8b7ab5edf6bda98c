//! `guestd try`: snapshot, command, health check, and rollback on failure.
//!
//! ```text
//! look what is well ─ say the plan ─ snapshot ─ command ─ health ─┬─ well: the snapshot goes when its time is over
//!                          └── no snapshot: nothing is run        └─ not well: rollback, and the guest restarts
//! ```
//! Exit codes: 0 kept; 1 nothing was run; 10 the rollback is under way (the guest restarts, so this code may never be
//! seen); 11 the rollback was refused, and the guest is as the command left it. Only stacks that were well before are
//! checked. A lost terminal or an interrupt ends the command, and the rest goes on. A SIGTERM, which every program gets
//! when the guest shuts down, ends this program within two seconds, whatever it does. Its progress is stored on the
//! disk, and `guestd run` continues it, now or after the next start (12).

mod continuation;
mod try_file;

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::work::SnapshotRequest;
use holdfast_protocol::operation::OperationStatus;
use rustix::process::{Pid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{
    EXIT_DONE, EXIT_FAILED, EXIT_LET_GO, EXIT_NOT_ROLLED_BACK, EXIT_ROLLED_BACK, Output, TryArgs,
};
use crate::clock;
use crate::commands::health::{self, Back, HealthyStack, HealthyStackRecord, When};
use crate::commands::try_lock;
use crate::file::FileError;
use crate::paths::Paths;
use crate::stacks::{self, Stacks, StacksError};
use crate::work::{Session, WorkError, end_text};

pub use continuation::continue_try;
pub use try_file::is_there as is_open;
use try_file::{Stage, TryState};

/// How long to wait for a command that was signalled to end, when this program must end, too.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    #[error("nothing was run")]
    Work(#[from] WorkError),
    #[error("nothing was run")]
    Stacks(#[from] StacksError),
    #[error("nothing was run: no snapshot was taken: {said}")]
    NoSnapshot { said: String },
    #[error("nothing was run: the state cannot be written; the snapshot expires")]
    NotStored(#[source] FileError),
    #[error("nothing was run: an earlier `guestd try` is still open; see `guestd status`")]
    Earlier,
    #[error("nothing was run: cannot install signal handlers")]
    Signal(#[source] io::Error),
    #[error("nothing was run: interrupted; the snapshot expires")]
    Interrupted,
}

impl TryError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Work(error) => error.exit_code(),
            _ => EXIT_FAILED,
        }
    }
}

pub async fn try_command(args: &TryArgs) -> Result<u8, TryError> {
    let paths = Paths::new(&args.paths.root);
    let session = Session::open(&args.paths)?;
    let stacks = stacks::load(&paths)?;
    let volumes = volumes(&session, &stacks).await?;
    if try_file::is_there(&paths) {
        return Err(TryError::Earlier);
    }
    // Apt takes no snapshot of its own while this goes on, and no other process judges what the command did.
    let _tried = try_lock::begin(&paths);
    let well = health::well_now(&paths, &stacks, &volumes).await;
    let name = name();
    let line: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    note_line!("guestd: 1. a snapshot of this guest");
    note_line!("guestd: 2. {}", line.join(" "));
    note_line!("guestd: 3. these stacks must be well after it: {}", health::names(&well));
    note_line!(
        "guestd: if 2 or 3 fails, the guest goes back to the snapshot and restarts: what is written from now on is lost"
    );
    let mut ends = Ends::new().map_err(TryError::Signal)?;
    let keep_s = args.keep_hours.map(|hours| hours.saturating_mul(3_600));
    let body = SnapshotRequest { guest: None, name, keep_s };
    let snapshot = tokio::select! {
        snapshot = snapshot(&session, &body) => snapshot?,
        () = ends.terminated() => return Err(TryError::Interrupted),
    };
    if ends.is_wanted().await {
        return Err(TryError::Interrupted);
    }
    let was_well: Vec<HealthyStackRecord> = well.iter().cloned().map(HealthyStackRecord::from).collect();
    let mut try_command = TryState::new(snapshot, was_well);
    // From here on, a process that finds this file continues the work if this one dies.
    try_command.store(&paths).map_err(TryError::NotStored)?;
    let ran = run(&args.command, &mut ends).await;
    let rest = rest(&paths, &session, &mut try_command, ran, (&well, &volumes));
    Ok(tokio::select! {
        code = rest => code,
        () = ends.terminated() => {
            note_line!("guestd: told to end; the controller goes on with what was tried");
            EXIT_LET_GO
        }
    })
}

/// Has one taken.
async fn snapshot(session: &Session, body: &SnapshotRequest) -> Result<SnapshotName, TryError> {
    let accepted = session.ask("/v1/snapshots", body).await?;
    let view = session.follow(accepted.operation, Output::Table).await?;
    let done = accepted.snapshot.or(body.name.clone()).filter(|_| view.status == OperationStatus::Done);
    done.ok_or_else(|| TryError::NoSnapshot { said: end_text(&view, None).trim().to_owned() })
}

/// How the command ended.
enum Ran {
    Ended(io::Result<ExitStatus>),
    /// We were signalled to end, and the result of the command is unknown.
    LetGo,
}

/// From the command's end to the judgement's.
async fn rest(
    paths: &Paths,
    session: &Session,
    try_command: &mut TryState,
    ran: Ran,
    (well, volumes): (&[HealthyStack], &[MountView]),
) -> u8 {
    let failed = match ran {
        // The select above ends this.
        Ran::LetGo => std::future::pending().await,
        Ran::Ended(Ok(status)) if status.success() => {
            reach(paths, try_command, Stage::Stacks);
            health::unwell(paths, well, volumes).await
        }
        Ran::Ended(Ok(status)) => Some(format!("the command ended with {status}")),
        Ran::Ended(Err(error)) => Some(format!("the command could not be run: {error}")),
    };
    let snapshot = try_command.snapshot.clone();
    let Some(why) = failed else {
        forget(paths);
        note_line!("guestd: all is well; snapshot {snapshot} goes when its time is over");
        return EXIT_DONE;
    };
    reach(paths, try_command, Stage::Back { why: why.clone() });
    note_line!("guestd: {why}: rolling back to snapshot {snapshot}; the guest restarts");
    match health::go_back(session, &snapshot, When::InTurn, Output::Table).await {
        Back::UnderWay => EXIT_ROLLED_BACK,
        Back::Not(why) => {
            forget(paths);
            note_line!("guestd: {why}; by hand: guestd rollback {snapshot}");
            EXIT_NOT_ROLLED_BACK
        }
    }
}

/// Records the stage that is reached. If it cannot be written, the process that continues begins one stage earlier.
fn reach(paths: &Paths, try_command: &mut TryState, stage: Stage) {
    if let Err(error) = try_command.reach(paths, stage) {
        note_line!("guestd: {}", holdfast_protocol::json::chain(&error));
    }
}

fn forget(paths: &Paths) {
    if let Err(error) = try_file::forget(paths) {
        note_line!("guestd: {}", holdfast_protocol::json::chain(&error));
    }
}

/// Volumes matter only where a stack names some.
async fn volumes(session: &Session, stacks: &Stacks) -> Result<Vec<MountView>, TryError> {
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
async fn run(command: &[OsString], ends: &mut Ends) -> Ran {
    let Some((program, arguments)) = command.split_first() else {
        return Ran::Ended(Err(io::Error::from(io::ErrorKind::NotFound)));
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::inherit()).env_remove(holdfast_protocol::bootstrap::VARIABLE);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ran::Ended(Err(error)),
    };
    loop {
        let wanted = tokio::select! {
            ended = child.wait() => return Ran::Ended(ended),
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
        if wanted == rustix::process::Signal::TERM {
            // However it ends now, it was cut off.
            let _ = tokio::time::timeout(LAST_WAIT, child.wait()).await;
            return Ran::LetGo;
        }
    }
}

/// The signals that request an end: the interrupt key of a person, a lost terminal, or a stop of the session or the
/// guest. The judgement is made all the same, here or by the controller. Otherwise the guest would stay as a half-done
/// command left it.
struct Ends {
    interrupt: Signal,
    hang_up: Signal,
    terminate: Signal,
    termination: Termination,
}

/// Whether a SIGTERM came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Termination {
    None,
    Came,
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            termination: Termination::None,
        })
    }

    /// The next of them.
    async fn next(&mut self) -> rustix::process::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => rustix::process::Signal::INT,
            _ = self.hang_up.recv() => rustix::process::Signal::HUP,
            _ = self.terminate.recv() => {
                self.termination = Termination::Came;
                rustix::process::Signal::TERM
            }
        }
    }

    /// Waits for a SIGTERM, including one that came already. The other signals stay queued for their own readers.
    async fn terminated(&mut self) {
        if self.termination == Termination::None {
            self.terminate.recv().await;
            self.termination = Termination::Came;
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
