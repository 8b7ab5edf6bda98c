//! Times and epochs of a payload, each with one spelling.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts;

/// A moment in whole seconds of UTC: `2026-11-21T14:00:00Z` and no other way of writing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct UtcSecond(#[schemars(with = "String")] Timestamp);

impl UtcSecond {
    /// The moment, its fraction cut off.
    ///
    /// # Errors
    /// When the year is not of four digits.
    pub fn new(at: Timestamp) -> Result<Self, &'static str> {
        let cut = Timestamp::from_second(at.as_second()).map_err(|_| YEAR)?;
        if Self(cut).to_string().len() == LENGTH { Ok(Self(cut)) } else { Err(YEAR) }
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn second(self) -> i64 {
        self.0.as_second()
    }

    /// The moment.
    #[must_use]
    pub const fn at(self) -> Timestamp {
        self.0
    }
}

const YEAR: &str = "a year has four digits";
const LENGTH: usize = "2026-11-21T14:00:00Z".len();

impl fmt::Display for UtcSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for UtcSecond {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        const RULE: &str = "a time is written 2026-11-21T14:00:00Z";
        let at: Timestamp = text.parse().map_err(|_| RULE)?;
        // Whatever else the parser takes (offsets, fractions, a leap second) does not come out the same again.
        if Self(at).to_string() == text && text.len() == LENGTH { Ok(Self(at)) } else { Err(RULE) }
    }
}

impl From<UtcSecond> for String {
    fn from(at: UtcSecond) -> Self {
        at.to_string()
    }
}

/// Which life of a host's state. A new one begins with each enrolment and each signed reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HostEpoch(u32);

impl HostEpoch {
    /// Takes a number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for HostEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

texts! {
    /// 16 to 64 random bytes in lower-case hex.
    Nonce, 32..=128, "a nonce is 16 to 64 bytes in lower-case hex, not all zero", |text| {
        text.len() % 2 == 0
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            && text.bytes().any(|b| b != b'0')
    };
    /// Why, in a line a person wrote.
    Reason, 3..=500, "a reason is one line of 3 to 500 characters", |text| {
        !text.chars().any(char::is_control) && text.trim() == text
    };
}
