//! Signals while a recovery code is made.
//!
//! A lost connection arrives as SIGHUP, an ended session as SIGTERM. SIGKILL cannot be handled: the next start removes
//! the files that it leaves ([`super::paper`]).

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::EscrowCommandError;
use super::paper::SharedSheet;
use super::screen;
use crate::terminal::{Before, Terminal};

/// Those that ask a program at a terminal to end.
const ENDING: [fn() -> SignalKind; 4] =
    [SignalKind::hangup, SignalKind::interrupt, SignalKind::quit, SignalKind::terminate];

/// The base of a shell's exit code for a program that a signal ended.
const ENDED_BY: i32 = 128;

/// From now on a signal removes the sheet and restores the terminal before this process ends.
///
/// # Errors
/// [`EscrowCommandError::Signals`].
pub fn clean_up(sheet: Option<SharedSheet>, terminal: &Terminal) -> Result<(), EscrowCommandError> {
    let before = terminal.before().map_err(EscrowCommandError::Signals)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(EscrowCommandError::Signals)?;
    let listening: io::Result<Vec<(i32, Signal)>> = {
        let _entered = runtime.enter();
        ENDING.map(|kind| Ok((kind().as_raw_value(), signal(kind())?))).into_iter().collect()
    };
    let mut listening = listening.map_err(EscrowCommandError::Signals)?;
    let wait = move || {
        let number = runtime.block_on(first(&mut listening));
        end(number, sheet.as_ref(), before);
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .map_err(EscrowCommandError::Signals)?;
    Ok(())
}

/// The number of the first signal that arrives.
async fn first(listening: &mut [(i32, Signal)]) -> i32 {
    std::future::poll_fn(|context| {
        for (number, signal) in listening.iter_mut() {
            if signal.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(*number);
            }
        }
        std::task::Poll::Pending
    })
    .await
}

fn end(number: i32, sheet: Option<&SharedSheet>, before: Before) {
    match sheet {
        Some(sheet) => sheet.take_away(),
        None => before.say(screen::leave()),
    }
    before.give_back();
    std::process::exit(ENDED_BY + number);
}
