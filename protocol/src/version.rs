//! The order of two version numbers.
//!
//! What comes in: two versions as programs report them. What goes out: their order, as far as their dotted numbers
//! decide it; what follows a `+` does not count. Anything else (`1.0-rc1`, a branch's name) has no order, so a request
//! alone moves no program from or to it.

use std::cmp::Ordering;

/// The order of two versions, where both are dotted numbers.
#[must_use]
pub fn order(one: &str, other: &str) -> Option<Ordering> {
    let (mut one, mut other) = (numbers(one)?, numbers(other)?);
    let length = one.len().max(other.len());
    one.resize(length, 0);
    other.resize(length, 0);
    Some(one.cmp(&other))
}

fn numbers(version: &str) -> Option<Vec<u64>> {
    let plain = version.split('+').next().unwrap_or(version);
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
    plain.split('.').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_numbers_have_an_order_and_nothing_else_has() {
        for (one, other, is) in [
            ("0.1.0", "0.2.0", Ordering::Less),
            ("0.10.0", "0.9.9", Ordering::Greater),
            ("1", "1.0.0", Ordering::Equal),
            ("1.2.3+build7", "1.2.3", Ordering::Equal),
        ] {
            assert_eq!(order(one, other), Some(is), "{one} {other}");
            assert_eq!(order(other, one), Some(is.reverse()), "{other} {one}");
        }
        for none in ["", "1.", ".1", "1.0-rc1", "v1", "main", "1..2", "99999999999999999999", "-1", "+1"] {
            assert_eq!(order("1.0", none), None, "{none}");
        }
    }
}
