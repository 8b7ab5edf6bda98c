//! Arguments of an order to open a way into a host.
//!
//! In: texts and numbers of a payload. Out: a way's name, a time, and a person's key, each in one form, so that none of
//! them can be anything else in a line of a file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts;

/// The longest time for which a way may be open, in minutes, whatever root's settings say.
pub const MINUTES_MAX: u16 = 8 * 60;

/// The kinds of keys that a person may come in with.
const KEY_KINDS: [&str; 3] =
    ["ssh-ed25519", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"];

texts! {
    /// A way into a host, by its name in root's settings there.
    WayName, 1..=32, "a way is named with 1 to 32 lower-case letters, digits and inner '-'", |text| {
        text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-') && !text.ends_with('-')
    };
    /// A person's public key as OpenSSH writes it, without its comment.
    PersonKey, 64..=1024, "a key is `ssh-ed25519 AAAA…`, or one of a hardware token, without a comment", is_key;
}

fn is_key(text: &str) -> bool {
    let base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    text.split_once(' ').is_some_and(|(kind, key)| KEY_KINDS.contains(&kind) && key.bytes().all(base64))
}

impl fmt::Display for WayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// For how many minutes a way is open: 1 to 480.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u16", into = "u16")]
pub struct OpenMinutes(#[schemars(range(min = 1, max = 480))] u16);

impl OpenMinutes {
    /// What root's settings let be open where they say nothing.
    pub const HOURS_2: Self = Self(120);

    /// The number.
    #[must_use]
    pub const fn minutes(self) -> u16 {
        self.0
    }

    /// The same in seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0 as i64 * 60
    }
}

impl TryFrom<u16> for OpenMinutes {
    type Error = &'static str;
    fn try_from(minutes: u16) -> Result<Self, &'static str> {
        if (1..=MINUTES_MAX).contains(&minutes) {
            Ok(Self(minutes))
        } else {
            Err("a way is open for 1 to 480 minutes")
        }
    }
}

impl From<OpenMinutes> for u16 {
    fn from(minutes: OpenMinutes) -> Self {
        minutes.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_one_form() {
        let key = format!("ssh-ed25519 {}", "A".repeat(68));
        assert!(PersonKey::try_from(key.clone()).is_ok());
        for bad in [
            format!("{key} anna@laptop"),
            format!("{key}\n"),
            format!("{key}\""),
            format!("restrict {key}"),
            format!("ssh-rsa {}", "A".repeat(68)),
            format!("ssh-ed25519 {}", "A".repeat(20)),
        ] {
            assert!(PersonKey::try_from(bad.clone()).is_err(), "{bad:?}");
        }
        for (name, is_good) in
            [("tunnel", true), ("a-1", true), ("", false), ("-a", false), ("A", false), ("a/b", false)]
        {
            assert_eq!(WayName::try_from(name.to_owned()).is_ok(), is_good, "{name:?}");
        }
        for (minutes, is_good) in [(0, false), (1, true), (480, true), (481, false)] {
            assert_eq!(OpenMinutes::try_from(minutes).is_ok(), is_good, "{minutes}");
        }
    }
}
