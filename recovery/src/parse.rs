//! Parser of typed recovery codes, tolerant of harmless differences.
//!
//! Case, blanks, dashes, several lines and the numbers of the sheet are accepted. So is a blank too many within a word
//! and one too few between two. Where every word has its number they may come in any order, as from a sheet that was
//! read across its columns. An error says nothing about the words but their positions. The words that were probably
//! meant are requested separately, for the terminal.

use std::fmt;

use holdfast_protocol::code::ErrorCode;
use zeroize::{Zeroize, Zeroizing};

use crate::checksum::{PLACES, is_valid, replacement_at};
use crate::suggest::{self, Position, Repair};
use crate::word::{WORD_LETTERS_MAX, Word};

/// More than eleven numbered words on lines of their own.
pub const TYPED_BYTES_MAX: usize = 1024;

/// Why the typed text is no code. Reported before anything slow is done with it.
#[derive(Debug, thiserror::Error)]
pub enum TypingError {
    /// Much more than eleven words.
    #[error("that is {0} bytes long: type the eleven words of the sheet and nothing else")]
    TooLong(usize),
    /// Words that are not in the list.
    #[error("{} not in the list of words: type {} as on the sheet", positions(.0), if .0.len() == 1 { "it" } else { "them" })]
    Unknown(Vec<UnknownWord>),
    /// Too few or too many.
    #[error(
        "these are {0} words: a recovery code has eleven; type all of them, in the order of their numbers"
    )]
    Count(usize),
    /// Each is a word, and they do not belong together.
    #[error("a word is wrong, or two words are swapped: compare each with the sheet")]
    Mismatch(Mismatch),
}

impl TypingError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TooLong(_) => ErrorCode::Size,
            Self::Unknown(_) | Self::Count(_) | Self::Mismatch(_) => ErrorCode::CodeMistyped,
        }
    }
}

/// A word that is not in the list.
#[derive(Debug)]
pub struct UnknownWord {
    /// Its position.
    pub position: Position,
    near: Suggestions,
}

impl UnknownWord {
    /// What was probably meant, the likeliest first.
    pub fn suggestions(&self) -> impl Iterator<Item = &'static str> {
        self.near.0.iter().map(|word| word.as_str())
    }
}

struct Suggestions(Vec<Word>);

impl fmt::Debug for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Eleven words that do not belong together.
pub struct Mismatch(Zeroizing<[Word; PLACES]>);

impl Mismatch {
    /// Single slips that would explain it.
    #[must_use]
    pub fn repairs(&self) -> Vec<Repair> {
        suggest::repairs(&self.0)
    }

    /// The eleven words that would belong together if one word alone were wrong, place by place. Only a holder of the
    /// file or of the words can decide which of them is the code.
    pub(crate) fn with_another_word(&self) -> impl Iterator<Item = (Position, Zeroizing<[Word; PLACES]>)> {
        (0..PLACES).filter_map(|at| {
            let mut words = self.0.clone();
            *words.get_mut(at)? = replacement_at(&self.0, at)?;
            Some((Position::after(at), words))
        })
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mismatch(…)")
    }
}

/// As in "words 3 and 7 are".
fn positions(slips: &[UnknownWord]) -> String {
    let numbers: Vec<String> = slips.iter().map(|slip| slip.position.number().to_string()).collect();
    match numbers.split_last() {
        Some((last, [])) => format!("word {last} is"),
        Some((last, others)) => format!("words {} and {last} are", others.join(", ")),
        None => String::new(),
    }
}

/// Reads what was typed.
pub fn read(typed: &str) -> Result<Zeroizing<[Word; PLACES]>, TypingError> {
    if typed.len() > TYPED_BYTES_MAX {
        return Err(TypingError::TooLong(typed.len()));
    }
    // No letter is more than three times as long in lower case: the buffer never grows, and leaves no copy behind.
    let mut lower = Zeroizing::new(String::with_capacity(typed.len() * 3));
    lower.extend(typed.chars().flat_map(char::to_lowercase));
    let mut entries = entries(&pieces(&lower));
    in_order(&mut entries);
    if entries.len() <= 2 * PLACES {
        let slips: Vec<UnknownWord> =
            entries.iter().enumerate().filter_map(|(at, entry)| entry.slip(at)).collect();
        if !slips.is_empty() {
            return Err(TypingError::Unknown(slips));
        }
    }
    let mut words = Zeroizing::new([Word::default(); PLACES]);
    if entries.len() != PLACES {
        return Err(TypingError::Count(entries.len()));
    }
    for (word, entry) in words.iter_mut().zip(&entries) {
        *word = entry.word;
    }
    if is_valid(&words) { Ok(words) } else { Err(TypingError::Mismatch(Mismatch(words))) }
}

