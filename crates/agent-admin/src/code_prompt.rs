//! Prompts for a recovery code at the terminal.
//!
//! Mistakes are reported before anything slow is done.
//!
//! Input: the terminal. Output: a code, or a wrapped key that it opened. There is no lock-out, only a pause that grows
//! after a code that does not open the file. A word is shown in one case only: the one that was probably meant by a
//! misspelt word.

use std::io;
use std::time::Duration;

use holdfast_recovery::RecoveryCode;
use holdfast_recovery::checksum::PLACES;
use holdfast_recovery::code::ReadError;
use holdfast_recovery::escrow::{Escrow, EscrowFile, Expected, OpenError};
use holdfast_recovery::locked::Locked;
use holdfast_recovery::parse::{Mismatch, TYPED_BYTES_MAX, TypingError};
use holdfast_recovery::suggest::Position;

use super::terminal::{Line, Terminal};

/// A pause after a code that does not open the file, twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Why no code was typed.
#[derive(Debug, thiserror::Error)]
pub enum TypingFailed {
    /// No terminal, or none any more.
    #[error(
        "the words are typed at a terminal, and there is none: run this in one (with `ssh -t` from afar)"
    )]
    Terminal(#[source] io::Error),
    /// Ended by the person.
    #[error("nothing more was typed, so nothing was opened")]
    Ended,
    /// The code cannot be kept.
    #[error(transparent)]
    Code(ReadError),
}

impl TypingFailed {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Terminal(_) | Self::Ended => 74,
            Self::Code(_) => 70,
        }
    }
}

/// Asks until a code opens the file, or the input ends. A fault of the file itself is the inner error.
///
/// # Errors
/// [`TypingFailed`].
pub fn open(
    file: &EscrowFile,
    wanted: Expected<'_>,
    terminal: &mut Terminal,
) -> Result<Result<Escrow, OpenError>, TypingFailed> {
    let mut pause = PAUSE;
    loop {
        let code = ask(terminal, &|mismatch| file.wrong_position(mismatch))?;
        match file.open(&code, wanted) {
            Err(error @ OpenError::Code) => {
                terminal.say(&format!("{error}\n")).map_err(TypingFailed::Terminal)?;
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSE_MAX);
            }
            opened => return Ok(opened),
        }
    }
}

/// Asks until the typed words are a code. Where one word of the list was typed in place of another, `locate` may find
/// which: a caller that has the file that the code opens, or the code itself, can.
///
/// # Errors
/// [`TypingFailed`].
pub fn ask(
    terminal: &mut Terminal,
    locate: &dyn Fn(&Mismatch) -> Option<Position>,
) -> Result<RecoveryCode, TypingFailed> {
    let mut typed = Locked::with_capacity(2 * TYPED_BYTES_MAX).map_err(TypingFailed::Terminal)?;
    let mut question = "The eleven words (not shown): ".to_owned();
    loop {
        terminal.say(&question).map_err(TypingFailed::Terminal)?;
        let line = terminal.line(&mut typed).map_err(TypingFailed::Terminal)?;
        if line == Line::Ended {
            return Err(TypingFailed::Ended);
        }
        let slip = match RecoveryCode::read(typed.as_text()) {
            Ok(code) => return Ok(code),
            Err(ReadError::Typing(slip)) => slip,
            Err(error @ ReadError::Memory(_)) => return Err(TypingFailed::Code(error)),
        };
        if let TypingError::Count(count) = slip
            && count < PLACES
            && line == Line::Typed
        {
            question = format!("{count} of {PLACES}, go on: ");
            continue;
        }
        terminal.say(&reported(&slip, locate)).map_err(TypingFailed::Terminal)?;
        typed.truncate(0);
        "All eleven words again (not shown): ".clone_into(&mut question);
    }
}

/// The error, and the word that was probably meant. For the terminal alone.
fn reported(slip: &TypingError, locate: &dyn Fn(&Mismatch) -> Option<Position>) -> String {
    let mut text = format!("{slip}\n");
    match slip {
        TypingError::Unknown(slips) => {
            for slip in slips {
                let suggestions: Vec<&str> = slip.suggestions().collect();
                if !suggestions.is_empty() {
                    text += &format!(
                        "  word {}: did you mean {}?\n",
                        slip.position.number(),
                        suggestions.join(", ")
                    );
                }
            }
        }
        TypingError::Mismatch(mismatch) => {
            if let Some(position) = locate(mismatch) {
                return format!("word {} is wrong: compare it with the sheet\n", position.number());
            }
            for repair in mismatch.repairs() {
                text += &format!("  perhaps {repair}\n");
            }
        }
        TypingError::TooLong(_) | TypingError::Count(_) => {}
    }
    text
}
