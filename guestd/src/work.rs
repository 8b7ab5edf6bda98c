//! `guestd snapshot` and `rollback`: requests to the agent, followed to their end.
//!
//! The request is sent with one key, so a repeat after a lost answer is still one request. The work goes on when no
//! process follows it any more; `--no-wait` ends at once after the request. Exit code 75: the agent's queue is full,
//! try later.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{CorrelationId, OperationId, SnapshotName};
use holdfast_protocol::local::work::{
    Acceptance, Accepted, BackupRequest, BackupsView, RollBackRequest, SnapshotRequest, SnapshotsView,
};
use holdfast_protocol::operation::{OperationStatus, OperationView, StepStatus};
use holdfast_protocol::secret::Secret;
use serde::Serialize;
use uuid::Uuid;

use crate::agent::{Agent, AgentError};
use crate::args::{
    BackupArgs, BackupTier, EXIT_BUSY, EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, EXIT_SET_UP,
    EXIT_UNAVAILABLE, Output, PathArgs, RollBackArgs, SnapshotArgs, WorkArgs,
};
use crate::bootstrap_file::{self, BootstrapFileError};
use crate::paths::Paths;

/// Tries of one request under one key, when no answer came.
const TRIES: u32 = 3;

/// Between two tries; the agent restarts within a second.
const PAUSE: Duration = Duration::from_secs(2);

/// After this many failed status requests in a row the work is no longer followed; it goes on without us.
const LOOKS_MAX: u32 = 30;

/// Why the work was not requested, or its end not seen.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The files of the controller are its owner's, or malformed.
    #[error(transparent)]
    BootstrapFile(#[from] BootstrapFileError),
    /// There is no agent yet.
    #[error("no bootstrap.json yet: this guest has no agent")]
    SetUp,
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// No randomness for a key.
    #[error("the kernel returned no random bytes")]
    Randomness(#[source] getrandom::Error),
    /// The output cannot be written.
    #[error("the outcome cannot be printed")]
    Print(#[source] io::Error),
    /// Cannot happen for plain text and numbers.
    #[error("the outcome cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl WorkError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BootstrapFile(BootstrapFileError::File(error)) if error.is_permission() => {
                EXIT_NO_PERMISSION
            }
            Self::SetUp => EXIT_SET_UP,
            Self::Agent(AgentError::Unreachable { .. }) => EXIT_UNAVAILABLE,
            Self::Agent(error) if error.code() == Some(ErrorCode::Busy) => EXIT_BUSY,
            Self::BootstrapFile(_)
            | Self::Agent(_)
            | Self::Randomness(_)
            | Self::Print(_)
            | Self::Unwritable(_) => EXIT_FAILED,
        }
    }
}

/// The agent, and by what this guest is known to it.
pub struct Session {
    pub agent: Agent,
    pub token: Secret,
}

impl Session {
    pub fn open(paths: &PathArgs) -> Result<Self, WorkError> {
        let bootstrap = bootstrap_file::load(&Paths::new(&paths.root))?.ok_or(WorkError::SetUp)?;
        let agent = Agent::new(&bootstrap.endpoint, bootstrap.pin, paths.source_address)?;
        // One command is one piece of work.
        let agent = agent.with_correlation(CorrelationId::new(Uuid::now_v7()));
        Ok(Self { agent, token: bootstrap.token })
    }

    /// Requests work; after a lost answer the request is repeated under the same key.
    pub async fn ask(&self, path: &str, body: &impl Serialize) -> Result<Accepted, WorkError> {
        let key = key()?;
        let mut tries = 1;
        loop {
            match self.agent.work(&self.token, path, &key, body).await {
                Err(AgentError::Unreachable { .. }) if tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                other => return Ok(other?),
            }
        }
    }

