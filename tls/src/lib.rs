//! Whom our clients trust: pinned certificates and keys, or one CA. No client of ours asks the system's store.
//!
//! What comes in: a [`Trust`], and the client's own [`Identity`] where it has one. What goes out: a
//! [`rustls::ClientConfig`] with the ring provider, TLS 1.3 alone and no memory of earlier sessions, for `reqwest`'s `tls_backend_preconfigured` or a
//! plain connector. A server that is refused is refused with a [`Refusal`], which [`refusal`] finds again inside
//! whatever the HTTP client wrapped around it. Deliberately absent: sockets, servers, files, a way to switch checking off.
#![forbid(unsafe_code)]

mod client;
mod pinned;
mod pinned_ca;
mod refusal;
mod verifier;

pub use client::{Identity, TlsError, Trust, client, client_with_identity, provider};
pub use refusal::{Refusal, refusal};

use holdfast_protocol::pin::{Pin, PinKind};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

/// The pin of a certificate: of the whole, or of its public key.
///
/// # Errors
/// When the public key of a certificate that is no X.509 v3 is asked for.
pub fn pin_of(kind: PinKind, certificate: &CertificateDer<'_>) -> Result<Pin, rustls::Error> {
    Ok(match kind {
        PinKind::Leaf => Pin::of(kind, certificate),
        PinKind::Spki => Pin::of(kind, &ParsedCertificate::try_from(certificate)?.subject_public_key_info()),
    })
}
