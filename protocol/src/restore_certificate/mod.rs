//! Restore certificates: what a restore test of a guest showed.
//!
//! ```text
//! host:  RestoreCertificate ──its bytes──▶ signature of the host
//! hub:   hash of the bytes, hash of that signature, key, host, time ──Countersignature──▶ signature of the hub
//! ```
//! A document and a statement travel as the very text that was signed, and are never written again. The host says what
//! was checked. The hub says only that the key belonged to that host when it received the certificate. Deliberately
//! absent: keys and signatures as such (crate `restore-certificate`).

mod document;
mod envelope;
mod statement;

pub use document::{
    CertificateSchema, CertifiedBackup, CertifiedGuest, CertifiedHost, CertifiedTest, Check,
    RestoreCertificate, StackState, Verdict,
};
pub use envelope::{
    CertificateError, CertificateKept, CertificatePut, CertificateView, Countersignature, DocumentText,
    ENVELOPE_BYTES_MAX, PUT_BYTES_MAX, PublicKeyText, SignatureText, SignedCertificate, SignedSchema,
    StatementText,
};
pub use statement::{Statement, StatementSchema};

/// What the host signs for. `ssh-keygen` takes it as its namespace.
pub const HOST_NAMESPACE: &str = "holdfast-restore-certificate";

/// What the hub signs for. `ssh-keygen` takes it as its namespace.
pub const HUB_NAMESPACE: &str = "holdfast-restore-countersign";

#[cfg(test)]
mod tests;
