//! `guestd resume`: starts what was stopped for a backup.
//!
//! Exit code 0: all of it runs, or there was nothing to do. 1: something does not run; it is tried again by the timer and by
//! `guestd run`. Nothing is written but the marker's end, so a full disk stops nothing here.

use std::time::Duration;

use holdfast_protocol::json::chain;

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, ResumeArgs};
use crate::paths::Paths;
use crate::program::ProgramError;
use crate::quiesce::marker::{Marker, MarkerError};
use crate::quiesce::missing_units::{self, MissingUnitsError};
use crate::quiesce::resume::{Cleared, Recovery, ResumeCaller, ResumeReport, Tries, recover};
use crate::quiesce::{lock, start_enabled, timer};

/// The process that holds the lock sees the request within a second, and then starts the stacks itself.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A process that holds the lock past its bound is dead or asleep.
const TIMEOUT_EXPIRED: Duration = Duration::from_secs(10);

/// With growing pauses these take half a minute; the timer comes again.
const TRIES: Tries = Tries(5);

/// Why it could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// What was removed.
    #[error("removed parts were not forgotten")]
    Removed(#[from] MissingUnitsError),
}

impl ResumeError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Marker(MarkerError::File(error)) if error.is_permission() => EXIT_NO_PERMISSION,
            Self::Marker(_) | Self::Removed(_) => EXIT_FAILED,
        }
    }
}

pub async fn resume(args: &ResumeArgs) -> Result<u8, ResumeError> {
    let paths = Paths::new(&args.paths.root);
    let (asker, patience) = match args.expired {
        true => (ResumeCaller::Timer, TIMEOUT_EXPIRED),
        false => (ResumeCaller::Now, TIMEOUT),
    };
    if !args.expired && Marker::is_there(&paths) {
        // This is only a hint for the process that holds the lock. Without it we still wait for the lock, and then go
        // on without the lock.
        if let Err(error) = lock::request_resume(&paths) {
            note_line!("guestd: cannot request a resume ({error}); waiting");
        }
    }
    if args.without_removed {
        let names = missing_units::forget_missing(&paths, patience).await?;
        say(&format!("forgotten: {}", if names.is_empty() { "nothing" } else { &names }));
    }
    match recover(&paths, (asker, patience, TRIES), |_| {}).await {
        Ok(Recovery::Nothing) => {
            // The process that removed the marker died before it removed its timer.
            if let Some(Err(error)) = forget(args.timer.as_deref()).await {
                note_line!("guestd: {}", chain(&error));
            }
            say("nothing is stopped for a backup");
        }
        Ok(Recovery::Others(left)) => say(&format!("a window is open for {} s more", left.as_secs())),
        Ok(Recovery::Done(resumed)) => return Ok(done(&resumed)),
        Err(error) if error.loses_stopped_parts() => {
            note_line!("guestd: {}; starting all enabled stacks", chain(&error));
            note_line!(
                "guestd: {}",
                start_enabled::start_all(&paths).await.unwrap_or_else(|error| chain(&error))
            );
            Marker::move_to_bad(&paths)?;
            return Ok(EXIT_FAILED);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(EXIT_DONE)
}

/// Takes back a timer that has nothing left to do. It is its window's own, so no other window loses anything.
async fn forget(timer: Option<&str>) -> Option<Result<(), ProgramError>> {
    Some(timer::disarm(timer?).await)
}

fn done(resumed: &ResumeReport) -> u8 {
    for note in &resumed.notes {
        note_line!("guestd: {note}");
    }
    for down in &resumed.down {
        note_line!("guestd: stack {} does not run: {}", down.stack, down.why);
    }
    match (resumed.down.is_empty(), resumed.cleared) {
        (true, Cleared::Yes) => {
            say("all stopped stacks are running again");
            EXIT_DONE
        }
        (true, Cleared::No) => EXIT_DONE,
        (false, _) => EXIT_FAILED,
    }
}

/// Prints a line. The output may have no reader, as with the timer; that must not be a failure.
fn say(words: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{words}");
}
