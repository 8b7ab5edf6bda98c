//! Offline verification of a restore certificate.
//!
//! In: an envelope, and the hub's key where the reader has it. Out: [`Proof`], or the first thing that does not hold.
//! What a proof is worth depends on the reader's own knowledge of the hub's key, so it says whether that was given.

use holdfast_protocol::id::HostId;
use holdfast_protocol::restore_certificate::{
    CertificateError, RestoreCertificate, SignedCertificate, Statement,
};

use crate::countersign::{self, ReceiveError, Received};
use crate::key::PublicKey;
use crate::signature::{self, Namespace, SignatureError};

/// The hub's key, as the reader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownHub {
    /// By the key itself.
    Key(PublicKey),
    /// By its fingerprint, `SHA256:…`.
    Fingerprint(String),
    /// Not at all. Then the envelope proves only that it was not changed since.
    Unknown,
}

/// Whether the hub's key is the one that the reader knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubTrust {
    /// It was compared.
    Compared,
    /// There was nothing to compare it with.
    NotCompared,
}

/// What a certificate shows.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What the host certified.
    pub document: RestoreCertificate,
    /// The host's key.
    pub host_key: PublicKey,
    /// What the hub stated.
    pub statement: Statement,
    /// The hub's key.
    pub hub_key: PublicKey,
    /// What the reader knew of that key.
    pub trust: HubTrust,
}

/// What does not hold.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The host's part.
    #[error("the host's signature does not hold")]
    Host(#[from] ReceiveError),
    /// The hub did not countersign it.
    #[error("the hub has not countersigned this certificate: fetch it from the hub")]
    NoHub,
    /// The hub's signature.
    #[error("the hub's signature does not hold")]
    Hub(#[from] SignatureError),
    /// The statement cannot be read.
    #[error("the hub's statement cannot be read")]
    Statement(#[source] CertificateError),
    /// Another hub's key.
    #[error("the countersignature is by key {found}, and the hub's key is {known}: another hub signed this")]
    OtherHub {
        /// The key that signed.
        found: String,
        /// The key that the reader gave.
        known: String,
    },
    /// The statement is about other bytes.
    #[error("the hub's statement is about another certificate")]
    OtherDocument,
    /// The statement is about another key.
    #[error("the hub's statement names key {stated}, and the host's signature is by {found}")]
    OtherKey {
        /// The key that the hub enrolled.
        stated: String,
        /// The key that signed.
        found: String,
    },
    /// The document is about another host than the key's.
    #[error("the document says host {says}, and the hub enrolled the key as host {owner}")]
    OtherHost {
        /// The host of the document.
        says: HostId,
        /// The host of the key.
        owner: HostId,
    },
}

/// Verifies a certificate. It needs no network.
///
/// # Errors
/// [`VerifyError`].
pub fn verify(signed: SignedCertificate, known: &KnownHub) -> Result<Proof, VerifyError> {
    let Received { signed, document, key: host_key } = countersign::receive(signed)?;
    let hub = signed.hub.as_ref().ok_or(VerifyError::NoHub)?;
    let hub_key = signature::check(hub.statement.as_str().as_bytes(), &hub.signature, Namespace::Hub)?;
    let trust = compare(&hub_key, known)?;
    let statement = hub.read().map_err(VerifyError::Statement)?;
    let about_this = statement.document_sha256 == countersign::sha256(signed.document.as_str())
        && statement.host_signature_sha256 == countersign::sha256(signed.host_signature.as_str());
    if !about_this {
        return Err(VerifyError::OtherDocument);
    }
    let stated = PublicKey::from_openssh(statement.host_key.as_str()).map_err(SignatureError::Key)?;
    if stated != host_key {
        return Err(VerifyError::OtherKey { stated: stated.fingerprint(), found: host_key.fingerprint() });
    }
    if statement.host != document.host.id {
        return Err(VerifyError::OtherHost { says: document.host.id, owner: statement.host });
    }
    Ok(Proof { document, host_key, statement, hub_key, trust })
}

fn compare(found: &PublicKey, known: &KnownHub) -> Result<HubTrust, VerifyError> {
    let known = match known {
        KnownHub::Unknown => return Ok(HubTrust::NotCompared),
        KnownHub::Key(key) => key.fingerprint(),
        KnownHub::Fingerprint(fingerprint) => fingerprint.clone(),
    };
    if found.fingerprint() == known {
        return Ok(HubTrust::Compared);
    }
    Err(VerifyError::OtherHub { found: found.fingerprint(), known })
}
