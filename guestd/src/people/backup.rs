//! `guestd backup`: where there are stacks, with a window, so that it holds them standing still; without them, or with
//! `--crash-consistent`, as after a power cut.
//!
//! The window is run by this process. The first interrupt brings the stacks back and tells the agent; a second one brings
//! them back and ends. Should all of it die, the timer and `guestd run` bring them back.

use std::io;
use std::time::Duration;

use holdfast_protocol::local::window::WindowRequest;
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::protection::Consistency;
use holdfast_protocol::strict::chain;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agent::AgentError;
use crate::args::{
    BackupArgs, BackupTier, EXIT_DONE, EXIT_FAILED, EXIT_LOCKED, EXIT_NO_PERMISSION, EXIT_UNAVAILABLE,
};
use crate::board;
use crate::file::{self, Eyes, FileError};
use crate::place::Place;
use crate::quiesce::resume::{Asker, Tries, recover};
use crate::quiesce::{boot, turn};
use crate::stacks::{self, StacksError};
use crate::window::calls::{Answer, Windows};
use crate::window::run::{Ended, Runner, WindowError};
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
    #[error("guestd cannot keep its files: ask as root of the guest")]
    File(#[from] FileError),
    #[error("no boot id is found: mount /proc")]
    NoBootId,
    #[error("signals cannot be waited for")]
    Signal(#[source] io::Error),
}

impl BackupError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Work(error) => error.exit_code(),
            Self::Window(WindowError::Taken) => EXIT_LOCKED,
            Self::Window(WindowError::Agent(AgentError::Away { .. })) => EXIT_UNAVAILABLE,
            Self::File(error) | Self::Stacks(StacksError::File(error)) if error.is_permission() => {
                EXIT_NO_PERMISSION
            }
            _ => EXIT_FAILED,
        }
    }
}

/// `guestd backup`.
pub async fn backup(args: &BackupArgs) -> Result<u8, BackupError> {
    let place = Place::new(&args.work.place.root);
    if args.list || args.crash_consistent {
        return Ok(work::backup(args).await?);
    }
    let stacks = stacks::load(&place)?;
    if stacks.is_empty() {
        return Ok(work::backup(args).await?);
    }
    let session = Session::open(&args.work.place)?;
    file::make_folder(&place.run_dir(), Eyes::All)?;
    let boot_id = boot::id(&place)?.ok_or(BackupError::NoBootId)?;
    let windows = Windows { agent: &session.agent, token: &session.token };
    let runner = Runner { place: &place, windows, stacks: &stacks, boot_id: &boot_id, tries: TRIES };
    let wish = WindowRequest { guest: None, tier: args.tier.map(BackupTier::tier) };
    let mut ended = with_signals(&place, &runner, &wish).await?;
    tell(&ended);
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
        let word = if is_application(&ended) { "standing still" } else { "as after a power cut" };
        aside!("guestd: the backup holds the stacks {word}: {}", label.why);
        board::label(&place, ended.id, label);
    }
    work::print(args.work.output, &view, || work::told_end(&view, None))?;
    let well = view.status == OperationStatus::Done && ended.down.is_empty() && is_application(&ended);
    Ok(if well { EXIT_DONE } else { EXIT_FAILED })
}

/// Whether the backup holds what was asked for. A label that is not known yet is no reproach.
fn is_application(ended: &Ended) -> bool {
    ended.label.as_ref().is_none_or(|label| label.consistency == Consistency::Application)
}

async fn with_signals(
    place: &Place,
    runner: &Runner<'_>,
    wish: &WindowRequest,
) -> Result<Ended, BackupError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(BackupError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(BackupError::Signal)?;
    let mut run = Box::pin(runner.run(wish));
    tokio::select! {
        ended = &mut run => return Ok(ended?),
        () = either(&mut terminate, &mut interrupt) => {}
    }
    if let Err(error) = turn::wish(place) {
        aside!("guestd: no wish can be left ({error})");
    } else {
        aside!("guestd: the window is called off, and what was stopped is started; once more ends at once");
        tokio::select! {
            ended = &mut run => return Ok(ended?),
            () = either(&mut terminate, &mut interrupt) => {}
        }
    }
    drop(run);
    let recovered = recover(place, (Asker::Now, Duration::from_secs(2), Tries(2)), |_| {}).await;
    if let Err(error) = recovered {
        aside!("guestd: {}", chain(&error));
    }
    Err(BackupError::Window(WindowError::Turn { why: "it was interrupted".to_owned() }))
}

async fn either(one: &mut Signal, two: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = two.recv() => {}
    }
}

/// What happened to stacks is told beside the outcome, whatever form that has.
fn tell(ended: &Ended) {
    aside!("guestd: the window is over: {}", ended.why);
    for note in &ended.notes {
        aside!("guestd: {note}");
    }
    for down in &ended.down {
        aside!("guestd: stack {} does not run: {}; it is tried again and again", down.stack, down.why);
    }
}
