//! A restore certificate in transport: texts and their signatures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RestoreCertificate, Statement};
use crate::code::ErrorCode;
use crate::id::GuestUid;
use crate::job::UtcSecond;
use crate::json::{self, JsonError};
use crate::text::texts;

/// A document with 32 stacks and 17 canaries on the longest mounts has less.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024;

const STATEMENT_BYTES_MAX: usize = 2 * 1024;

/// A whole envelope. JSON text within JSON is at worst twice as long; the form with line breaks adds a few bytes.
pub const ENVELOPE_BYTES_MAX: usize = 2 * (DOCUMENT_BYTES_MAX + STATEMENT_BYTES_MAX) + 4 * 1024;

/// An envelope in the request of an agent.
pub const PUT_BYTES_MAX: usize = ENVELOPE_BYTES_MAX + 1024;

texts! {
    /// The bytes of a document, as they were signed.
    DocumentText, 2..=16_384, "a document of at most 16 KiB", |text| text.len() <= DOCUMENT_BYTES_MAX;
    /// The bytes of a statement, as they were signed.
    StatementText, 2..=2_048, "a statement of at most 2 KiB", |text| text.len() <= STATEMENT_BYTES_MAX;
    /// A signature as `ssh-keygen -Y sign` writes it.
    SignatureText, 64..=1_024, "a signature as ssh-keygen -Y sign writes it", |text| text.is_ascii();
    /// A public key as OpenSSH writes it, without a comment.
    PublicKeyText, 32..=256, "a public key as OpenSSH writes it", |text| text.is_ascii() && !text.contains('\n');
}

/// The version of an envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SignedSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.signed_restore_certificate/v1")]
    V1,
}

/// A document and who signed it. Nothing of it has been checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedCertificate {
    /// The version of the envelope.
    pub schema: SignedSchema,
    /// The document's bytes.
    pub document: DocumentText,
    /// The host's signature over them.
    pub host_signature: SignatureText,
    /// The hub's, once it has received both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<Countersignature>,
}

/// The hub's statement and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Countersignature {
    /// The statement's bytes.
    pub statement: StatementText,
    /// The hub's signature over them.
    pub signature: SignatureText,
}

/// `PUT /v1/agent/restore-certificates`: the certificate of one guest, without the hub's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificatePut {
    /// As the host signed it.
    pub certificate: SignedCertificate,
}

/// The hub holds it. The same certificate again is the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateKept {
    /// Of which guest.
    pub guest: GuestUid,
    /// When it was received first.
    pub received_at: UtcSecond,
}

/// `GET /v1/hosts/{host}/guests/{guest}/restore-certificate`: the newest of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateView {
    /// With the hub's signature.
    pub certificate: SignedCertificate,
    /// The hub's present key, to compare and to keep.
    pub hub_key: PublicKeyText,
}

/// Why an envelope cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Not the document it should be.
    #[error(transparent)]
    Form(#[from] JsonError),
    /// A text that is signed is longer than it may be.
    #[error("the {what} cannot be written: {rule}")]
    Text {
        /// Which text.
        what: &'static str,
        /// What it should be.
        rule: &'static str,
    },
    /// Cannot be written as JSON; does not happen for these types.
    #[error("the {what} cannot be written as JSON")]
    Unwritable {
        /// Which text.
        what: &'static str,
        /// The parser's reason.
        #[source]
        source: serde_json::Error,
    },
}

impl CertificateError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Form(error) => error.code(),
            Self::Text { .. } | Self::Unwritable { .. } => ErrorCode::Internal,
        }
    }
}

impl SignedCertificate {
    /// Reads an envelope, as a file or a row has it.
    ///
    /// # Errors
    /// [`CertificateError::Form`].
    pub fn parse(bytes: &[u8]) -> Result<Self, CertificateError> {
        Ok(json::parse("a restore certificate", bytes, ENVELOPE_BYTES_MAX)?)
    }

    /// Reads the document. Its signature is not checked by that.
    ///
    /// # Errors
    /// [`CertificateError::Form`].
    pub fn read(&self) -> Result<RestoreCertificate, CertificateError> {
        let bytes = self.document.as_str().as_bytes();
        Ok(json::parse("the document of a restore certificate", bytes, DOCUMENT_BYTES_MAX)?)
    }
}

impl Countersignature {
    /// Reads the statement. Its signature is not checked by that.
    ///
    /// # Errors
    /// [`CertificateError::Form`].
    pub fn read(&self) -> Result<Statement, CertificateError> {
        let bytes = self.statement.as_str().as_bytes();
        Ok(json::parse("the hub's statement", bytes, STATEMENT_BYTES_MAX)?)
    }
}

impl DocumentText {
    /// Writes a document. These bytes are signed, kept and sent; they are never written again.
    ///
    /// # Errors
    /// [`CertificateError`], where it is longer than one may be.
    pub fn of(document: &RestoreCertificate) -> Result<Self, CertificateError> {
        let what = "document";
        let text = serde_json::to_string(document)
            .map_err(|source| CertificateError::Unwritable { what, source })?;
        Self::try_from(text).map_err(|rule| CertificateError::Text { what, rule })
    }
}

impl StatementText {
    /// Writes a statement. These bytes are signed, kept and sent; they are never written again.
    ///
    /// # Errors
    /// [`CertificateError`], where it is longer than one may be.
    pub fn of(statement: &Statement) -> Result<Self, CertificateError> {
        let what = "statement";
        let text = serde_json::to_string(statement)
            .map_err(|source| CertificateError::Unwritable { what, source })?;
        Self::try_from(text).map_err(|rule| CertificateError::Text { what, rule })
    }
}
