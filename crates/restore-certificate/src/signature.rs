//! Signatures in the form of `ssh-keygen -Y sign`.
//!
//! The format is OpenSSH's `PROTOCOL.sshsig`. The armour is read and written by `ssh-key`, the mathematics done by `ring`.
//! A signature that was read is written again and must be the same, so it has one spelling.

use holdfast_protocol::restore_certificate::{HOST_NAMESPACE, HUB_NAMESPACE, SignatureText};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use ssh_ecdsa::NUMBER;
use ssh_key::{Algorithm, EcdsaCurve, HashAlg, Mpint, Signature, SshSig};

use crate::key::{KeyError, LINES, PublicKey, SigningKey};

/// What a signature is for. One made for something else is worth nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// A host's document.
    Host,
    /// A hub's statement.
    Hub,
}

impl Namespace {
    /// As `ssh-keygen -n` takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => HOST_NAMESPACE,
            Self::Hub => HUB_NAMESPACE,
        }
    }
}

/// Why bytes do not carry a signature, or cannot be given one.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// Not as `ssh-keygen -Y sign` writes it.
    #[error("this is not a signature as ssh-keygen -Y sign writes it")]
    Form(#[source] ssh_key::Error),
    /// Not in its one spelling.
    #[error("this is no signature in the one form that ssh-keygen -Y sign writes")]
    Spelling,
    /// Made for another purpose.
    #[error("the signature is for {found:?}, and {wanted} is needed", wanted = .wanted.as_str())]
    Namespace {
        /// What it is for.
        found: String,
        /// What it should be for.
        wanted: Namespace,
    },
    /// Its key is of another kind, or cannot sign.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key did not sign these bytes.
    #[error("the signature does not fit these bytes: they were changed, or signed with another key")]
    Mismatch,
}

/// Signs bytes.
///
/// # Errors
/// [`SignatureError::Key`], where the system has no randomness.
pub(crate) fn sign(
    key: &SigningKey,
    namespace: Namespace,
    bytes: &[u8],
) -> Result<SignatureText, SignatureError> {
    let signed =
        SshSig::signed_data(namespace.as_str(), HashAlg::Sha512, bytes).map_err(SignatureError::Form)?;
    let numbers = key.sign(&signed)?;
    let (r, s) = numbers.split_at_checked(NUMBER).ok_or(SignatureError::Mismatch)?;
    let mut blob = Vec::new();
    for number in [r, s] {
        let number = Mpint::from_positive_bytes(number).map_err(SignatureError::Form)?;
        let length = u32::try_from(number.as_bytes().len()).map_err(|_| SignatureError::Spelling)?;
        blob.extend(length.to_be_bytes());
        blob.extend(number.as_bytes());
    }
    let algorithm = Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 };
    let signature = Signature::new(algorithm, blob).map_err(SignatureError::Form)?;
    let whole = SshSig::new(key.public().data(), namespace.as_str(), HashAlg::Sha512, signature)
        .map_err(SignatureError::Form)?;
    let armoured = whole.to_pem(LINES).map_err(SignatureError::Form)?;
    SignatureText::try_from(with_end(armoured)).map_err(|_| SignatureError::Spelling)
}

/// Checks a signature over bytes and gives the key that made it.
///
/// # Errors
/// [`SignatureError`].
pub(crate) fn check(
    bytes: &[u8],
    armoured: &SignatureText,
    namespace: Namespace,
) -> Result<PublicKey, SignatureError> {
    let signature = SshSig::from_pem(armoured.as_str()).map_err(SignatureError::Form)?;
    let again = signature.to_pem(LINES).map_err(SignatureError::Form)?;
    let is_plain = signature.version() == SshSig::VERSION
        && signature.reserved().is_empty()
        && with_end(again) == armoured.as_str();
    if !is_plain {
        return Err(SignatureError::Spelling);
    }
    if signature.namespace() != namespace.as_str() {
        let found = signature.namespace().chars().take(64).collect();
        return Err(SignatureError::Namespace { found, wanted: namespace });
    }
    let key = PublicKey::of(signature.public_key())?;
    let signed =
        SshSig::signed_data(namespace.as_str(), signature.hash_alg(), bytes).map_err(SignatureError::Form)?;
    let numbers = ssh_ecdsa::fixed(signature.signature_bytes()).ok_or(SignatureError::Mismatch)?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.point())
        .verify(&signed, &numbers)
        .map_err(|_| SignatureError::Mismatch)?;
    Ok(key)
}

/// With a newline at its end, as `ssh-keygen` writes it.
fn with_end(mut armoured: String) -> String {
    if !armoured.ends_with('\n') {
        armoured.push('\n');
    }
    armoured
}
