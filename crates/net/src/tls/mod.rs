//! TLS clients with pinned trust, and the shared server settings.
//!
//! Input: a [`Trust`], and the client's own [`Identity`] where it has one. Output: a [`rustls::ClientConfig`] with the
//! ring provider, TLS 1.3 alone and no memory of earlier sessions, for `reqwest`'s `tls_backend_preconfigured` or a
//! plain connector. A server that is refused is refused with a [`Refusal`], which [`refusal`] finds again inside
//! whatever the HTTP client wrapped around it. Deliberately absent: sockets, files, a way to switch checking off.

mod client;
mod pinned;
mod pinned_ca;
mod refusal;
mod server;
mod succession;
mod verifier;

pub use client::{HUB_CLIENT_ALPN, Identity, TlsError, Trust, client, client_with_identity, provider};
pub use refusal::{Refusal, refusal, tls_error};
pub use server::{WantsCertificates, server};
pub use succession::{SuccessionError, succeeds};

use holdfast_protocol::pin::{Pin, PinKind};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

/// The pin of a certificate: of the whole, or of its public key.
///
/// # Errors
/// When the public key is wanted and the certificate is no X.509 v3.
pub fn pin_of(kind: PinKind, certificate: &CertificateDer<'_>) -> Result<Pin, rustls::Error> {
    Ok(match kind {
        // No certificate has a pin of a request, so this one equals none.
        PinKind::Leaf | PinKind::Request => Pin::of(kind, certificate),
        PinKind::Spki => Pin::of(kind, &ParsedCertificate::try_from(certificate)?.subject_public_key_info()),
    })
}

/// Whether these are the first bytes of a TLS client: a record of its handshake. No resources are held for any other
/// peer.
#[must_use]
pub fn begins_tls(first: &[u8]) -> bool {
    // The record's version is 3.1 or 3.3, whichever TLS follows.
    matches!(first, [22] | [22, 3, ..])
}

#[cfg(test)]
mod tests {
    use super::begins_tls;

    #[test]
    fn tls_clients_begin_with_a_handshake() {
        for good in [&[22][..], &[22, 3], &[22, 3, 1, 2, 0, 1], &[22, 3, 3]] {
            assert!(begins_tls(good), "{good:?}");
        }
        for bad in [&[][..], b"GET / HTTP/1.1", &[22, 2], &[21, 3, 1], &[0x80, 0x2e, 1, 3, 1]] {
            assert!(!begins_tls(bad), "{bad:?}");
        }
    }
}
