//! The outer form of an escrow file.
//!
//! In: bytes from anywhere. Out: the `age` file inside the text, or why it is none. All of it is judged without a key.
//! So agent and hub judge by the same rules, and neither waits for a slow function that another party chose. Text that
//! was scanned or typed from paper may have other line ends, blanks around its lines and lines of other lengths. That
//! is accepted; other characters are not. Deliberately absent: opening it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::code::ErrorCode;

/// Longer files are refused.
pub const FILE_BYTES_MAX: usize = 4096;

/// 2¹⁶ rounds: 64 MiB. A code of 129 bits needs no slow function, so it is one that every machine can do.
pub const WORK_FACTOR: u8 = 16;

/// 2²⁰ rounds: 1 GiB. A person who wraps a key by hand may choose this much.
pub const WORK_FACTOR_MAX: u8 = 20;

const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";

/// As `age -a` writes it.
const LINE: usize = 64;

/// Why bytes are not of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Too long.
    #[error("the escrow file is longer than {FILE_BYTES_MAX} bytes, so it is none")]
    TooLong,
    /// No such file, a cut one, or a changed one.
    #[error("the escrow file is damaged or no age file as text: take another copy of it")]
    Broken,
    /// Not for a passphrase alone.
    #[error("the file is not for one recovery code alone, so it is no escrow file")]
    Readers,
    /// Too weak or endless.
    #[error("the file asks for a work factor of {0}, and {WORK_FACTOR} to {WORK_FACTOR_MAX} are taken")]
    Work(u8),
}

impl FormError {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::TooLong => ErrorCode::Size,
            Self::Broken | Self::Readers => ErrorCode::EscrowBroken,
            Self::Work(_) => ErrorCode::EscrowWork,
        }
    }
}

/// The `age` file inside the text, when it is within the bounds.
///
/// # Errors
/// [`FormError`], at the first reason.
pub fn judge(text: &[u8]) -> Result<Vec<u8>, FormError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(FormError::TooLong);
    }
    let bytes = from_text(text).ok_or(FormError::Broken)?;
    // In lines of our length it may be longer than it came.
    if to_text(&bytes).len() > FILE_BYTES_MAX {
        return Err(FormError::TooLong);
    }
    let factor = work_factor(&bytes)?;
    if (WORK_FACTOR..=WORK_FACTOR_MAX).contains(&factor) { Ok(bytes) } else { Err(FormError::Work(factor)) }
}

/// An `age` file as text: base64 in lines of 64 between two marks.
#[must_use]
pub fn to_text(bytes: &[u8]) -> String {
    let encoded = STANDARD.encode(bytes);
    let mut text = format!("{BEGIN}\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text + END + "\n"
}

fn from_text(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let inner = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let encoded: String = inner.split_ascii_whitespace().collect();
    STANDARD.decode(encoded).ok()
}

/// The work factor of the passphrase, from the header: one reader, `-> scrypt SALT FACTOR`, and its body in one line.
///
/// # Errors
/// [`FormError`].
pub fn work_factor(file: &[u8]) -> Result<u8, FormError> {
    let mut lines = file.split(|byte| *byte == b'\n');
    if lines.next() != Some(b"age-encryption.org/v1") {
        return Err(FormError::Broken);
    }
    let arguments = lines.next().and_then(|line| line.strip_prefix(b"-> ")).ok_or(FormError::Broken)?;
    let arguments = arguments.strip_prefix(b"scrypt ").ok_or(FormError::Readers)?;
    let _body = lines.next();
    match lines.next() {
        Some(line) if line.starts_with(b"--- ") => {}
        Some(line) if line.starts_with(b"-> ") => return Err(FormError::Readers),
        _ => return Err(FormError::Broken),
    }
    let mut parts = arguments.split(|byte| *byte == b' ');
    let (_salt, factor) = (parts.next(), parts.next().ok_or(FormError::Broken)?);
    let text = std::str::from_utf8(factor).map_err(|_| FormError::Broken)?;
    let number: u8 = text.parse().map_err(|_| FormError::Broken)?;
    // One spelling alone, and nothing behind it.
    if number.to_string() == text && parts.next().is_none() { Ok(number) } else { Err(FormError::Broken) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_paper_does_to_lines_is_forgiven() {
        for length in [1, 47, 48, 49, 300] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let text = to_text(&bytes);
            assert!(text.lines().all(|line| line.len() <= LINE));
            for spelt in [
                text.clone(),
                text.replace('\n', "\r\n"),
                text.replace('\n', "  \n  "),
                text.replace("AAEC", "A\nAEC"),
            ] {
                assert_eq!(from_text(spelt.as_bytes()), Some(bytes.clone()));
            }
            assert_eq!(from_text(text.replacen("END", "ENB", 1).as_bytes()), None);
            assert_eq!(from_text(text.replace('\n', "*\n").as_bytes()), None);
        }
    }

    #[test]
    fn only_one_passphrase_with_bounded_work_is_an_escrow() {
        let file =
            |header: &str| to_text(format!("age-encryption.org/v1\n{header}\n--- mac\nbody").as_bytes());
        let verdict = |header: &str| judge(file(header).as_bytes()).map(drop);
        assert_eq!(verdict("-> scrypt salt 16\nbody"), Ok(()));
        assert_eq!(verdict("-> scrypt salt 20\nbody"), Ok(()));
        for (header, why) in [
            ("-> scrypt salt 15\nbody", FormError::Work(15)),
            ("-> scrypt salt 21\nbody", FormError::Work(21)),
            ("-> scrypt salt 255\nbody", FormError::Work(255)),
            ("-> scrypt salt 256\nbody", FormError::Broken),
            ("-> scrypt salt 016\nbody", FormError::Broken),
            ("-> scrypt salt 16 16\nbody", FormError::Broken),
            ("-> scrypt salt\nbody", FormError::Broken),
            ("-> X25519 share\nbody", FormError::Readers),
            ("-> scrypt salt 16\nbody\n-> X25519 share\nbody", FormError::Readers),
            ("", FormError::Broken),
        ] {
            assert_eq!(verdict(header), Err(why), "{header:?}");
        }
        assert_eq!(judge(&vec![b'A'; FILE_BYTES_MAX + 1]), Err(FormError::TooLong));
        let cut = file("-> scrypt salt 16\nbody");
        assert!((0..cut.trim_end().len()).all(|at| judge(&cut.as_bytes()[..at]).is_err()));
    }
}
