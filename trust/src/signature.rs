//! One signature of `ssh-keygen -Y sign` over exact bytes.
//!
//! The format is OpenSSH's `PROTOCOL.sshsig`; the flags of hardware keys are those of its `PROTOCOL.u2f`. The armour is
//! read by `ssh-key`, the mathematics done by `ed25519-dalek` (strictly) and `ring`.

use ed25519_dalek::VerifyingKey;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, SshSig};

use crate::armour;
use crate::key::{KeyError, OperatorKey};

/// A signature is some 300 bytes long; a hardware key's application name makes it longer.
const BYTES_MAX: usize = 2 * 1024;

/// What a signature is for. One made for something else is worth nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// A job for a host.
    Job,
    /// A release of Holdfast.
    Release,
    /// A customer's consent to a job.
    Consent,
}

impl Namespace {
    /// As `ssh-keygen -n` takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Job => "holdfast-job",
            Self::Release => "holdfast-release",
            Self::Consent => "holdfast-consent",
        }
    }
}

/// Why bytes do not carry a signature.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// Too long for a signature.
    #[error("the signature is {0} bytes long; at most {BYTES_MAX} are accepted")]
    Size(usize),
    /// Not as `ssh-keygen -Y sign` writes it.
    #[error("this is not a signature as ssh-keygen -Y sign writes it")]
    Form(#[source] ssh_key::Error),
    /// Not in the one spelling that OpenSSH has for it.
    #[error("this is no signature in the one form that ssh-keygen -Y sign writes: sign anew")]
    Spelling,
    /// Made for another purpose.
    #[error("the signature is for {found:?}; sign with -n {wanted}", wanted = .wanted.as_str())]
    Namespace {
        /// What it is for.
        found: String,
        /// What it should be for.
        wanted: Namespace,
    },
    /// Its key may not sign.
    #[error("the signature's key may not sign")]
    Key(#[source] KeyError),
    /// The token was not touched.
    #[error(
        "nobody touched the hardware key: sign with a key that asks for it (not made with no-touch-required)"
    )]
    Untouched,
    /// The key did not sign these bytes.
    #[error("the signature does not fit these bytes: they were changed, or signed in another form")]
    Mismatch,
}

/// Checks one signature over bytes and says whose key made it.
///
/// # Errors
/// [`SignatureError`].
pub fn check(bytes: &[u8], armoured: &str, namespace: Namespace) -> Result<OperatorKey, SignatureError> {
    check_known(bytes, armoured, namespace, |_| None)
}

/// The same. A key that `known` finds was judged before, and is not judged anew.
pub(crate) fn check_known<'a>(
    bytes: &[u8],
    armoured: &str,
    namespace: Namespace,
    known: impl FnOnce(&KeyData) -> Option<&'a OperatorKey>,
) -> Result<OperatorKey, SignatureError> {
    if armoured.len() > BYTES_MAX {
        return Err(SignatureError::Size(armoured.len()));
    }
    let signature = SshSig::from_pem(armoured).map_err(SignatureError::Form)?;
    if !is_plain(&signature, armoured) {
        return Err(SignatureError::Spelling);
    }
    if signature.namespace() != namespace.as_str() {
        let found = signature.namespace().chars().take(64).collect();
        return Err(SignatureError::Namespace { found, wanted: namespace });
    }
    let key = match known(signature.public_key()) {
        Some(key) => key.clone(),
        None => OperatorKey::judge(signature.public_key().clone()).map_err(SignatureError::Key)?,
    };
    let signed =
        SshSig::signed_data(namespace.as_str(), signature.hash_alg(), bytes).map_err(SignatureError::Form)?;
    let (algorithm, blob) = (signature.algorithm(), signature.signature_bytes());
    match (key.data(), key.point(), algorithm) {
        (KeyData::Ed25519(_), Some(point), Algorithm::Ed25519) => ed25519(point, &signed, blob)?,
        (KeyData::SkEd25519(public), Some(point), Algorithm::SkEd25519) => {
            let (inner, message) = touched(public.application(), &signed, blob)?;
            ed25519(point, &message, inner)?;
        }
        (KeyData::SkEcdsaSha2NistP256(public), _, Algorithm::SkEcdsaSha2NistP256) => {
            let (inner, message) = touched(public.application(), &signed, blob)?;
            let fixed = ssh_ecdsa::fixed(inner).ok_or(SignatureError::Mismatch)?;
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.ec_point().as_bytes())
                .verify(&message, &fixed)
                .map_err(|_| SignatureError::Mismatch)?;
        }
        _ => return Err(SignatureError::Mismatch),
    }
    Ok(key)
}

/// Whether it is written in its one spelling.
fn is_plain(signature: &SshSig, armoured: &str) -> bool {
    let lines = armoured.replace("\r\n", "\n");
    signature.version() == SshSig::VERSION
        && signature.reserved().is_empty()
        && armour::written(signature).is_some_and(|again| again.trim_end() == lines.trim_end())
}

fn ed25519(key: &VerifyingKey, message: &[u8], blob: &[u8]) -> Result<(), SignatureError> {
    let signature = ed25519_dalek::Signature::from_slice(blob).map_err(|_| SignatureError::Mismatch)?;
    key.verify_strict(message, &signature).map_err(|_| SignatureError::Mismatch)
}

/// Bit 0 of the flags: a person touched the token.
const USER_PRESENT: u8 = 1;

/// The signature of a hardware key without its trailer (flags, and a counter of four bytes), and what the token signed.
fn touched<'a>(
    application: &str,
    signed: &[u8],
    blob: &'a [u8],
) -> Result<(&'a [u8], Vec<u8>), SignatureError> {
    let (inner, trailer) = blob.split_last_chunk::<5>().ok_or(SignatureError::Mismatch)?;
    let [flags, ..] = trailer;
    if flags & USER_PRESENT == 0 {
        return Err(SignatureError::Untouched);
    }
    let message =
        [Sha256::digest(application).as_slice(), trailer.as_slice(), Sha256::digest(signed).as_slice()]
            .concat();
    Ok((inner, message))
}
