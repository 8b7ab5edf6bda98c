//! The line of an `authorized_keys` file, and shell words.
//!
//! In: a key, addresses, an end. Out: one line that grants nothing but the recorded session, from these addresses, until
//! that end. sshd holds to the end by itself. Deliberately absent: texts of an order other than its key, which has one
//! plain form.

use std::collections::BTreeSet;

use holdfast_protocol::break_glass::PersonKey;
use holdfast_protocol::job::UtcSecond;
use jiff::tz::TimeZone;

use crate::settings::SourceAddress;

/// What a person gets instead of a shell of sshd's.
pub const SESSION: &str = "/usr/lib/holdfast/holdfast-break-glass session";

/// The file's whole text.
#[must_use]
pub fn line(key: &PersonKey, from: &BTreeSet<SourceAddress>, closes_at: UtcSecond) -> String {
    let from: Vec<&str> = from.iter().map(SourceAddress::as_str).collect();
    let end = closes_at.at().to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%SZ");
    let options =
        format!("restrict,pty,expiry-time=\"{end}\",from=\"{}\",command=\"{SESSION}\"", from.join(","));
    format!("{options} {} holdfast-break-glass\n", key.as_str())
}

/// One word that a shell reads as it is.
#[must_use]
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_an_end_and_addresses() {
        let key = PersonKey::try_from(format!("ssh-ed25519 {}", "A".repeat(68))).unwrap();
        let from = ["10.77.0.0/24", "fd00::7"].map(|text| SourceAddress::try_from(text.to_owned()).unwrap());
        let closes_at = UtcSecond::try_from("2026-11-21T14:05:09Z".to_owned()).unwrap();
        assert_eq!(
            line(&key, &from.into_iter().collect(), closes_at),
            format!(
                "restrict,pty,expiry-time=\"20261121140509Z\",from=\"10.77.0.0/24,fd00::7\",\
                 command=\"/usr/lib/holdfast/holdfast-break-glass session\" {} holdfast-break-glass\n",
                key.as_str()
            )
        );
    }

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's; rm"), r"'it'\''s; rm'");
    }
}
