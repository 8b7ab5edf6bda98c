//! Ids of groups, incidents and outbox rows.
//!
//! They are sent to servers of others and must fit the narrowest of these: ntfy takes 64 letters, digits, `-` and `_`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The most characters of an id.
pub const ID_CHARS_MAX: usize = 64;

/// Text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to {ID_CHARS_MAX} letters, digits, `-` and `_`")]
pub struct IdError;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                let ok = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
                let fits = (1..=ID_CHARS_MAX).contains(&text.len()) && text.bytes().all(ok);
                if fits { Ok(Self(text)) } else { Err(IdError) }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// Incidents that are delivered together. It is the same in all messages about them, from the first to the last, and
    /// unique among all installations that share a topic or a mailbox.
    GroupId
    /// One incident, from its beginning to its end.
    IncidentId
    /// One row of the outbox: one message to one channel, however often it is tried. It must be unique among all
    /// installations (a UUID is), because receivers know a repeated delivery by it.
    OutboxId
}

/// The beginning of the text's SHA-256, in hex: always an id.
fn digest(text: &str) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes())).chars().take(32).collect()
}

impl GroupId {
    /// Of any text that names the group.
    #[must_use]
    pub fn digest_of(text: &str) -> Self {
        Self(digest(text))
    }
}

impl OutboxId {
    /// Of any text that names the row.
    #[must_use]
    pub fn digest_of(text: &str) -> Self {
        Self(digest(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_the_narrowest_server_takes() {
        let longest = "a".repeat(ID_CHARS_MAX);
        for good in ["a", "0190f3e7-b2a_X", longest.as_str()] {
            assert_eq!(GroupId::try_from(good.to_owned()).map(String::from), Ok(good.to_owned()));
        }
        let too_long = "a".repeat(ID_CHARS_MAX + 1);
        for bad in ["", "a/b", "a b", "ä", "a\n", "../x", too_long.as_str()] {
            assert_eq!(OutboxId::try_from(bad.to_owned()), Err(IdError), "{bad:?}");
        }
    }
}
