//! Numbers of escrow versions and recovery codes.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident, $rule:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "u32", into = "u32")]
        pub struct $name(#[schemars(range(min = 1, max = 999_999))] u32);

        impl $name {
            /// The first of a host.
            pub const FIRST: Self = Self(1);

            /// The number.
            #[must_use]
            pub const fn number(self) -> u32 {
                self.0
            }
        }

        impl TryFrom<u32> for $name {
            type Error = &'static str;
            fn try_from(number: u32) -> Result<Self, Self::Error> {
                if (1..=999_999).contains(&number) { Ok(Self(number)) } else { Err($rule) }
            }
        }

        impl From<$name> for u32 {
            fn from(number: $name) -> Self {
                number.0
            }
        }

        /// In one spelling: no sign, no zero before it.
        impl FromStr for $name {
            type Err = &'static str;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let number = text.parse::<u32>().ok().filter(|number| number.to_string() == text);
                number.ok_or($rule).and_then(Self::try_from)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

numbers! {
    /// Which code of a host, counted from 1. Each is printed on one sheet, so it is the sheet's number too.
    CodeNumber, "a code's number is from 1 to 999999";
    /// Which version of a host's escrow, counted from 1 over all codes and keys.
    EscrowNumber, "an escrow's number is from 1 to 999999";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_bounds_and_one_spelling() {
        for bad in ["", "0", "01", "+1", "-1", " 1", "1000000", "4294967297"] {
            assert!(bad.parse::<EscrowNumber>().is_err() && bad.parse::<CodeNumber>().is_err(), "{bad:?}");
        }
        assert_eq!("999999".parse::<EscrowNumber>().unwrap().number(), 999_999);
        assert!(EscrowNumber::try_from(0).is_err() && CodeNumber::try_from(1_000_000).is_err());
    }
}
