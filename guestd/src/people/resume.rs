//! `guestd resume`: start again what was stopped for a backup. The timer, the boot and the package's removal call it, too.
//!
//! Exit code 0: all of it runs, or there was nothing to do. 1: something does not run; it is tried again by the timer and by
//! `guestd run`. Nothing is written but the marker's end, so a full disk stops nothing here.

use std::time::Duration;

use holdfast_protocol::strict::chain;

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, ResumeArgs};
use crate::place::Place;
use crate::program::ProgramError;
use crate::quiesce::marker::{Marker, MarkerError};
use crate::quiesce::removed::{self, RemovedError};
use crate::quiesce::resume::{Asker, Cleared, Recovered, Resumed, Tries, recover};
use crate::quiesce::{timer, turn, wanted};

/// Whoever has the turn sees the wish within a second, and then starts the stacks itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whoever has it past its bound is dead or asleep.
const PATIENCE_EXPIRED: Duration = Duration::from_secs(10);

/// With growing pauses these take half a minute; the timer comes again.
const TRIES: Tries = Tries(5);

/// Why it could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The marker.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// What was removed.
    #[error("what was removed is not let be")]
    Removed(#[from] RemovedError),
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

/// `guestd resume`.
pub async fn resume(args: &ResumeArgs) -> Result<u8, ResumeError> {
    let place = Place::new(&args.place.root);
    let (asker, patience) = match args.expired {
        true => (Asker::Timer, PATIENCE_EXPIRED),
        false => (Asker::Now, PATIENCE),
    };
    if !args.expired && Marker::is_there(&place) {
        // Only a hint for whoever has the turn: without it the turn is waited for, and then done without.
        if let Err(error) = turn::wish(&place) {
            aside!("guestd: no wish can be left ({error}); waiting");
        }
    }
    if args.without_removed {
        let names = removed::let_be(&place, patience).await?;
        say(&format!("missed no longer: {}", if names.is_empty() { "nothing" } else { &names }));
    }
    match recover(&place, (asker, patience, TRIES), |_| {}).await {
        Ok(Recovered::Nothing) => {
            // Whoever took the marker away died before it took back its timer.
            if let Some(Err(error)) = forget(args.timer.as_deref()).await {
                aside!("guestd: {}", chain(&error));
            }
            say("nothing was stopped for a backup, or it runs already");
        }
        Ok(Recovered::Others(left)) => say(&format!("a backup may go on for {} s yet", left.as_secs())),
        Ok(Recovered::Done(resumed)) => return Ok(done(&resumed)),
        Err(error) if error.loses_what_stands_still() => {
            aside!("guestd: {}; everything that should run is started", chain(&error));
            aside!("guestd: {}", wanted::start_all(&place).await.unwrap_or_else(|error| chain(&error)));
            Marker::put_aside(&place)?;
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

fn done(resumed: &Resumed) -> u8 {
    for note in &resumed.notes {
        aside!("guestd: {note}");
    }
    for down in &resumed.down {
        aside!("guestd: stack {} does not run: {}", down.stack, down.why);
    }
    match (resumed.down.is_empty(), resumed.cleared) {
        (true, Cleared::Yes) => {
            say("what was stopped runs again");
            EXIT_DONE
        }
        (true, Cleared::No) => EXIT_DONE,
        (false, _) => EXIT_FAILED,
    }
}

/// Nobody may read it: the timer has no reader, and that must not be a failure.
fn say(words: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{words}");
}
