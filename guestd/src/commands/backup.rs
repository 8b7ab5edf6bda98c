//! `guestd backup`: a backup with a window, or crash-consistent.
//!
//! This process runs the window. The first interrupt starts the stacks again and notifies the agent; a second one
//! starts them and ends. If this process dies, the timer and `guestd run` start them.

use std::io;
use std::time::Duration;

use holdfast_protocol::json::chain;
use holdfast_protocol::local::window::WindowRequest;
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::protection::Consistency;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agent::AgentError;
use crate::args::{
    BackupArgs, BackupTier, EXIT_DONE, EXIT_FAILED, EXIT_LOCKED, EXIT_NO_PERMISSION, EXIT_UNAVAILABLE,
};
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;
use crate::quiesce::resume::{ResumeCaller, Tries, recover};
use crate::quiesce::{boot, lock};
use crate::stacks::{self, StacksError};
use crate::status_file;
use crate::window::calls::{Answer, Windows};
use crate::window::run::{Runner, WindowEnd, WindowError};
use crate::work::{self, Session, WorkError};

/// Of starting what does not come up; then the timer and `guestd run` go on.
const TRIES: Tries = Tries(5);

/// Why there was no backup with a window.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Stacks(#[from] StacksError),
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error("guestd cannot write its files: run it as root of the guest")]
    File(#[from] FileError),
    #[error("no boot id: mount /proc")]
    NoBootId,
    #[error("cannot install signal handlers")]
    Signal(#[source] io::Error),
}

impl BackupError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Work(error) => error.exit_code(),
            Self::Window(WindowError::Taken) => EXIT_LOCKED,
            Self::Window(WindowError::Agent(AgentError::Unreachable { .. })) => EXIT_UNAVAILABLE,
            Self::File(error) | Self::Stacks(StacksError::File(error)) if error.is_permission() => {
                EXIT_NO_PERMISSION
            }
            _ => EXIT_FAILED,
        }
    }
}

pub async fn backup(args: &BackupArgs) -> Result<u8, BackupError> {
    let paths = Paths::new(&args.work.paths.root);
    if args.list || args.crash_consistent {
        return Ok(work::backup(args).await?);
    }
    let stacks = stacks::load(&paths)?;
    if stacks.is_empty() {
        return Ok(work::backup(args).await?);
    }
    let session = Session::open(&args.work.paths)?;
    file::make_folder(&paths.run_dir(), Eyes::All)?;
    let boot_id = boot::id(&paths)?.ok_or(BackupError::NoBootId)?;
    let windows = Windows { agent: &session.agent, token: &session.token };
    let runner = Runner { paths: &paths, windows, stacks: &stacks, boot_id: &boot_id, tries: TRIES };
    let body = WindowRequest { guest: None, tier: args.tier.map(BackupTier::tier) };
    let mut ended = with_signals(&paths, &runner, &body).await?;
    print_end(&ended);
    if args.work.no_wait {
        return Ok(if ended.down.is_empty() { EXIT_DONE } else { EXIT_FAILED });
    }
    let view = session.follow(ended.id, args.work.output).await?;
    // What it holds is known for good now.
    let windows = Windows { agent: &session.agent, token: &session.token };
    if let Answer::Says(last) = windows.peek(ended.id).await {
        ended.label = last.label.or(ended.label);
    }
    if let Some(label) = &ended.label {
        let word = if is_application(&ended) { "application-consistent" } else { "crash-consistent" };
        note_line!("guestd: the backup is {word}: {}", label.why);
        status_file::label(&paths, ended.id, label);
    }
    work::print(args.work.output, &view, || work::end_text(&view, None))?;
    let well = view.status == OperationStatus::Done && ended.down.is_empty() && is_application(&ended);
    Ok(if well { EXIT_DONE } else { EXIT_FAILED })
}

/// Whether the backup has the requested consistency. A label that is not known yet is not a failure.
fn is_application(ended: &WindowEnd) -> bool {
    ended.label.as_ref().is_none_or(|label| label.consistency == Consistency::Application)
}

async fn with_signals(
    paths: &Paths,
    runner: &Runner<'_>,
    body: &WindowRequest,
) -> Result<WindowEnd, BackupError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(BackupError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(BackupError::Signal)?;
    let mut run = Box::pin(runner.run(body));
    tokio::select! {
        ended = &mut run => return Ok(ended?),
        () = either(&mut terminate, &mut interrupt) => {}
    }
    if let Err(error) = lock::request_resume(paths) {
        note_line!("guestd: cannot request a resume ({error})");
    } else {
        note_line!(
            "guestd: the window is cancelled and stopped stacks are started; interrupt again to end at once"
        );
        tokio::select! {
            ended = &mut run => return Ok(ended?),
            () = either(&mut terminate, &mut interrupt) => {}
        }
    }
    drop(run);
    let recovered = recover(paths, (ResumeCaller::Now, Duration::from_secs(2), Tries(2)), |_| {}).await;
    if let Err(error) = recovered {
        note_line!("guestd: {}", chain(&error));
    }
    Err(BackupError::Window(WindowError::Lock { why: "interrupted".to_owned() }))
}

async fn either(one: &mut Signal, two: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = two.recv() => {}
    }
}

/// What happened to stacks is reported in addition to the outcome, in each output format.
fn print_end(ended: &WindowEnd) {
    note_line!("guestd: window ended: {}", ended.why);
    for note in &ended.notes {
        note_line!("guestd: {note}");
    }
    for down in &ended.down {
        note_line!("guestd: stack {} is not running: {}; starting it is retried", down.stack, down.why);
    }
}
