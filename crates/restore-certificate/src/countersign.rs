//! The hub's part: the owner of the key, and the countersignature.

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::restore_certificate::{
    CertificateError, Countersignature, RestoreCertificate, SignedCertificate, Statement, StatementSchema,
    StatementText,
};

use crate::key::{KeyError, PublicKey, SigningKey};
use crate::signature::{self, Namespace, SignatureError};

/// A certificate that fits its host's signature. Nothing is known yet of the key.
#[derive(Clone, Debug)]
pub struct Received {
    /// As it came.
    pub signed: SignedCertificate,
    /// Its document.
    pub document: RestoreCertificate,
    /// The key that signed it.
    pub key: PublicKey,
}

/// Why a certificate is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The document cannot be read.
    #[error(transparent)]
    Document(#[from] CertificateError),
    /// The signature is not good.
    #[error("the host's signature is not accepted")]
    Signature(#[from] SignatureError),
}

/// Checks the host's signature, and then reads the document.
///
/// # Errors
/// [`ReceiveError`].
pub fn receive(signed: SignedCertificate) -> Result<Received, ReceiveError> {
    let bytes = signed.document.as_str().as_bytes();
    let key = signature::check(bytes, &signed.host_signature, Namespace::Host)?;
    let document = signed.read()?;
    Ok(Received { signed, document, key })
}

/// What the hub knows of the key that signed a certificate.
#[derive(Clone, Debug)]
pub struct KeyOwner {
    /// The host that it was enrolled as.
    pub host: HostId,
    /// The host's name.
    pub name: HostName,
    /// Which of the host's TLS certificates has it.
    pub generation: u32,
    /// When the certificate was received.
    pub received_at: UtcSecond,
}

/// Why there is no countersignature.
#[derive(Debug, thiserror::Error)]
pub enum CountersignError {
    /// The statement cannot be written.
    #[error(transparent)]
    Statement(#[from] CertificateError),
    /// The host's key cannot be written.
    #[error("the host's key cannot be written")]
    Key(#[from] KeyError),
    /// It cannot be signed.
    #[error("the statement cannot be signed with this hub's key")]
    Sign(#[source] SignatureError),
}

/// States the owner of the key, and signs that.
///
/// # Errors
/// [`CountersignError`].
pub fn countersign(
    received: &Received,
    owner: &KeyOwner,
    key: &SigningKey,
) -> Result<Countersignature, CountersignError> {
    let statement = Statement {
        schema: StatementSchema::V1,
        document_sha256: sha256(received.signed.document.as_str()),
        host_signature_sha256: sha256(received.signed.host_signature.as_str()),
        host: owner.host,
        host_name: owner.name.clone(),
        host_key: received.key.openssh()?,
        certificate_generation: owner.generation,
        received_at: owner.received_at,
    };
    let statement = StatementText::of(&statement)?;
    let signature = signature::sign(key, Namespace::Hub, statement.as_str().as_bytes())
        .map_err(CountersignError::Sign)?;
    Ok(Countersignature { statement, signature })
}

/// SHA-256 of a text that is signed.
pub(crate) fn sha256(text: &str) -> Sha256Text {
    Sha256Text::of(text.as_bytes())
}
