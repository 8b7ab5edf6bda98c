//! TLS settings: TLS 1.3 only, optional client certificates.
//!
//! A certificate of another CA, or one that ended, fails the handshake. What a good certificate is worth is judged at
//! every request, by the store.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

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

/// The verifier of hosts' certificates, by the CAs of the moment.
#[derive(Debug)]
pub struct HostVerifier {
    current: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl HostVerifier {
    /// For certificates of these CAs.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(cas: &[&CertificateDer<'static>]) -> Result<Self, TlsError> {
        Ok(Self { current: RwLock::new(verifier(cas)?) })
    }

    /// From now on certificates of these CAs are accepted, and no others. Open connections stay.
    ///
    /// # Errors
    /// [`TlsError`]; then nothing changes.
    pub fn accept(&self, cas: &[&CertificateDer<'static>]) -> Result<(), TlsError> {
        let next = verifier(cas)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    fn now(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientCertVerifier for HostVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None: a host has one certificate, and shows it.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.now().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().supported_verify_schemes()
    }
}

fn verifier(cas: &[&CertificateDer<'static>]) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for ca in cas {
        roots.add((*ca).clone()).map_err(TlsError::Ca)?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), net::tls::provider())
        .allow_unauthenticated()
        .build()
        .map_err(TlsError::Verifier)
}

/// Makes the settings.
///
/// # Errors
/// [`TlsError`].
pub fn server_config(
    clients: Arc<HostVerifier>,
    certificate: Arc<dyn ResolvesServerCert>,
) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    net::tls::server(|builder| Ok(builder.with_client_cert_verifier(clients).with_cert_resolver(certificate)))
        .map_err(TlsError::Version)
}
