//! Suggestions for words that were mistyped or swapped.
//!
//! The output is close to a secret: it is for the terminal of the person who types, and no `Debug` shows it.

use std::fmt;

use zeroize::Zeroizing;

use crate::checksum::{PLACES, is_valid, replacement_at};
use crate::word::Word;

/// So many are offered at most.
const OFFERED: usize = 3;

/// A word that is further off than this was not meant.
const SLIPS_MAX: usize = 2;

/// Where in the code, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(usize);

impl Position {
    pub(crate) const fn after(others: usize) -> Self {
        Self(others + 1)
    }

    /// The number on the sheet.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }
}

/// A change that would make it right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Another word there.
    Replace(Position, Word),
    /// These two in each other's place.
    Swap(Position, Position),
}

impl fmt::Debug for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Repair(…)")
    }
}

/// For the terminal.
impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replace(position, word) => write!(f, "word {}: {}", position.number(), word.as_str()),
            Self::Swap(one, other) => {
                write!(f, "words {} and {} swapped", one.number(), other.number())
            }
        }
    }
}

/// The words of the list that are nearest to what was typed, the nearest first.
#[must_use]
pub fn near(typed: &str) -> Vec<Word> {
    let typed: Zeroizing<Vec<char>> = Zeroizing::new(typed.chars().collect());
    let has = letters(typed.iter().copied());
    let mut found: Vec<(usize, Word)> = Word::all()
        .filter(|word| may_be_near(has, letters(word.as_str().chars())))
        .filter_map(|word| Some((slips(&typed, word.as_str())?, word)))
        .collect();
    found.sort_by_key(|(slips, word)| (*slips, word.number()));
    found.into_iter().take(OFFERED).map(|(_, word)| word).collect()
}

/// The single slips that would make eleven words of the list a code, the likeliest first: two swapped words, or one
/// read as another that is spelt alike. Short words resemble many others, and one of those may fit by chance; so they
/// come last.
#[must_use]
pub fn repairs(words: &[Word; PLACES]) -> Vec<Repair> {
    let mut found = swaps(words);
    for (at, word) in words.iter().enumerate() {
        let typed: Zeroizing<Vec<char>> = Zeroizing::new(word.as_str().chars().collect());
        found.extend(replacement_at(words, at).and_then(|replacement_at| {
            let slips = slips(&typed, replacement_at.as_str())?;
            Some((slips, Repair::Replace(Position::after(at), replacement_at)))
        }));
    }
    found.sort_by_key(|(slips, _)| *slips);
    found.into_iter().take(OFFERED).map(|(_, repair)| repair).collect()
}

fn swaps(words: &[Word; PLACES]) -> Vec<(usize, Repair)> {
    let mut swaps = Vec::new();
    for one in 0..PLACES {
        for other in one + 1..PLACES {
            let mut tried = Zeroizing::new(*words);
            tried.swap(one, other);
            if is_valid(&tried) {
                swaps.push((1, Repair::Swap(Position::after(one), Position::after(other))));
            }
        }
    }
    swaps
}

/// Which letters there are, one bit each; all other characters share one more bit.
fn letters(text: impl Iterator<Item = char>) -> u32 {
    text.map(|letter| if letter.is_ascii_lowercase() { u32::from(letter) - u32::from('a') } else { 31 })
        .fold(0, |bits, letter| bits | 1 << letter)
}

/// A slip adds or loses one letter at most, so this cheap comparison rules out most words.
const fn may_be_near(typed: u32, word: u32) -> bool {
    (typed & !word).count_ones() as usize <= SLIPS_MAX && (word & !typed).count_ones() as usize <= SLIPS_MAX
}

/// How many letters were left out, put in, replaced, or swapped with the next; nothing beyond [`SLIPS_MAX`].
fn slips(typed: &[char], word: &str) -> Option<usize> {
    if typed.len().abs_diff(word.len()) > SLIPS_MAX {
        return None;
    }
    let width = typed.len() + 1;
    let mut before_last = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    let mut earlier = None;
    for (row, letter) in word.chars().enumerate() {
        let mut line = vec![row + 1; width];
        for (at, typed_letter) in typed.iter().enumerate() {
            let get = |line: &[usize], at: usize| line.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut least = (get(&last, at + 1) + 1)
                .min(get(&line, at) + 1)
                .min(get(&last, at) + usize::from(*typed_letter != letter));
            let typed_before = at.checked_sub(1).and_then(|before| typed.get(before));
            if typed_before == Some(&letter) && earlier == Some(*typed_letter) {
                least = least.min(get(&before_last, at - 1) + 1);
            }
            if let Some(cell) = line.get_mut(at + 1) {
                *cell = least;
            }
        }
        earlier = Some(letter);
        before_last = std::mem::replace(&mut last, line);
    }
    last.last().copied().filter(|slips| *slips <= SLIPS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(typed: &str) -> Vec<&'static str> {
        near(typed).into_iter().map(Word::as_str).collect()
    }

    #[test]
    fn each_edit_counts_one() {
        let of = |typed: &str, word| slips(&typed.chars().collect::<Vec<_>>(), word);
        for (typed, expected) in [
            ("abacus", Some(0)),
            ("abcus", Some(1)),
            ("abaccus", Some(1)),
            ("abakus", Some(1)),
            ("baacus", Some(1)),
            ("abcaus", Some(1)),
            ("bacaus", Some(2)),
            ("cabus", None),
            ("", None),
        ] {
            assert_eq!(of(typed, "abacus"), expected, "{typed}");
        }
    }

    #[test]
    fn the_letter_filter_drops_no_near_word() {
        for typed in ["abakus", "zyoology", "crushd", "qq", "a", "é", "yo"] {
            let letters_typed: Vec<char> = typed.chars().collect();
            for word in Word::all().map(Word::as_str) {
                let near = slips(&letters_typed, word).is_some();
                assert!(
                    !near || may_be_near(letters(typed.chars()), letters(word.chars())),
                    "{typed} {word}"
                );
            }
        }
    }

    #[test]
    fn nearest_words_come_first() {
        assert_eq!(offered("abakus"), ["abacus"]);
        assert_eq!(offered("crushd").first(), Some(&"crushed"));
        assert_eq!(offered("zyoology"), ["zoology"], "a slip of the finger");
        assert!(offered("qqqqqqqq").is_empty());
        assert!(offered("").len() <= OFFERED);
    }
}
