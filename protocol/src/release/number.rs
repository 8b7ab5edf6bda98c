//! The version number of a release of Holdfast: `YEAR.MINOR.PATCH`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Three numbers, ordered one after the other. Each has one spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct VersionNumber(#[schemars(with = "String")] [u32; 3]);

const RULE: &str = "a version of a release is three numbers, such as 2026.11.0";

impl VersionNumber {
    /// Takes the three numbers.
    #[must_use]
    pub const fn new(year: u32, minor: u32, patch: u32) -> Self {
        Self([year, minor, patch])
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, minor, patch] = self.0;
        write!(f, "{year}.{minor}.{patch}")
    }
}

impl FromStr for VersionNumber {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        let mut next = || parts.next().flatten().ok_or(RULE);
        let number = Self([next()?, next()?, next()?]);
        // Signs, zeros in front and a fourth part do not come out the same again.
        if number.to_string() == text { Ok(number) } else { Err(RULE) }
    }
}

impl TryFrom<String> for VersionNumber {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl From<VersionNumber> for String {
    fn from(number: VersionNumber) -> Self {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_spelling_and_an_order() {
        let read = |text: &str| text.parse::<VersionNumber>();
        assert_eq!(read("2026.11.0"), Ok(VersionNumber::new(2026, 11, 0)));
        assert!(read("0.10.0") > read("0.9.9") && read("2026.1.2") < read("2026.1.10"));
        for wrong in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "1.2.3-rc1",
            "01.2.3",
            "+1.2.3",
            "1.2.",
            "1..3",
            " 1.2.3",
            "1.2.4294967296",
        ] {
            assert_eq!(read(wrong), Err(RULE), "{wrong:?}");
        }
    }
}
