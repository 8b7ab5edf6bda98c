//! Issue of a restore certificate by its host.

use holdfast_protocol::restore_certificate::{
    CertificateError, DocumentText, RestoreCertificate, SignedCertificate, SignedSchema,
};

use crate::key::SigningKey;
use crate::signature::{self, Namespace, SignatureError};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The document cannot be written.
    #[error(transparent)]
    Document(#[from] CertificateError),
    /// It cannot be signed.
    #[error("the document cannot be signed with this host's key")]
    Sign(#[source] SignatureError),
}

/// Writes a document and signs it.
///
/// # Errors
/// [`IssueError`].
pub fn issue(document: &RestoreCertificate, key: &SigningKey) -> Result<SignedCertificate, IssueError> {
    let document = DocumentText::of(document)?;
    let host_signature =
        signature::sign(key, Namespace::Host, document.as_str().as_bytes()).map_err(IssueError::Sign)?;
    Ok(SignedCertificate { schema: SignedSchema::V1, document, host_signature, hub: None })
}
