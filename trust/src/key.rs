//! Signing keys: Ed25519, and two kinds of hardware tokens.
//!
//! A key is judged once, when it is laid down: weak points of the curve, for which a signature fits many messages, are
//! refused here, so that the check of a signature need not wonder.

use std::fmt;

use ed25519_dalek::VerifyingKey;
use ssh_key::public::KeyData;
use ssh_key::{HashAlg, PublicKey};

/// A public key of an operator.
#[derive(Clone, PartialEq, Eq)]
pub struct OperatorKey {
    data: KeyData,
    /// Its point, where it is an Ed25519 key: to decode one takes a tenth of the check of a signature.
    point: Option<VerifyingKey>,
}

/// Why a key may not sign.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a public key as OpenSSH writes it.
    #[error("this is not a public key as OpenSSH writes it")]
    Form(#[source] ssh_key::Error),
    #[error("a key of kind {0} may not sign: use ssh-ed25519, sk-ssh-ed25519 or sk-ecdsa-sha2-nistp256")]
    Kind(String),
    /// Not a point of the curve, or one of the few for which anybody can sign.
    #[error("this Ed25519 key is weak or no key at all: make a new one")]
    Weak,
}

impl OperatorKey {
    /// Reads `ssh-ed25519 AAAA…`, the comment left out.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_openssh(text: &str) -> Result<Self, KeyError> {
        Self::judge(PublicKey::from_openssh(text).map_err(KeyError::Form)?.key_data().clone())
    }

    pub(crate) fn judge(data: KeyData) -> Result<Self, KeyError> {
        let point = match &data {
            KeyData::Ed25519(key) => Some(sound(&key.0)?),
            KeyData::SkEd25519(key) => Some(sound(&key.public_key().0)?),
            KeyData::SkEcdsaSha2NistP256(_) => None,
            other => return Err(KeyError::Kind(other.algorithm().to_string())),
        };
        Ok(Self { data, point })
    }

    pub(crate) fn data(&self) -> &KeyData {
        &self.data
    }

    /// The point of an Ed25519 key.
    pub(crate) fn point(&self) -> Option<&VerifyingKey> {
        self.point.as_ref()
    }

    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.data.fingerprint(HashAlg::Sha256).to_string()
    }
}

fn sound(bytes: &[u8; 32]) -> Result<VerifyingKey, KeyError> {
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::Weak)?;
    // A point may be written in two ways; only the one that comes out again is taken.
    let canonical = key.to_edwards().compress().to_bytes() == *bytes;
    if canonical && !key.is_weak() { Ok(key) } else { Err(KeyError::Weak) }
}

impl fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}
