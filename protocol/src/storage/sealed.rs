//! Credentials sealed for one host.
//!
//! Here only the form is known. Deliberately absent: opening and making them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::act::Sha256Text;

/// Longer than any name with its password, sealed for one key.
pub const SEALED_BYTES_MAX: usize = 4096;

/// What every `age` file begins with, as base64: `age-encryption.org/v1`. The last character depends on what follows.
const BEGINS: &str = "YWdlLWVuY3J5cHRpb24ub3JnL3Yx";

/// Sealed credentials.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Sealed(#[schemars(length(min = 28, max = 4096))] String);

impl Sealed {
    /// The base64 text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is signed for: the hash of the text. A SHA-256 in hex is always of that form.
    #[must_use]
    pub fn digest(&self) -> Option<Sha256Text> {
        let hash = Sha256::digest(self.0.as_bytes());
        let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Sha256Text::try_from(text).ok()
    }
}

/// Not printed: no reader can use the sealed text.
impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealed({} characters)", self.0.len())
    }
}

impl TryFrom<String> for Sealed {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digit = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
        let padding = text.bytes().rev().take_while(|c| *c == b'=').count();
        let body = text.bytes().take(text.len() - padding).all(digit);
        if text.len() <= SEALED_BYTES_MAX
            && text.len().is_multiple_of(4)
            && padding <= 2
            && body
            && text.starts_with(BEGINS)
        {
            Ok(Self(text))
        } else {
            Err("sealed credentials are an age file as base64 without line breaks, at most 4096 characters")
        }
    }
}

impl From<Sealed> for String {
    fn from(sealed: Sealed) -> Self {
        sealed.0
    }
}

/// At most so many copies of one secret.
pub const COPIES_MAX: usize = 4;

/// One secret, sealed for several readers, each by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Sealed>", into = "Vec<Sealed>")]
pub struct SealedCopies(#[schemars(length(max = 4))] Vec<Sealed>);

impl SealedCopies {
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Sealed> {
        self.0.iter()
    }
}

impl TryFrom<Vec<Sealed>> for SealedCopies {
    type Error = &'static str;
    fn try_from(copies: Vec<Sealed>) -> Result<Self, Self::Error> {
        if copies.len() <= COPIES_MAX {
            Ok(Self(copies))
        } else {
            Err("a secret has at most 4 sealed copies")
        }
    }
}

impl From<SealedCopies> for Vec<Sealed> {
    fn from(copies: SealedCopies) -> Self {
        copies.0
    }
}
