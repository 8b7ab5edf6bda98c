//! The acceptance of a release by those who may sign releases.
//!
//! In: the release keys that root laid down on the host (the form of the operators file), how many of their holders must
//! sign, a signed release, the time. Out: an [`AcceptedRelease`], which has no other constructor, or why it is refused.
//! The signed bytes are checked before they are read. Deliberately absent: the version that a host has (`agent-slots`).

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::release::{ReleaseError, ReleaseManifest, SignedRelease};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::operators::{Operators, SigningRight};
use crate::signature::{self, Namespace, SignatureError};

/// Who may sign releases, and how many of them must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseKeys {
    signers: Operators,
    needed: usize,
}

/// A release that was signed by those who may sign it. There is no other way to make one than [`ReleaseKeys::accept`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedRelease {
    manifest: ReleaseManifest,
    digest: [u8; 32],
    signers: BTreeSet<OperatorName>,
}

impl AcceptedRelease {
    /// What is released.
    #[must_use]
    pub const fn manifest(&self) -> &ReleaseManifest {
        &self.manifest
    }

    /// SHA-256 of the signed bytes.
    #[must_use]
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Who signed, each once.
    #[must_use]
    pub const fn signers(&self) -> &BTreeSet<OperatorName> {
        &self.signers
    }
}

/// Why the keys can let no release through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseKeysError {
    #[error("releases would need no signature: `signatures` is at least 1")]
    NoSignature,
    #[error("releases would need {needed} signatures, and the release keys are of {holders} people")]
    TooFew {
        needed: usize,
        /// How many people hold a key.
        holders: usize,
    },
}

/// Why a release is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseRefused {
    #[error("signature {number} of the release is refused: {source}")]
    Signature {
        /// Counted from 1.
        number: usize,
        #[source]
        source: SignatureError,
    },
    #[error("the release is signed with {fingerprint}, which is not among this host's release keys")]
    KeyUnknown { fingerprint: String },
    #[error("{name}'s key may not sign releases at this time")]
    KeyRevoked { name: OperatorName },
    #[error("the release has the signatures of {given} people, and this host needs {needed}")]
    Missing { needed: usize, given: usize },
    /// The signed bytes are no manifest.
    #[error(transparent)]
    Manifest(#[from] ReleaseError),
    #[error("the release ended at {0}: sign a new manifest of the same files")]
    Expired(UtcSecond),
}

impl ReleaseRefused {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Signature { .. } => ErrorCode::Signature,
            Self::KeyUnknown { .. } => ErrorCode::KeyUnknown,
            Self::KeyRevoked { .. } => ErrorCode::KeyRevoked,
            Self::Missing { .. } => ErrorCode::SignaturesMissing,
            Self::Manifest(error) => error.code(),
            Self::Expired(_) => ErrorCode::JobExpired,
        }
    }
}

impl ReleaseKeys {
    /// Takes the keys and how many people must sign.
    ///
    /// # Errors
    /// [`ReleaseKeysError`].
    pub fn new(signers: Operators, needed: u8) -> Result<Self, ReleaseKeysError> {
        let (needed, holders) = (usize::from(needed), signers.operators());
        match needed {
            0 => Err(ReleaseKeysError::NoSignature),
            _ if needed > holders => Err(ReleaseKeysError::TooFew { needed, holders }),
            _ => Ok(Self { signers, needed }),
        }
    }

    /// Checks every signature over the bytes, counts people, reads the bytes, then looks at the end of the release.
    ///
    /// # Errors
    /// [`ReleaseRefused`], at the first reason.
    pub fn accept(&self, release: &SignedRelease, at: Timestamp) -> Result<AcceptedRelease, ReleaseRefused> {
        let accepted = self.verify(release, at)?;
        if at >= accepted.manifest.expires_at.at() {
            return Err(ReleaseRefused::Expired(accepted.manifest.expires_at));
        }
        Ok(accepted)
    }

    /// The same for a release that is installed already: its end is no reason to stop it.
    ///
    /// # Errors
    /// [`ReleaseRefused`], at the first reason.
    pub fn verify(&self, release: &SignedRelease, at: Timestamp) -> Result<AcceptedRelease, ReleaseRefused> {
        let mut signers = BTreeSet::new();
        for (number, armoured) in (1..).zip(&release.signatures) {
            let known = |data: &_| self.signers.key(data);
            let key = signature::check_known(&release.manifest, armoured, Namespace::Release, known)
                .map_err(|source| ReleaseRefused::Signature { number, source })?;
            match self.signers.right(&key, Namespace::Release, at) {
                SigningRight::May(name) => signers.insert(name.clone()),
                SigningRight::MayNot(name) => return Err(ReleaseRefused::KeyRevoked { name: name.clone() }),
                SigningRight::Unknown => {
                    return Err(ReleaseRefused::KeyUnknown { fingerprint: key.fingerprint() });
                }
            };
        }
        // One person with two keys is one person.
        if signers.len() < self.needed {
            return Err(ReleaseRefused::Missing { needed: self.needed, given: signers.len() });
        }
        let manifest = ReleaseManifest::parse(&release.manifest)?;
        Ok(AcceptedRelease { manifest, digest: Sha256::digest(&release.manifest).into(), signers })
    }
}
