//! From standing still to running: all that the marker names is started, in order, again and again until it runs.
//!
//! It is the same for the process that stopped it, for the timer, for the next start and for a person, and may happen twice.
//! The marker goes when all of it was seen running twice, and not to have fallen over in between: a program that ends right after
//! its start does not run, and a stop that was under way when its caller was killed may end
//! after our first look. Nothing must be written for it but the end: the marker taken away. That it began is written where it
//! can be, for the agent.

use std::time::Duration;

use holdfast_protocol::local::window::DownStack;
use holdfast_protocol::strict::chain;
use tracing::{info, warn};

use super::act::{self, Starts};
use super::marker::{Marker, MarkerError};
use super::turn::{self, Asked, Turn};
use super::{timer, untold};
use crate::backoff::Backoff;
use crate::beat;
use crate::failpoint::{Point, reached};
use crate::file;
use crate::place::Place;
use crate::program::{run_well, words};

/// What runs at two looks so far apart, and did not fall over in between, runs.
const SETTLE: Duration = Duration::from_secs(5);

/// How far apart two looks are when we stopped them ourselves, and cleanly. A program that is built for use does not look at
/// the variable.
pub fn settle() -> Duration {
    let shorter = std::env::var("GUESTD_SETTLE_MS").ok().filter(|_| cfg!(debug_assertions));
    shorter.and_then(|text| text.parse().ok()).map_or(SETTLE, Duration::from_millis)
}

/// How long the sentence for the agent may be.
const WHY_CHARS_MAX: usize = 500;

/// How often it is tried here; then the next look, the timer or the next start goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries(pub u32);

/// What became of it.
#[derive(Debug, Default)]
pub struct Resumed {
    /// What does not run.
    pub down: Vec<DownStack>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Whether marker and timer are gone.
    pub cleared: Cleared,
}

/// Whether the marker is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleared {
    #[default]
    No,
    Yes,
}

/// Resumes. `heard` is told what is down after each try.
pub async fn resume(
    place: &Place,
    marker: &Marker,
    held: Option<&Turn>,
    (settle, tries): (Duration, Tries),
    mut heard: impl FnMut(&[DownStack]),
) -> Resumed {
    untold::begins(place, marker.window);
    let (mut starts, mut backoff, mut done) = (Starts::of_what_ran(), Backoff::default(), 0_u32);
    let mut resumed = Resumed::default();
    loop {
        resumed.down = pass(place, marker, &mut starts).await;
        heard(&resumed.down);
        done = done.saturating_add(1);
        if resumed.down.is_empty() {
            beat::within(settle);
            tokio::time::sleep(settle).await;
            resumed.down = pass(place, marker, &mut starts).await;
            if resumed.down.is_empty() {
                break;
            }
        }
        if done >= tries.0 {
            return resumed;
        }
        tokio::time::sleep(backoff.next(u64::from(std::process::id()) * u64::from(done))).await;
    }
    reached(Point::AllStarted);
    heard(&[]);
    let Some(turn) = held else {
        resumed.notes.push("somebody else has the turn: the marker stays until it can be had".to_owned());
        return resumed;
    };
    resumed.notes.extend(hooks(marker).await);
    match clear(place, marker, turn).await {
        Ok(notes) => {
            resumed.notes.extend(notes);
            resumed.cleared = Cleared::Yes;
        }
        Err(error) => resumed.notes.push(chain(&error)),
    }
    resumed
}

/// Starts everything once.
async fn pass(place: &Place, marker: &Marker, starts: &mut Starts) -> Vec<DownStack> {
    let mut down = Vec::new();
    for stack in &marker.stacks {
        if let Err(error) = act::start(place, stack, starts).await {
            let why: String = words(&chain(&error)).chars().take(WHY_CHARS_MAX).collect();
            warn!(stack = %stack.name, why, "was stopped for a backup and does not run");
            down.push(DownStack { stack: stack.name.clone(), why });
        }
        reached(Point::OneStarted);
    }
    down
}

/// Each once, when all of it runs; a kill between hook and marker makes it twice. One that fails is told and keeps nothing.
async fn hooks(marker: &Marker) -> Vec<String> {
    let mut notes = Vec::new();
    for stack in &marker.stacks {
        let Some(argv) = &stack.post_resume else { continue };
        let call = act::hook(argv, stack.name.as_str(), &stack.env, Duration::from_secs(stack.hook_limit_s));
        if let Err(error) = run_well(&call).await {
            notes.push(format!("the hook post_resume of stack {} failed: {}", stack.name, chain(&error)));
        }
    }
    notes
}

/// Takes marker, timer and program away, in this order. The turn is asked for: whoever has it may yet stop something.
async fn clear(place: &Place, marker: &Marker, _turn: &Turn) -> Result<Vec<String>, MarkerError> {
    Marker::remove(place)?;
    reached(Point::MarkerGone);
    turn::forget_wish(place);
    info!(window = %marker.window, "what was stopped runs again");
    if let Err(error) = timer::disarm(&marker.timer).await {
        // It finds no marker, and its program is needed for that.
        return Ok(vec![format!("the timer could not be taken back: {}", chain(&error))]);
    }
    reached(Point::TimerGone);
    let left = file::remove_durably(&timer::program_path(place)).err();
    Ok(left.map(|error| chain(&error)).into_iter().collect())
}

/// How long to watch after a resume in another's place: a stop that it began may end so late. After a reboot none can.
pub fn settle_for_another(marker: &Marker, boot_id: Option<&str>) -> Duration {
    if boot_id != Some(marker.boot_id.as_str()) {
        return settle();
    }
    let longest = marker.stacks.iter().map(|stack| stack.stop_limit_s).max().unwrap_or(0);
    settle().max(Duration::from_secs(longest))
}

/// How a resume in another's place ended.
#[derive(Debug)]
pub enum Recovered {
    /// No marker lies there.
    Nothing,
    /// Somebody else does it, and has time left.
    Others(Duration),
    /// It was done, as far as it went.
    Done(Resumed),
}

/// Why a resume in another's place could not even begin.
pub type RecoverError = MarkerError;

/// Who asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Only once the bound passed.
    Timer,
    /// At once.
    Now,
}

/// Resumes what a marker names that somebody else wrote.
pub async fn recover(
    place: &Place,
    (asker, patience, tries): (Asker, Duration, Tries),
    heard: impl FnMut(&[DownStack]),
) -> Result<Recovered, RecoverError> {
    let Some(marker) = Marker::load(place)? else { return Ok(Recovered::Nothing) };
    if let (Asker::Timer, super::marker::Bound::Left(left)) = (asker, super::stop::left(place, &marker)) {
        return Ok(Recovered::Others(left));
    }
    let turn = match turn::take_patiently(place, patience).await {
        Asked::Ours(turn) => Some(turn),
        Asked::Taken => None,
        Asked::Unknown(why) => {
            warn!(why, "whose turn it is cannot be told");
            None
        }
    };
    // Whoever had the turn may have done it meanwhile.
    let Some(marker) = Marker::load(place)? else { return Ok(Recovered::Nothing) };
    warn!(window = %marker.window, "stacks were left stopped for a backup: they are started");
    let boot_id = super::boot::id(place).ok().flatten();
    let settle = settle_for_another(&marker, boot_id.as_deref());
    Ok(Recovered::Done(resume(place, &marker, turn.as_ref(), (settle, tries), heard).await))
}
