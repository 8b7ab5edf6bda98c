//! Filters of lists: one grammar for hosts and guests.
//!
//! ```text
//! filter   = term { "," term }           one of the terms selects, and no term with "-" does
//! term     = [ "-" ] part { "+" part }   all parts hold
//! part     = name | VMID | VMID ":" VMID | "@all" | "@" property "-" value
//! name     = text with "%" at an end, or at both, for the rest of the name
//! ```
//! In: what a person typed. Out: [`HostFilter`] and [`GuestFilter`], which say of one item whether it is in the list.
//! Without a term that selects, everything is selected that no term excludes. Deliberately absent: nesting. What needs
//! brackets is a question for `--output json` and `jq`.

mod guest;
mod host;
mod pattern;

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::value::{Error as PlainError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use crate::id::Vmid;

pub use guest::{GuestFilter, GuestPart};
pub use host::{HostFilter, HostPart};
pub use pattern::NamePattern;

/// The bytes of a filter at most.
pub const FILTER_BYTES_MAX: usize = 512;

/// The parts of a filter at most.
pub const FILTER_PARTS_MAX: usize = 64;

/// A text is no filter. Nothing is listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Too long.
    #[error("a filter has at most {FILTER_BYTES_MAX} bytes, and this one has {0}")]
    Long(usize),
    /// Too many parts.
    #[error("a filter has at most {FILTER_PARTS_MAX} parts, and this one has {0}")]
    Many(usize),
    /// Nothing between two separators.
    #[error("the filter has an empty part: terms are joined by ',' and the parts of a term by '+'")]
    Empty,
    /// Not a part of a filter.
    #[error("{part:?} cannot be a part of this filter: {why}")]
    Part {
        /// What was written.
        part: String,
        /// Why not.
        why: String,
    },
}

/// A part as it is written, before a list says what it means.
#[derive(Debug)]
enum Word<'a> {
    /// `@all`.
    All,
    /// `@property-value`.
    Property(&'a str, &'a str),
    /// A VMID, or a range of them with both ends.
    Vmids(Vmid, Vmid),
    /// A name, or a part of it.
    Name(NamePattern),
}

impl<'a> Word<'a> {
    fn parse(text: &'a str) -> Result<Self, FilterError> {
        if text.is_empty() {
            return Err(FilterError::Empty);
        }
        if text == "@all" {
            return Ok(Self::All);
        }
        if let Some(property) = text.strip_prefix('@') {
            let (key, value) = property.split_once('-').unwrap_or((property, ""));
            return Ok(Self::Property(key, value));
        }
        let (first, last) = text.split_once(':').unwrap_or((text, text));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number(first) && is_number(last) {
            let vmid =
                |number: &str| number.parse::<Vmid>().map_err(|error| refused(text, error.to_string()));
            let (first, last) = (vmid(first)?, vmid(last)?);
            if first > last {
                return Err(refused(text, "the first number is the larger one"));
            }
            return Ok(Self::Vmids(first, last));
        }
        NamePattern::parse(text).map(Self::Name).map_err(|why| refused(text, why))
    }
}

fn refused(part: &str, why: impl Into<String>) -> FilterError {
    FilterError::Part { part: part.chars().take(64).collect(), why: why.into() }
}

/// What the parts of one kind of list can say.
trait Part: Sized + fmt::Display {
    fn read(text: &str, word: Word<'_>) -> Result<Self, FilterError>;
}

/// A filter over parts of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Terms<P> {
    selecting: Vec<Vec<P>>,
    excluding: Vec<Vec<P>>,
}

impl<P> Terms<P> {
    fn select(&self, holds: impl Fn(&P) -> bool) -> bool {
        let all = |term: &Vec<P>| term.iter().all(&holds);
        (self.selecting.is_empty() || self.selecting.iter().any(all)) && !self.excluding.iter().any(all)
    }
}

impl<P: Part> FromStr for Terms<P> {
    type Err = FilterError;
    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(FilterError::Long(text.len()));
        }
        let parts = text.split([',', '+']).count();
        if parts > FILTER_PARTS_MAX {
            return Err(FilterError::Many(parts));
        }
        let (mut selecting, mut excluding) = (Vec::new(), Vec::new());
        for term in text.split(',').map(str::trim) {
            let (list, term) = match term.strip_prefix('-') {
                Some(term) => (&mut excluding, term),
                None => (&mut selecting, term),
            };
            let parts = term.split('+').map(str::trim);
            let parts = parts.map(|part| P::read(part, Word::parse(part)?));
            list.push(parts.collect::<Result<Vec<P>, FilterError>>()?);
        }
        Ok(Self { selecting, excluding })
    }
}

impl<P: Part> fmt::Display for Terms<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = |sign: &str, parts: &Vec<P>| {
            let parts: Vec<String> = parts.iter().map(P::to_string).collect();
            format!("{sign}{}", parts.join("+"))
        };
        let selecting = self.selecting.iter().map(|parts| term("", parts));
        let terms: Vec<String> =
            selecting.chain(self.excluding.iter().map(|parts| term("-", parts))).collect();
        f.write_str(&terms.join(","))
    }
}

/// Reads one of the values of a closed type, as it is on the wire.
fn choice<T: DeserializeOwned>(part: &str, value: &str) -> Result<T, FilterError> {
    let reader: StrDeserializer<'_, PlainError> = value.into_deserializer();
    T::deserialize(reader).map_err(|error| refused(part, error.to_string()))
}

/// The value of a closed type as it is on the wire. Types of this module have texts for all their values.
fn written<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Whether there is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// At least one.
    Some,
    /// None.
    None,
}

impl Presence {
    fn of(count: usize) -> Self {
        if count == 0 { Self::None } else { Self::Some }
    }
}

/// A filter of one kind of list, as a newtype over its terms: its text, its schema and its bounds.
macro_rules! filter {
    ($(#[$doc:meta])* $name:ident, $part:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name($crate::filter::Terms<$part>);

        impl std::str::FromStr for $name {
            type Err = $crate::filter::FilterError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::filter::FilterError;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(filter: $name) -> Self {
                filter.to_string()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": $crate::filter::FILTER_BYTES_MAX })
            }
        }
    };
}

use filter;

#[cfg(test)]
mod tests;
