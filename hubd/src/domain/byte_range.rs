//! The part of a file that a `Range` header names.

/// First and last byte, both inside the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    pub first: u64,
    pub last: u64,
}

impl ByteRange {
    /// How many bytes it has: at least one.
    #[must_use]
    pub const fn length(self) -> u64 {
        self.last - self.first + 1
    }

    /// Reads a header for a file of `size` bytes: `bytes=FROM-TO`, `bytes=FROM-` or `bytes=-LAST`, one part alone.
    ///
    /// # Errors
    /// [`RangeError`].
    pub fn parse(header: &str, size: u64) -> Result<Self, RangeError> {
        let form = || RangeError::Form;
        let (from, to) =
            header.strip_prefix("bytes=").and_then(|part| part.split_once('-')).ok_or_else(form)?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u64>().ok()).flatten().ok_or_else(form)
        };
        let end = size.checked_sub(1).ok_or(RangeError::Outside { size })?;
        let (first, last) = match (from, to) {
            ("", count) => (size.saturating_sub(number(count)?), end),
            (from, "") => (number(from)?, end),
            (from, to) => (number(from)?, number(to)?),
        };
        if first > last {
            let is_form = !to.is_empty() && !from.is_empty();
            return Err(if is_form { RangeError::Form } else { RangeError::Outside { size } });
        }
        if first > end {
            return Err(RangeError::Outside { size });
        }
        Ok(Self { first, last: last.min(end) })
    }
}

/// Why no part is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("Range is bytes=FROM-TO, bytes=FROM- or bytes=-LAST, one part alone")]
    Form,
    #[error("Range names no byte of the file, which has {size}")]
    Outside { size: u64 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_inside_the_file_is_taken() {
        let parse = |header: &str| ByteRange::parse(header, 100);
        let range = |first, last| Ok(ByteRange { first, last });
        for (header, expected) in [
            ("bytes=0-0", range(0, 0)),
            ("bytes=0-99", range(0, 99)),
            ("bytes=40-", range(40, 99)),
            ("bytes=40-1000", range(40, 99)),
            ("bytes=-10", range(90, 99)),
            ("bytes=-1000", range(0, 99)),
            ("bytes=99-", range(99, 99)),
            ("bytes=100-", Err(RangeError::Outside { size: 100 })),
            ("bytes=100-200", Err(RangeError::Outside { size: 100 })),
            ("bytes=-0", Err(RangeError::Outside { size: 100 })),
            ("bytes=5-4", Err(RangeError::Form)),
            ("bytes=0-1,3-4", Err(RangeError::Form)),
            ("bytes=+1-2", Err(RangeError::Form)),
            ("bytes=-", Err(RangeError::Form)),
            ("bytes=18446744073709551616-", Err(RangeError::Form)),
            ("lines=0-1", Err(RangeError::Form)),
            ("", Err(RangeError::Form)),
        ] {
            assert_eq!(parse(header), expected, "{header}");
        }
        assert_eq!(ByteRange::parse("bytes=0-", 0), Err(RangeError::Outside { size: 0 }));
        assert_eq!(parse("bytes=10-19").map(ByteRange::length), Ok(10));
    }
}
