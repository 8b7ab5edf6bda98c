//! EFF long word list: 7,776 words in alphabetical order.
//!
//! Source: `data/README.md`.
//!
//! No word is the beginning of another once the dashes of the four that have one are left out, except that `yo-yo` and
//! `yoyo` are the same letters. So a text that was typed with a blank too many or too few still reads in one way.

use std::sync::LazyLock;

use zeroize::DefaultIsZeroes;

/// How many words there are: 6⁵, five throws of a die.
pub const WORDS: u16 = 7776;

/// The longest word, in letters.
pub const WORD_LETTERS_MAX: usize = 9;

const FILE: &str = include_str!("../data/eff_large_wordlist.txt");

/// Each line is five dice, a tab and the word.
static LIST: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| FILE.lines().filter_map(|line| line.split_once('\t')).map(|(_, word)| word).collect());

/// A word of the list, by its number. It may be part of a code, so it is shown by no `Debug`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Word(u16);

impl DefaultIsZeroes for Word {}

impl Word {
    /// The word of that number, from 0.
    #[must_use]
    pub const fn numbered(number: u16) -> Option<Self> {
        if number < WORDS { Some(Self(number)) } else { None }
    }

    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The word as the list spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        LIST.get(usize::from(self.0)).copied().unwrap_or_default()
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..WORDS).map(Self)
    }

    /// The word of that spelling: as in the list, or without the dash.
    #[must_use]
    pub fn spelt(text: &str) -> Option<Self> {
        let listed = LIST.binary_search(&text).ok().and_then(|at| u16::try_from(at).ok()).map(Self);
        listed.or_else(|| {
            DASHED.iter().find(|(letters, _)| *letters == text).and_then(|(_, word)| Self::spelt(word))
        })
    }
}

/// The words with a dash, by their letters. `yoyo` is missing here: it is a word of its own.
const DASHED: [(&str, &str); 3] = [("dropdown", "drop-down"), ("felttip", "felt-tip"), ("tshirt", "t-shirt")];

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_list_is_the_published_one() {
        let hash = hex::encode(Sha256::digest(FILE.as_bytes()));
        assert_eq!(hash, "addd35536511597a02fa0a9ff1e5284677b8883b83e986e43f15a3db996b903e");
        assert_eq!(LIST.len(), usize::from(WORDS));
        assert!(LIST.windows(2).all(|two| two[0] < two[1]), "sorted, each once");
        assert_eq!(LIST.iter().map(|word| word.len()).max(), Some(WORD_LETTERS_MAX));
        for word in Word::all() {
            assert!(Word::spelt(word.as_str()) == Some(word), "{}", word.as_str());
        }
        assert!(Word::numbered(WORDS).is_none());
    }

    #[test]
    fn no_word_is_a_prefix_of_another() {
        let mut letters: Vec<String> = LIST.iter().map(|word| word.replace('-', "")).collect();
        letters.sort();
        let clashes: Vec<&String> =
            letters.windows(2).filter(|two| two[1].starts_with(&two[0])).map(|two| &two[0]).collect();
        assert_eq!(clashes, ["yoyo"]);
    }

    #[test]
    fn dashes_are_optional() {
        let dashed: Vec<&str> = LIST.iter().copied().filter(|word| word.contains('-')).collect();
        assert_eq!(dashed, ["drop-down", "felt-tip", "t-shirt", "yo-yo"]);
        for word in dashed {
            let without = Word::spelt(&word.replace('-', "")).unwrap();
            assert_eq!(without.as_str() == word, word != "yo-yo");
        }
    }
}
