//! Recovery codes: generation from kernel randomness, and parsing.

use std::fmt;
use std::io;

use zeroize::{Zeroize, Zeroizing};

use crate::checksum::{DRAWN, PLACES, eleventh_word};
use crate::locked::{CapacityError, Locked, SwapProtection};
use crate::parse::{self, Mismatch, TypingError};
use crate::suggest::Position;
use crate::word::{WORD_LETTERS_MAX, WORDS, Word};

/// The smallest power of two that every word's number is below, less one.
const DRAW_MASK: u16 = 0x1fff;

/// Eleven words that belong together. They are stored in locked memory, and no `Debug` shows them.
pub struct RecoveryCode {
    /// The numbers of the words, two bytes each.
    numbers: Locked,
}

/// Why no code was made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// No memory for it.
    #[error("no memory could be allocated for the recovery code")]
    Memory(#[source] io::Error),
    /// The kernel will not lock memory.
    #[error(
        "the kernel refuses to lock memory, so the recovery code could be written to swap: raise the limit (`ulimit -l`) and \
         try again"
    )]
    Swappable,
    #[error("the kernel returned no randomness for a recovery code")]
    Randomness(#[source] getrandom::Error),
}

/// Why what was typed is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no code.
    #[error(transparent)]
    Typing(#[from] TypingError),
    /// No memory for it.
    #[error("no memory could be allocated for the recovery code")]
    Memory(#[source] io::Error),
}

impl RecoveryCode {
    /// Makes one.
    ///
    /// # Errors
    /// [`MakeError`]. A code that is to last for years is not made in memory that may be swapped.
    pub fn generate() -> Result<Self, MakeError> {
        let mut drawn = Zeroizing::new([Word::default(); DRAWN]);
        for word in drawn.iter_mut() {
            *word = draw().map_err(MakeError::Randomness)?;
        }
        let code = Self::of(&drawn).map_err(MakeError::Memory)?;
        match code.numbers.held() {
            SwapProtection::Locked => Ok(code),
            SwapProtection::Swappable => Err(MakeError::Swappable),
        }
    }

    /// The code of ten drawn words.
    ///
    /// # Errors
    /// When there is no memory left.
    pub fn of(drawn: &[Word; DRAWN]) -> io::Result<Self> {
        let mut words = Zeroizing::new([eleventh_word(drawn); PLACES]);
        for (word, drawn) in words.iter_mut().zip(drawn) {
            *word = *drawn;
        }
        Self::keep(&words)
    }

    /// Reads what a person typed.
    pub fn read(typed: &str) -> Result<Self, ReadError> {
        let words = parse::read(typed)?;
        Self::keep(&words).map_err(ReadError::Memory)
    }

    pub(crate) fn keep(words: &[Word; PLACES]) -> io::Result<Self> {
        let mut numbers = Locked::with_capacity(PLACES * 2)?;
        for word in words {
            numbers.push(&word.number().to_le_bytes()).map_err(io::Error::other)?;
        }
        Ok(Self { numbers })
    }

    /// The place of the one word that was typed wrongly, by a person who was shown the code just now; `None` where more
    /// are wrong.
    #[must_use]
    pub fn wrong_position(&self, mismatch: &Mismatch) -> Option<Position> {
        mismatch.with_another_word().find_map(|(position, words)| {
            words.iter().map(|word| word.as_str()).eq(self.words()).then_some(position)
        })
    }

    /// The words in their order, for the sheet and the screen. Every call deserves a check in review.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.numbers.as_bytes().chunks_exact(2).filter_map(|bytes| {
            let number = u16::from_le_bytes(bytes.try_into().ok()?);
            Word::numbered(number).map(Word::as_str)
        })
    }

    /// What opens the escrow file: the words as the list spells them, with one blank between. `age` takes it as typed.
    ///
    /// # Errors
    /// When there is no memory left.
    pub fn passphrase(&self) -> io::Result<Locked> {
        let mut text = Locked::with_capacity(PLACES * (WORD_LETTERS_MAX + 1))?;
        let put = |text: &mut Locked, part: &str| {
            text.push(part.as_bytes()).map_err(|full: CapacityError| io::Error::other(full))
        };
        for word in self.words() {
            if !text.as_bytes().is_empty() {
                put(&mut text, " ")?;
            }
            put(&mut text, word)?;
        }
        Ok(text)
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(…)")
    }
}

/// One word, each as likely as any other: a number that is no word's is drawn again.
fn draw() -> Result<Word, getrandom::Error> {
    let mut bytes = [0_u8; 2];
    loop {
        getrandom::fill(&mut bytes)?;
        let number = u16::from_le_bytes(bytes) & DRAW_MASK;
        bytes.zeroize();
        if let Some(word) = Word::numbered(number) {
            return Ok(word);
        }
    }
}

const _: () =
    assert!(WORDS <= DRAW_MASK && DRAW_MASK / 2 < WORDS, "every number can be drawn, most at the first try");
