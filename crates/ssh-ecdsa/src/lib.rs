//! The two numbers of an ECDSA signature on P-256.
//!
//! In: their bytes as OpenSSH writes them, each with its length before it. Out: both with 32 bytes, as `ring` takes them. Each pair
//! has one spelling; every other is refused. It is read here and not by `ssh-key`, so that no check rests on one reader alone.
//! Deliberately absent: the check of the signature, and which keys may sign.
#![forbid(unsafe_code)]

/// Bytes of each of the two numbers.
pub const NUMBER: usize = 32;

/// Both numbers, first r, then s. None for anything else.
#[must_use]
pub fn fixed(blob: &[u8]) -> Option<[u8; 2 * NUMBER]> {
    let (r, rest) = number(blob)?;
    let (s, rest) = number(rest)?;
    let mut out = [0; 2 * NUMBER];
    let (left, right) = out.split_at_mut(NUMBER);
    left.get_mut(NUMBER.checked_sub(r.len())?..)?.copy_from_slice(r);
    right.get_mut(NUMBER.checked_sub(s.len())?..)?.copy_from_slice(s);
    rest.is_empty().then_some(out)
}

/// An `mpint` that is positive and has no needless zero before it, and what follows it.
fn number(blob: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = blob.split_first_chunk::<4>()?;
    let (digits, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let digits = match digits {
        [0, more @ ..] if more.first().is_some_and(|first| *first >= 0x80) => more,
        [first, ..] if (1..0x80).contains(first) => digits,
        _ => return None,
    };
    (digits.len() <= NUMBER).then_some((digits, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(digits: &[u8]) -> Vec<u8> {
        let length = u32::try_from(digits.len()).unwrap();
        [&length.to_be_bytes(), digits].concat()
    }

    #[test]
    fn a_number_is_positive_and_starts_with_its_first_digit() {
        let read = |digits: &[u8]| {
            let mut text = written(digits);
            text.push(9);
            let read = number(&text)?;
            assert_eq!(read.1, [9], "what follows is left");
            Some(read.0.to_vec())
        };
        for digits in [&[1][..], &[0x7f], &[0x7f, 0xff], &[0x7f; 32]] {
            assert_eq!(read(digits).as_deref(), Some(digits));
        }
        for digits in [&[0x80][..], &[0xff, 0], &[0x80; 32]] {
            assert_eq!(read(digits), None, "negative");
            assert_eq!(read(&[&[0], digits].concat()).as_deref(), Some(digits));
        }
        for digits in [&[][..], &[0], &[0, 0], &[0, 1], &[0, 0x7f], &[0, 0, 0x80], &[1; 33], &[0x80; 33]] {
            assert_eq!(read(digits), None, "{digits:x?}");
        }
        assert_eq!(number(&[0, 0, 0]), None);
        assert_eq!(number(&[0, 0, 0, 2, 1]), None);
    }

    #[test]
    fn both_numbers_are_filled_up_and_nothing_follows() {
        let pair = [written(&[1]), written(&[0, 0xff, 2])].concat();
        let mut expected = [0; 64];
        expected[31] = 1;
        (expected[62], expected[63]) = (0xff, 2);
        assert_eq!(fixed(&pair), Some(expected));
        assert_eq!(fixed(&written(&[1])), None);
        assert_eq!(fixed(&[pair, vec![0]].concat()), None);
    }
}
