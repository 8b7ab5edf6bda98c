//! TLS settings: TLS 1.3 only, optional client certificates.
//!
//! A certificate of another CA, or one that ended, fails the handshake. What a good certificate is worth is judged at
//! every request, by the store.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::{ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};

/// Why there are no TLS settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The CA's certificate is not one.
    #[error("the hub's CA certificate cannot be used for TLS: restore ca.pem from the backup")]
    Ca(#[source] rustls::Error),
    /// The verifier of clients cannot be made.
    #[error("agents' certificates cannot be verified")]
    Verifier(#[source] VerifierBuilderError),
    /// The provider does not speak TLS 1.3.
    #[error("the TLS library does not speak TLS 1.3")]
    Version(#[source] rustls::Error),
}

/// Makes the settings.
///
/// # Errors
/// [`TlsError`].
pub fn server_config(
    ca: &CertificateDer<'static>,
    certificate: Arc<dyn ResolvesServerCert>,
) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(ca.clone()).map_err(TlsError::Ca)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), net::tls::provider())
        .allow_unauthenticated()
        .build()
        .map_err(TlsError::Verifier)?;
    net::tls::server(|builder| Ok(builder.with_client_cert_verifier(clients).with_cert_resolver(certificate)))
        .map_err(TlsError::Version)
}
