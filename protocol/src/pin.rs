//! Pinned keys and certificates: `spki/sha256:<64 hex>` or `leaf/sha256:<64 hex>`.
//!
//! A renewal that keeps its key (Proxmox's `pveupdate` does) changes the certificate but not the SPKI, so the SPKI is
//! what one pins for long; a leaf pin serves a certificate that is made once and kept (the local API). An enrollment
//! request that names more keys than one is compared by `request/sha256:<64 hex>`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Text that is not a pin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{value:?} is not a pin: write spki/sha256:, leaf/sha256: or request/sha256: and 64 lower-case hex digits"
)]
pub struct PinError {
    value: String,
}

/// What of a certificate is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinKind {
    /// The whole certificate, DER.
    Leaf,
    /// Its public key, DER of the SubjectPublicKeyInfo.
    Spki,
    /// No certificate, but all keys of an enrollment request. It accepts no server.
    Request,
}

/// One pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pin {
    kind: PinKind,
    sha256: [u8; 32],
}

impl Pin {
    /// Pins these bytes (a certificate or an SPKI, DER).
    #[must_use]
    pub fn of(kind: PinKind, der: &[u8]) -> Self {
        Self { kind, sha256: Sha256::digest(der).into() }
    }

    /// What is pinned.
    #[must_use]
    pub const fn kind(&self) -> PinKind {
        self.kind
    }

    /// Whether these bytes are the pinned ones. Pins are public, so the comparison need not be constant-time.
    #[must_use]
    pub fn matches(&self, der: &[u8]) -> bool {
        self.sha256 == <[u8; 32]>::from(Sha256::digest(der))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            PinKind::Leaf => "leaf",
            PinKind::Spki => "spki",
            PinKind::Request => "request",
        };
        write!(f, "{kind}/sha256:{}", hex::encode(self.sha256))
    }
}

impl FromStr for Pin {
    type Err = PinError;
    fn from_str(text: &str) -> Result<Self, PinError> {
        let parsed = text.split_once("/sha256:").and_then(|(kind, digits)| {
            let kind = match kind {
                "leaf" => PinKind::Leaf,
                "spki" => PinKind::Spki,
                "request" => PinKind::Request,
                _ => return None,
            };
            let mut sha256 = [0; 32];
            hex::decode_to_slice(digits, &mut sha256).ok()?;
            // One spelling: pins are compared by eye and by text.
            (hex::encode(sha256) == digits).then_some(Self { kind, sha256 })
        });
        parsed.ok_or_else(|| PinError { value: text.chars().take(96).collect() })
    }
}

impl TryFrom<String> for Pin {
    type Error = PinError;
    fn try_from(text: String) -> Result<Self, PinError> {
        Self::from_str(&text)
    }
}

impl From<Pin> for String {
    fn from(pin: Pin) -> Self {
        pin.to_string()
    }
}

impl JsonSchema for Pin {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pin".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(spki|leaf|request)/sha256:[0-9a-f]{64}$" })
    }
}

/// A set of pins: a certificate is accepted when any of them matches. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Pin>", into = "Vec<Pin>")]
pub struct PinSet(#[schemars(length(min = 1))] Vec<Pin>);

/// A set without pins would accept nothing, and is surely a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no pin given: at least one is needed")]
pub struct NoPin;

impl PinSet {
    /// Whether the certificate (`leaf`, DER) with this public key (`spki`, DER) is one of the pinned.
    #[must_use]
    pub fn accepts(&self, leaf: &[u8], spki: &[u8]) -> bool {
        self.0.iter().any(|pin| match pin.kind {
            PinKind::Leaf => pin.matches(leaf),
            PinKind::Spki => pin.matches(spki),
            PinKind::Request => false,
        })
    }

    /// The pins.
    pub fn iter(&self) -> impl Iterator<Item = &Pin> {
        self.0.iter()
    }
}

impl From<Pin> for PinSet {
    fn from(pin: Pin) -> Self {
        Self(vec![pin])
    }
}

impl TryFrom<Vec<Pin>> for PinSet {
    type Error = NoPin;
    fn try_from(pins: Vec<Pin>) -> Result<Self, NoPin> {
        if pins.is_empty() { Err(NoPin) } else { Ok(Self(pins)) }
    }
}

impl From<PinSet> for Vec<Pin> {
    fn from(set: PinSet) -> Self {
        set.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_reads_back_as_written() {
        let pin = Pin::of(PinKind::Spki, b"key");
        assert_eq!(pin.to_string().parse::<Pin>().unwrap(), pin);
        let shouted = format!("spki/sha256:{}", "AB".repeat(32));
        assert!(shouted.to_lowercase().parse::<Pin>().is_ok());
        for bad in [&shouted, "", "sha256:00", "spki/sha256:00", "cert/sha256:00", &pin.to_string()[..70]] {
            assert!(bad.parse::<Pin>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_set_accepts_a_renewed_certificate_by_its_key_and_no_other() {
        let set = PinSet::from(Pin::of(PinKind::Spki, b"key"));
        assert!(set.accepts(b"old leaf", b"key") && set.accepts(b"new leaf", b"key"));
        assert!(!set.accepts(b"old leaf", b"other key"));
        let request = PinSet::from(Pin::of(PinKind::Request, b"key"));
        assert!(!request.accepts(b"key", b"key"), "it pins no server");
        assert_eq!(PinSet::try_from(Vec::new()), Err(NoPin));
    }
}