#[derive(Clone, Copy)]
enum Piece<'a> {
    Letters(&'a str),
    Number(Option<usize>),
}

/// One word as it was read. It is wiped when it is dropped.
struct Entry<'a> {
    number: Option<usize>,
    word: Word,
    /// The text there, when it is no word.
    unknown: Option<&'a str>,
}

impl Entry<'_> {
    const fn known(number: Option<usize>, word: Word) -> Self {
        Self { number, word, unknown: None }
    }

    fn slip(&self, at: usize) -> Option<UnknownWord> {
        let position = Position::after(at);
        self.unknown.map(|text| UnknownWord { position, near: Suggestions(suggest::near(text)) })
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.word.zeroize();
    }
}

/// Runs of letters and runs of digits; any other characters separate them.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = (first.is_alphabetic(), first.is_ascii_digit());
        let end = rest.find(|c: char| (c.is_alphabetic(), c.is_ascii_digit()) != kind).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        match kind {
            (true, _) => pieces.push(Piece::Letters(piece)),
            (_, true) => pieces.push(Piece::Number(piece.parse().ok())),
            _ => {}
        }
        rest = after;
    }
    pieces
}

fn entries<'a>(pieces: &[Piece<'a>]) -> Vec<Entry<'a>> {
    // Each run of letters is one entry, or at most as many as a code has words: so it never grows.
    let mut entries = Vec::with_capacity(pieces.len() * PLACES);
    let mut number = None;
    let mut rest = pieces;
    while let Some((piece, after)) = rest.split_first() {
        rest = after;
        let letters = match piece {
            Piece::Number(read) => {
                number = *read;
                continue;
            }
            Piece::Letters(letters) => *letters,
        };
        let joined = match after.split_first() {
            Some((Piece::Letters(next), beyond)) => joined(letters, next).map(|word| (word, beyond)),
            _ => None,
        };
        if let Some(word) = Word::spelt(letters) {
            entries.push(Entry::known(number.take(), word));
        } else if let Some((word, beyond)) = joined {
            entries.push(Entry::known(number.take(), word));
            rest = beyond;
        } else if let Some(words) = split_words(letters) {
            entries.extend(words.iter().map(|word| Entry::known(number.take(), *word)));
        } else {
            entries.push(Entry { number: number.take(), word: Word::default(), unknown: Some(letters) });
        }
    }
    entries
}

/// Two runs of letters as one word: with the dash of the list, or torn apart by a blank.
fn joined(letters: &str, next: &str) -> Option<Word> {
    if letters.len() + next.len() > WORD_LETTERS_MAX {
        return None;
    }
    let mut both = Zeroizing::new(String::with_capacity(WORD_LETTERS_MAX + 1));
    both.extend([letters, "-", next]);
    let dashed = Word::spelt(&both);
    // Where the second is a word by itself it is more likely that the first is misspelt.
    if dashed.is_some() || Word::spelt(next).is_some() {
        return dashed;
    }
    both.clear();
    both.extend([letters, next]);
    Word::spelt(&both)
}

/// One run of letters as several words: no word is the beginning of another, so there is one way at most.
fn split_words(letters: &str) -> Option<Zeroizing<Vec<Word>>> {
    let mut words = Zeroizing::new(Vec::with_capacity(PLACES));
    let mut rest = letters;
    while !rest.is_empty() && words.len() < PLACES {
        let (word, after) = (1..=WORD_LETTERS_MAX).find_map(|end| {
            let (word, after) = rest.split_at_checked(end)?;
            Some((Word::spelt(word)?, after))
        })?;
        words.push(word);
        rest = after;
    }
    rest.is_empty().then_some(words)
}

/// Where the numbers are exactly those of the sheet they say the order, else the order is that of typing.
fn in_order(entries: &mut [Entry<'_>]) {
    let mut numbers: Vec<usize> = entries.iter().filter_map(|entry| entry.number).collect();
    numbers.sort_unstable();
    if entries.len() == PLACES && numbers.iter().copied().eq(1..=PLACES) {
        entries.sort_by_key(|entry| entry.number);
    }
}
