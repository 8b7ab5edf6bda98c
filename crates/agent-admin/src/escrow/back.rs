//! Confirmation of a new recovery code, typed back from the paper.
//!
//! It proves that the written words are the words that were shown.

use holdfast_recovery::RecoveryCode;
use holdfast_recovery::checksum::PLACES;
use holdfast_recovery::locked::Locked;
use holdfast_recovery::parse::TYPED_BYTES_MAX;
use zeroize::Zeroize as _;

use super::EscrowCommandError;
use crate::code_prompt::{self, TypingFailed};
use crate::terminal::{Line, Terminal};

/// The words that are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedWords {
    /// Three, chosen at random.
    Three,
    All,
}

/// Wrong answers that are allowed. An operator who has the paper makes none; one without it cannot guess a word out of
/// 7,776.
const SLIPS_MAX: u32 = 5;

/// Asks until the words are right.
///
/// # Errors
/// [`EscrowCommandError::NotBack`], or the error that prevents asking.
pub fn typed(
    code: &RecoveryCode,
    asked: AskedWords,
    terminal: &mut Terminal,
) -> Result<(), EscrowCommandError> {
    let mut slips = 0;
    let mut slip = |terminal: &mut Terminal, says: &str| {
        slips += 1;
        if slips > SLIPS_MAX {
            return Err(EscrowCommandError::NotBack);
        }
        Ok(terminal.say(says).map_err(TypingFailed::Terminal)?)
    };
    match asked {
        AskedWords::All => loop {
            let back = match code_prompt::ask(terminal, &|mismatch| code.wrong_position(mismatch)) {
                Ok(back) => back,
                Err(TypingFailed::Ended) => return Err(EscrowCommandError::NotBack),
                Err(error) => return Err(error.into()),
            };
            if back.words().eq(code.words()) {
                return Ok(());
            }
            slip(terminal, "That is a code, and another one: compare it with your paper.\n")?;
        },
        AskedWords::Three => {
            for place in three()? {
                while !one(code, place, terminal)? {
                    let says = format!("That is not word {}: look at your paper.\n", place + 1);
                    slip(terminal, &says)?;
                }
            }
            Ok(())
        }
    }
}

/// Asks for one word, by its position from 0. Returns whether it was right.
fn one(code: &RecoveryCode, place: usize, terminal: &mut Terminal) -> Result<bool, EscrowCommandError> {
    let mut typed = Locked::with_capacity(TYPED_BYTES_MAX).map_err(TypingFailed::Terminal)?;
    let says = format!("Word {} of your paper (not shown): ", place + 1);
    terminal.say(&says).map_err(TypingFailed::Terminal)?;
    match terminal.line(&mut typed).map_err(TypingFailed::Terminal)? {
        Line::Ended => Err(EscrowCommandError::NotBack),
        Line::Empty | Line::Typed => {
            let letters = |text: &str| {
                let lower = text.chars().filter(|c| c.is_ascii_alphabetic()).map(|c| c.to_ascii_lowercase());
                let mut kept = Locked::with_capacity(TYPED_BYTES_MAX)?;
                let mut byte = [0_u8; 1];
                for letter in lower {
                    kept.push(letter.encode_utf8(&mut byte).as_bytes()).map_err(std::io::Error::other)?;
                }
                byte.zeroize();
                Ok::<_, std::io::Error>(kept)
            };
            let word = code.words().nth(place).unwrap_or_default();
            let (given, wanted) = (letters(typed.as_text()), letters(word));
            let (given, wanted) =
                (given.map_err(TypingFailed::Terminal)?, wanted.map_err(TypingFailed::Terminal)?);
            Ok(given.as_bytes() == wanted.as_bytes())
        }
    }
}

/// Three places, each as likely as any other, in the order of the paper.
fn three() -> Result<Vec<usize>, EscrowCommandError> {
    let mut places: Vec<usize> = (0..PLACES).collect();
    while places.len() > 3 {
        let mut byte = [0_u8; 1];
        getrandom::fill(&mut byte).map_err(holdfast_recovery::code::MakeError::Randomness)?;
        let drawn = usize::from(byte[0]);
        // Numbers that would make some places likelier are drawn again.
        if drawn < 256 / places.len() * places.len() {
            places.remove(drawn % places.len());
        }
    }
    Ok(places)
}
