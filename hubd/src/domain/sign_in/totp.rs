//! One-time codes by time (RFC 6238).
//!
//! In: the secret, a code, the time, the last step that was used. Out: the step that the code belongs to. SHA-1, six
//! digits and 30 seconds, which every authenticator can; one step before and after the present one counts, and each step
//! once.

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::secret::Secret;
use jiff::Timestamp;
use ring::hmac;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// Bytes of a secret, as RFC 4226 advises.
pub const SECRET_BYTES: usize = 20;

const STEP_S: i64 = 30;
const CODE: u32 = 1_000_000;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The secret that hub and authenticator share.
pub struct TotpSecret(Zeroizing<[u8; SECRET_BYTES]>);

impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

/// Thirty seconds, counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step(pub i64);

impl Step {
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(now.as_second().div_euclid(STEP_S))
    }
}

impl TotpSecret {
    #[must_use]
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, to be sealed.
    #[must_use]
    pub fn expose(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// The step of a code, where it is later than the last one that was used.
    #[must_use]
    pub fn step_of(&self, code: &str, now: Timestamp, last: Option<Step>) -> Option<Step> {
        let typed = Zeroizing::new(code.split_whitespace().collect::<String>());
        if typed.len() != 6 || !typed.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let Step(present) = Step::at(now);
        let mut found = None;
        // All three are compared, whichever matches.
        for step in [present - 1, present, present + 1].map(Step) {
            let right = self.code(step);
            let is_right: bool = right.as_bytes().ct_eq(typed.as_bytes()).into();
            if is_right && last.is_none_or(|last| last < step) {
                found = Some(step);
            }
        }
        found
    }

    /// The code of a step.
    #[must_use]
    pub fn code(&self, step: Step) -> Zeroizing<String> {
        Zeroizing::new(format!("{:06}", self.value(step) % CODE))
    }

    /// The truncated value of RFC 4226, 31 bits.
    fn value(&self, step: Step) -> u32 {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.0.as_slice());
        let tag = hmac::sign(&key, &step.0.to_be_bytes());
        let tag = tag.as_ref();
        let offset = usize::from(tag.last().copied().unwrap_or_default() & 15);
        let four = tag.get(offset..offset + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
        u32::from_be_bytes(four.unwrap_or_default()) & 0x7fff_ffff
    }

    /// In Base32, to be typed.
    #[must_use]
    pub fn base32(&self) -> Secret {
        Secret::new(base32(self.0.as_slice()))
    }

    /// For a QR code.
    #[must_use]
    pub fn uri(&self, hub: &str, name: &OperatorName) -> Secret {
        // A colon would end the label.
        let host = hub.rsplit_once(':').map_or(hub, |(host, _)| host);
        let label: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || ".-".contains(*c)).collect();
        let text = Zeroizing::new(base32(self.0.as_slice()));
        Secret::new(format!(
            "otpauth://totp/Holdfast%20{label}:{name}?secret={}&issuer=Holdfast%20{label}&algorithm=SHA1&digits=6&period=30",
            text.as_str()
        ))
    }
}

/// Without padding.
pub(super) fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(held >> bits));
        }
    }
    if bits > 0 {
        text.push(letter(held << (5 - bits)));
    }
    text
}

fn letter(five: u32) -> char {
    ALPHABET.get((five & 31) as usize).copied().map_or('A', char::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// RFC 6238, appendix B, SHA-1: eight digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let secret = TotpSecret::new(*b"12345678901234567890");
        for (second, code) in [
            (59, 94_287_082),
            (1_111_111_109, 7_081_804),
            (1_111_111_111, 14_050_471),
            (1_234_567_890, 89_005_924),
            (2_000_000_000, 69_279_037),
            (20_000_000_000, 65_353_130),
        ] {
            assert_eq!(secret.value(Step::at(at(second))) % 100_000_000, code, "{second}");
        }
    }

    #[test]
    fn a_code_counts_for_its_step_and_the_two_next_to_it_once() {
        let secret = TotpSecret::new(*b"12345678901234567890");
        let step = Step::at(at(59));
        for now in [29, 59, 60, 89] {
            assert_eq!(secret.step_of("287082", at(now), None), Some(step), "{now}");
        }
        assert_eq!(secret.step_of("287 082", at(59), None), Some(step));
        for now in [-1, 120] {
            assert_eq!(secret.step_of("287082", at(now), None), None, "{now}");
        }
        assert_eq!(secret.step_of("287082", at(59), Some(step)), None);
        assert_eq!(secret.step_of("287082", at(59), Some(Step(step.0 - 1))), Some(step));
        for bad in ["287083", "28708", "2870822", "", "28708a", "２８７０８２"] {
            assert_eq!(secret.step_of(bad, at(59), None), None, "{bad}");
        }
    }

    #[test]
    fn base32_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
        let secret = TotpSecret::new(*b"12345678901234567890");
        let uri = secret.uri("hub.example:8440", &"ada".parse().unwrap());
        let wanted = "otpauth://totp/Holdfast%20hub.example:ada?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&";
        assert!(uri.expose().starts_with(wanted), "{}", uri.expose());
        assert_eq!(format!("{secret:?}"), "TotpSecret(…)");
    }
}