    /// Polls until it has ended. It waits for an agent that is offline for a moment.
    pub async fn follow(&self, id: OperationId, output: Output) -> Result<OperationView, WorkError> {
        let (mut status, mut away) = (String::new(), 0);
        loop {
            match self.agent.operation(&self.token, id).await {
                Ok(view) if view.status.is_end() => return Ok(view),
                Ok(view) => {
                    away = 0;
                    let line = line(&view);
                    if output == Output::Table && line != status {
                        writeln!(io::stderr(), "{line}").map_err(WorkError::Print)?;
                    }
                    status = line;
                }
                Err(AgentError::Unreachable { .. }) if away < LOOKS_MAX => {
                    away += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn do_work(&self, path: &str, body: &impl Serialize, how: &WorkArgs) -> Result<u8, WorkError> {
        let accepted = self.ask(path, body).await?;
        if how.no_wait {
            print(how.output, &accepted, || accepted_text(&accepted))?;
            return Ok(EXIT_DONE);
        }
        let view = self.follow(accepted.operation, how.output).await?;
        print(how.output, &view, || end_text(&view, accepted.snapshot.as_ref()))?;
        Ok(if view.status == OperationStatus::Done { EXIT_DONE } else { EXIT_FAILED })
    }
}

/// A key for a new request.
pub fn key() -> Result<String, WorkError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(WorkError::Randomness)?;
    Ok(hex::encode(bytes))
}

pub async fn snapshot(args: &SnapshotArgs) -> Result<u8, WorkError> {
    let session = Session::open(&args.work.paths)?;
    if args.list {
        let view: SnapshotsView = session.agent.look(&session.token, "/v1/snapshots").await?;
        print(args.work.output, &view, || snapshots(&view))?;
        return Ok(EXIT_DONE);
    }
    let keep_s = args.keep_hours.map(|hours| hours.saturating_mul(3_600));
    let body = SnapshotRequest { guest: None, name: args.name.clone(), keep_s };
    session.do_work("/v1/snapshots", &body, &args.work).await
}

pub async fn roll_back(args: &RollBackArgs) -> Result<u8, WorkError> {
    let session = Session::open(&args.work.paths)?;
    let body = RollBackRequest { guest: None, snapshot: args.snapshot.clone() };
    session.do_work("/v1/rollback", &body, &args.work).await
}

pub async fn backup(args: &BackupArgs) -> Result<u8, WorkError> {
    let session = Session::open(&args.work.paths)?;
    if args.list {
        let view: BackupsView = session.agent.look(&session.token, "/v1/backups").await?;
        print(args.work.output, &view, || backups(&view))?;
        return Ok(EXIT_DONE);
    }
    let body = BackupRequest { guest: None, tier: args.tier.map(BackupTier::tier) };
    session.do_work("/v1/backups", &body, &args.work).await
}

pub fn print<T: Serialize>(
    output: Output,
    value: &T,
    table: impl FnOnce() -> String,
) -> Result<(), WorkError> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(value).map_err(WorkError::Unwritable)? + "\n",
        Output::Table => table(),
    };
    io::stdout().write_all(text.as_bytes()).map_err(WorkError::Print)
}

fn accepted_text(accepted: &Accepted) -> String {
    let name = accepted.snapshot.as_ref().map(|name| format!(", snapshot {name}")).unwrap_or_default();
    match accepted.taken {
        Acceptance::Queued => {
            format!("asked: operation {}{name}, {} before it\n", accepted.operation, accepted.before)
        }
        Acceptance::Joined => {
            format!("the same request is running or queued: operation {}{name}\n", accepted.operation)
        }
    }
}

/// The state of the operation, in one line.
fn line(view: &OperationView) -> String {
    let kind = view.kind.as_str();
    let step = view.steps.iter().find(|step| step.status != StepStatus::Done);
    match (view.status, step) {
        (OperationStatus::Queued, _) => format!("{kind} is queued"),
        (_, Some(step)) => match &step.note {
            Some(note) => format!("{kind}: {} ({note})", step.name),
            None => format!("{kind}: {}", step.name),
        },
        (_, None) => format!("{kind} is about to end"),
    }
}

pub fn end_text(view: &OperationView, snapshot: Option<&SnapshotName>) -> String {
    let name = snapshot.map(|name| format!(" {name}")).unwrap_or_default();
    let problem = view.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    let kind = view.kind.as_str();
    match view.status {
        OperationStatus::Done => format!("{kind}{name} is done\n"),
        OperationStatus::Parked => format!("{kind}{name} is parked and needs an operator{problem}\n"),
        _ => format!("{kind}{name} failed and was undone{problem}\n"),
    }
}

fn snapshots(view: &SnapshotsView) -> String {
    let mut text = String::new();
    for snapshot in &view.snapshots {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{:<40} taken {}, goes {}", snapshot.name, snapshot.taken_at, snapshot.expires_at);
    }
    let _ = writeln!(text, "{} of {} snapshots", view.snapshots.len(), view.quota);
    text
}

fn backups(view: &BackupsView) -> String {
    let mut text = String::new();
    for backup in &view.backups {
        // Writing to a String cannot fail.
        let _ = match &backup.kept {
            Some(kept) => writeln!(
                text,
                "{} taken {}, {} MiB on {}",
                backup.id,
                kept.taken_at,
                kept.bytes >> 20,
                kept.storage
            ),
            None => writeln!(text, "{} {:?}", backup.id, backup.phase),
        };
    }
    let _ = writeln!(text, "{} backups", view.backups.len());
    text
}
