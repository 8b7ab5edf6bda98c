//! Field arithmetic for the check word.
//!
//! A number below 7,776 = 32 · 243 is a pair, one of the field of 32 elements and one of the field of 243.
//!
//! Counting modulo 7,776 is not enough. To detect every wrong word, each place's weight must have an inverse. To detect
//! every swap, each difference of two weights must have one as well; and modulo an even number the difference of two
//! odd weights has none. In a field everything but zero has an inverse, so distinct weights that are not zero are
//! enough. 7,776 is no power of a prime and has no field, but its two factors have one each.

use crate::word::Word;

/// x⁵ + x² + 1, which nothing divides, over the field of two: bits are coefficients.
const TWO_MODULUS: u8 = 0b10_0101;
const TWO_OVERFLOW: u8 = 0b10_0000;
const DIGITS: usize = 5;

/// A pair: five coefficients of 0 or 1 as bits, and five of 0, 1 or 2.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Element {
    two: u8,
    three: [u8; DIGITS],
}

impl Element {
    pub const ZERO: Self = Self { two: 0, three: [0; DIGITS] };

    /// The pair of a word, one to one: its number modulo 32, and what is left, in base 3.
    #[must_use]
    pub fn of(word: Word) -> Self {
        let [two, _] = (word.number() % 32).to_le_bytes();
        Self { two, three: ternary(word.number() / 32) }
    }

    /// The weight of a place: the element of that number in both fields. Distinct for numbers below 32.
    #[must_use]
    pub fn weight(number: u8) -> Self {
        Self { two: number % 32, three: ternary(u16::from(number)) }
    }

    /// The word of a pair.
    #[must_use]
    pub fn word(self) -> Word {
        let three = self.three.iter().rev().fold(0, |number, digit| number * 3 + u16::from(*digit));
        Word::numbered(three * 32 + u16::from(self.two)).unwrap_or_default()
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { two: self.two ^ other.two, three: added(self.three, other.three) }
    }

    /// What makes zero with it.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { two: self.two, three: self.three.map(|digit| (3 - digit) % 3) }
    }

    /// What gives this when multiplied by a divisor that is zero in neither field.
    #[must_use]
    pub fn over(self, divisor: Self) -> Option<Self> {
        let two = (0..TWO_OVERFLOW).find(|two| times_two(*two, divisor.two) == 1)?;
        let three = (0..243).map(ternary).find(|three| times_three(*three, divisor.three) == ternary(1))?;
        Some(self.times(Self { two, three }))
    }

    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { two: times_two(self.two, other.two), three: times_three(self.three, other.three) }
    }
}

fn ternary(number: u16) -> [u8; DIGITS] {
    let mut rest = number;
    [(); DIGITS].map(|()| {
        let [digit, _] = (rest % 3).to_le_bytes();
        rest /= 3;
        digit
    })
}

fn added(one: [u8; DIGITS], other: [u8; DIGITS]) -> [u8; DIGITS] {
    let mut sum = one;
    for (digit, more) in sum.iter_mut().zip(other) {
        *digit = (*digit + more) % 3;
    }
    sum
}

/// Horner's rule: times x, and the next coefficient.
fn times_two(one: u8, other: u8) -> u8 {
    (0..DIGITS).rev().fold(0, |sum, bit| {
        let shifted = sum << 1;
        let reduced = if shifted & TWO_OVERFLOW == 0 { shifted } else { shifted ^ TWO_MODULUS };
        if other >> bit & 1 == 1 { reduced ^ one } else { reduced }
    })
}

/// Likewise modulo x⁵ + 2x + 1, which nothing divides over the field of three: x⁵ is x + 2.
fn times_three(one: [u8; DIGITS], other: [u8; DIGITS]) -> [u8; DIGITS] {
    other.iter().rev().fold([0; DIGITS], |[a, b, c, d, e], factor| {
        let reduced = [2 * e % 3, (a + e) % 3, b, c, d];
        added(reduced, one.map(|digit| digit * factor % 3))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_elements_map_one_to_one() {
        for word in Word::all() {
            assert!(Element::of(word).word() == word);
            assert!(Element::of(word).plus(Element::of(word).negated()) == Element::ZERO);
        }
    }

    /// What makes both of them fields: no product of two that are not zero is zero. With a finite number of elements,
    /// each then has an inverse.
    #[test]
    fn fields_have_no_zero_divisors() {
        for one in 1..32 {
            for other in 1..32 {
                assert_ne!(times_two(one, other), 0, "{one} {other}");
            }
        }
        for one in 1..243 {
            for other in 1..243 {
                assert_ne!(times_three(ternary(one), ternary(other)), [0; DIGITS], "{one} {other}");
            }
        }
    }

    /// Multiplication is what its name says: it distributes, and one leaves things as they are.
    #[test]
    fn multiplication_distributes() {
        let some: Vec<Element> = Word::all().step_by(211).map(Element::of).collect();
        for &a in &some {
            assert!(a.times(Element::weight(1)) == a);
            for number in 1..32 {
                assert!(a.over(Element::weight(number)).unwrap().times(Element::weight(number)) == a);
            }
            assert!(a.over(Element::ZERO).is_none());
            for &b in &some {
                assert!(a.times(b) == b.times(a));
                for &c in &some {
                    assert!(a.times(b.plus(c)) == a.times(b).plus(a.times(c)));
                }
            }
        }
    }
}
