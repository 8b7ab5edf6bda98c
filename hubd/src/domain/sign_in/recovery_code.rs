//! Recovery codes for a day without the authenticator.
//!
//! In: random bytes, or what a person typed. Out: the code as it is shown, or its one spelling. Each has 80 random bits. The
//! database has them under a key of the hub's folder, so that it alone is nothing to guess with.

use holdfast_protocol::secret::Secret;
use zeroize::Zeroizing;

use super::totp::base32;

/// How many a person gets.
pub const CODES: usize = 10;

/// Random bytes of one.
pub const CODE_BYTES: usize = 10;

const LETTERS: usize = 16;

/// The code as it is shown: four groups of four.
#[must_use]
pub fn shown(bytes: &Zeroizing<[u8; CODE_BYTES]>) -> Secret {
    let letters = Zeroizing::new(base32(bytes.as_slice()));
    let mut text = String::with_capacity(LETTERS + 3);
    for (place, letter) in letters.chars().enumerate() {
        if place > 0 && place % 4 == 0 {
            text.push('-');
        }
        text.push(letter);
    }
    Secret::new(text)
}

/// The one spelling of what a person typed; none where it is no recovery code.
#[must_use]
pub fn normal(typed: &str) -> Option<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::with_capacity(typed.len()));
    for c in typed.chars().filter(|c| !c.is_whitespace() && *c != '-') {
        match c.to_ascii_uppercase() {
            // What is not in the alphabet is what it looks like.
            '0' => text.push('O'),
            '1' => text.push('I'),
            c @ ('A'..='Z' | '2'..='7') => text.push(c),
            _ => return None,
        }
    }
    (text.len() == LETTERS).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_shown_and_as_it_is_typed() {
        let shown = shown(&Zeroizing::new(*b"0123456789"));
        assert_eq!(shown.expose(), "GAYT-EMZU-GU3D-OOBZ");
        let wanted = "GAYTEMZUGU3DOOBZ";
        for typed in ["GAYT-EMZU-GU3D-OOBZ", "gayt emzu gu3d oobz", "GAYTEMZUGU3D00BZ"] {
            assert_eq!(normal(typed).unwrap().as_str(), wanted, "{typed}");
        }
        for bad in ["", "123456", "GAYT-EMZU-GU3D-OOB", "GAYT-EMZU-GU3D-OOB!", "GAYT-EMZU-GU3D-OOBZZ"] {
            assert!(normal(bad).is_none(), "{bad}");
        }
    }
}
