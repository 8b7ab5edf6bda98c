//! Keys of hosts and hubs: ECDSA on P-256.

use std::fmt;

use holdfast_protocol::restore_certificate::PublicKeyText;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};
use ssh_key::public::{EcdsaPublicKey, KeyData};
use ssh_key::{HashAlg, LineEnding, PublicKey as SshPublicKey};

/// What stands before the point in the DER of such a key: sequence, algorithm, curve, bit string (RFC 5480).
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A private key that is damaged, or of another kind.
    #[error("the private key is not an ECDSA key on P-256: {0}")]
    Private(ring::error::KeyRejected),
    /// A public key of another kind.
    #[error("a restore certificate is signed with ecdsa-sha2-nistp256, and this key is {0}")]
    Kind(String),
    /// Not a public key as OpenSSH writes it.
    #[error("this is not a public key as OpenSSH writes it")]
    Form(#[source] ssh_key::Error),
    /// The system has no randomness.
    #[error("the system gives no random bytes for a signature")]
    Random,
}

/// A public key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(EcdsaPublicKey);

impl PublicKey {
    /// Takes a key of a signature or a file.
    ///
    /// # Errors
    /// [`KeyError::Kind`].
    pub(crate) fn of(data: &KeyData) -> Result<Self, KeyError> {
        match data {
            KeyData::Ecdsa(key @ EcdsaPublicKey::NistP256(_)) => Ok(Self(*key)),
            other => Err(KeyError::Kind(other.algorithm().to_string())),
        }
    }

    /// Reads `ecdsa-sha2-nistp256 AAAA…`, a comment left out.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_openssh(text: &str) -> Result<Self, KeyError> {
        Self::of(SshPublicKey::from_openssh(text.trim()).map_err(KeyError::Form)?.key_data())
    }

    /// As OpenSSH writes it.
    ///
    /// # Errors
    /// [`KeyError::Form`]; does not happen for a key that was read.
    pub fn openssh(&self) -> Result<PublicKeyText, KeyError> {
        let text = SshPublicKey::from(self.data()).to_openssh().map_err(KeyError::Form)?;
        PublicKeyText::try_from(text).map_err(|_| KeyError::Form(ssh_key::Error::FormatEncoding))
    }

    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.data().fingerprint(HashAlg::Sha256).to_string()
    }

    /// SHA-256 of the key's DER, by which the hub knows the keys that it issued certificates for.
    #[must_use]
    pub fn spki_sha256(&self) -> [u8; 32] {
        Sha256::new().chain_update(SPKI_HEAD).chain_update(self.point()).finalize().into()
    }

    pub(crate) fn data(&self) -> KeyData {
        KeyData::Ecdsa(self.0)
    }

    /// The point, uncompressed.
    pub(crate) fn point(&self) -> &[u8] {
        self.0.as_sec1_bytes()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

/// A private key. It shows nothing of itself.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    public: PublicKey,
}

impl SigningKey {
    /// Reads a key in PKCS #8, as it is in the identity of a host.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
            .map_err(KeyError::Private)?;
        let public = EcdsaPublicKey::from_sec1_bytes(pair.public_key().as_ref()).map_err(KeyError::Form)?;
        Ok(Self { public: PublicKey::of(&KeyData::Ecdsa(public))?, pair, random })
    }

    /// Its public half.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Two numbers of 32 bytes. Each signature of the same bytes is another one.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&self.random, bytes).map_err(|_| KeyError::Random)?;
        Ok(signature.as_ref().to_vec())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.fingerprint())
    }
}

/// OpenSSH's line ending.
pub(crate) const LINES: LineEnding = LineEnding::LF;
