//! Secrets that are wiped, and their hashes.
//!
//! A [`Secret`] is wiped when dropped and shows nothing in `Debug`. It is serialised only where the wire carries it to
//! the one who must have it (a token handed over once). Who keeps a token for checking keeps its [`TokenHash`] alone.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Text that must not be seen: a token, a claim, an invite's secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself. Every call deserves a check in review.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What a checker keeps of it.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 16, "maxLength": 512, "description": "handed over once, kept as a hash" })
    }
}

/// SHA-256 of a token of at least 128 random bits. Such a token needs no slow hash: there is nothing to guess.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes a presented token.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Takes a stored hash back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// For storing.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Compares in constant time.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("hf1_very_secret_text".to_owned());
        assert_eq!(format!("{secret:?} {:?}", secret.hash()), "Secret(…) TokenHash(…)");
        assert_eq!(secret.hash(), TokenHash::of(b"hf1_very_secret_text"));
        assert_ne!(secret.hash(), TokenHash::of(b"hf1_very_secret_texT"));
    }
}
