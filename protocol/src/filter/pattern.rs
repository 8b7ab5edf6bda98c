//! Names, whole or in part.

use std::fmt;

/// A name, or a part of it between `%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// The whole name.
    Whole(String),
    /// `web%`: how it begins.
    Begins(String),
    /// `%web`: how it ends.
    Ends(String),
    /// `%web%`: what is in it.
    Contains(String),
}

impl NamePattern {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence that says what a name may be.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (before, rest) = text.strip_prefix('%').map_or((false, text), |rest| (true, rest));
        let (after, name) = rest.strip_suffix('%').map_or((false, rest), |name| (true, name));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) || text.starts_with('-') {
            return Err(
                "a name has letters, digits, '-', '.' and '_', begins with no '-', and has '%' at its ends alone",
            );
        }
        let name = name.to_owned();
        Ok(match (before, after) {
            (false, false) => Self::Whole(name),
            (false, true) => Self::Begins(name),
            (true, false) => Self::Ends(name),
            (true, true) => Self::Contains(name),
        })
    }

    /// Whether it is this name's.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Whole(text) => name == text,
            Self::Begins(text) => name.starts_with(text.as_str()),
            Self::Ends(text) => name.ends_with(text.as_str()),
            Self::Contains(text) => name.contains(text.as_str()),
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(text) => f.write_str(text),
            Self::Begins(text) => write!(f, "{text}%"),
            Self::Ends(text) => write!(f, "%{text}"),
            Self::Contains(text) => write!(f, "%{text}%"),
        }
    }
}
