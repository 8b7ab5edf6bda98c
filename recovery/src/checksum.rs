//! Check word: zeroes the weighted sum of all eleven words.
//!
//! Each place has a weight of its own, none of them zero, and the sum is taken in two fields at once
//! ([`crate::check_word`]). One changed word changes the sum by weight times difference, which is not zero. Two swapped
//! words change it by the difference of their weights times the difference of the words, which is zero only if the
//! words are equal. So either is always detected, the eleventh word included; anything else is missed once in 7,776
//! times.

use crate::check_word::Element;
use crate::word::Word;

/// The words that are drawn: 10 · log₂ 7776 = 129 bits.
pub const DRAWN: usize = 10;

/// The words of a code.
pub const PLACES: usize = DRAWN + 1;

/// The eleventh word of ten.
#[must_use]
pub fn eleventh_word(drawn: &[Word; DRAWN]) -> Word {
    // Its own weight is one.
    sum(drawn).negated().word()
}

/// Whether eleven words belong together.
#[must_use]
pub fn is_valid(words: &[Word; PLACES]) -> bool {
    sum(words) == Element::ZERO
}

/// The one word that makes eleven belong together when it is put at a place, counted from 0.
#[must_use]
pub fn replacement_at(words: &[Word; PLACES], at: usize) -> Option<Word> {
    let weight = weights().nth(at)?;
    let is = Element::of(*words.get(at)?);
    Some(is.plus(sum(words).over(weight)?.negated()).word())
}

fn sum(words: &[Word]) -> Element {
    weights().zip(words).fold(Element::ZERO, |sum, (weight, word)| sum.plus(weight.times(Element::of(*word))))
}

/// From the first place on: 11, 10, … down to 1.
fn weights() -> impl Iterator<Item = Element> {
    (1..=11).rev().map(Element::weight)
}
