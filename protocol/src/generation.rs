//! Rules of numbered documents, shared by hub and agent.
//!
//! Older: refused. Same number and other content: refused, loudly. Same and equal: nothing to do. A jump of more than
//! [`JUMP_MAX`]: refused, since a stolen hub could otherwise push the number beyond what an honest one ever reaches.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::code::ErrorCode;

/// How far a generation may be ahead of the one held.
pub const JUMP_MAX: u64 = 1_000;

/// The number of a desired document. It never falls (I11). The first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Generation(u64);

impl Generation {
    /// The number of no document at all.
    pub const NONE: Self = Self(0);

    /// Takes a number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What makes two documents the same: SHA-256 of their content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes content.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

impl std::str::FromStr for ContentHash {
    type Err = hex::FromHexError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        // One spelling: hashes are compared as text as well.
        if let Some((index, c)) = text.char_indices().find(|(_, c)| c.is_ascii_uppercase()) {
            return Err(hex::FromHexError::InvalidHexCharacter { c, index });
        }
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

/// A numbered document, by its number and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Its number.
    pub generation: Generation,
    /// Its content.
    pub content: ContentHash,
}

/// What the rules say of an offered document that they do not refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Newer: store it, then use it.
    Newer,
    /// The one that is held.
    Held,
}

/// Why the rules refuse an offered document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerationError {
    /// Older than the one that is held.
    #[error("generation {offered} is older than {held}, which is held: offer a newer one")]
    Stale {
        /// The number offered.
        offered: Generation,
        /// The number held.
        held: Generation,
    },
    /// The number held, with other content.
    #[error(
        "generation {generation} was seen with other content (held {held}, offered {offered}): two writers, or a changed history; an operator must look"
    )]
    Conflict {
        /// The number.
        generation: Generation,
        /// The content held.
        held: ContentHash,
        /// The content offered.
        offered: ContentHash,
    },
    /// Too far ahead.
    #[error("generation {offered} is more than {JUMP_MAX} ahead of {held}: a signed reset is needed")]
    Jump {
        /// The number offered.
        offered: Generation,
        /// The number held.
        held: Generation,
    },
}

impl GenerationError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Stale { .. } => ErrorCode::StaleGeneration,
            Self::Conflict { .. } => ErrorCode::GenerationConflict,
            Self::Jump { .. } => ErrorCode::GenerationJump,
        }
    }
}

/// The rules.
///
/// # Errors
/// [`GenerationError`] when the offered document must not be taken.
pub fn judge(held: Option<Numbered>, offered: Numbered) -> Result<Offer, GenerationError> {
    let number = held.map_or(Generation::NONE, |held| held.generation);
    if offered.generation < number || offered.generation == Generation::NONE {
        return Err(GenerationError::Stale { offered: offered.generation, held: number });
    }
    if offered.generation.0 - number.0 > JUMP_MAX {
        return Err(GenerationError::Jump { offered: offered.generation, held: number });
    }
    match held {
        Some(held) if held == offered => Ok(Offer::Held),
        Some(held) if held.generation == offered.generation => Err(GenerationError::Conflict {
            generation: number,
            held: held.content,
            offered: offered.content,
        }),
        _ => Ok(Offer::Newer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(number: u64, content: &str) -> Numbered {
        Numbered { generation: Generation::new(number), content: ContentHash::of(content.as_bytes()) }
    }

    #[test]
    fn each_offer_has_its_outcome() {
        let held = Some(doc(7, "a"));
        assert_eq!(judge(held, doc(7, "a")), Ok(Offer::Held));
        assert_eq!(judge(held, doc(8, "a")), Ok(Offer::Newer));
        assert_eq!(judge(held, doc(1007, "b")), Ok(Offer::Newer));
        assert_eq!(judge(held, doc(1008, "b")).unwrap_err().code(), ErrorCode::GenerationJump);
        assert_eq!(judge(held, doc(6, "a")).unwrap_err().code(), ErrorCode::StaleGeneration);
        assert_eq!(judge(held, doc(7, "b")).unwrap_err().code(), ErrorCode::GenerationConflict);
        assert_eq!(judge(held, doc(u64::MAX, "b")).unwrap_err().code(), ErrorCode::GenerationJump);
        assert_eq!(judge(None, doc(1, "a")), Ok(Offer::Newer));
        assert_eq!(judge(None, doc(0, "a")).unwrap_err().code(), ErrorCode::StaleGeneration);
        assert_eq!(judge(None, doc(1001, "a")).unwrap_err().code(), ErrorCode::GenerationJump);
    }

    #[test]
    fn a_hash_reads_back() {
        let hash = ContentHash::of(b"x");
        assert_eq!(hash.to_string().parse::<ContentHash>().unwrap(), hash);
        let shouted = hash.to_string().to_uppercase().parse::<ContentHash>();
        assert!(matches!(shouted, Err(hex::FromHexError::InvalidHexCharacter { .. })), "{shouted:?}");
    }
}
