//! Server verifier with a trust rule of ours.
//!
//! Input: a [`TrustRule`], which judges the certificates. Output: the verifier that rustls calls. Under every rule,
//! possession of the key is proved: the provider checks the handshake's signature here, and no rule can skip that.

use std::fmt::Debug;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// The certificates that a server shows, and the requested name.
pub(crate) struct ServerCertificates<'a, 'c> {
    pub leaf: &'a CertificateDer<'c>,
    pub intermediates: &'a [CertificateDer<'c>],
    pub name: &'a ServerName<'a>,
    pub now: UnixTime,
    pub algorithms: &'a WebPkiSupportedAlgorithms,
}

/// Whom to trust.
pub(crate) trait TrustRule: Debug + Send + Sync {
    /// Refuses a server that is not to be trusted.
    fn check(&self, shown: &ServerCertificates<'_, '_>) -> Result<(), Error>;
}

#[derive(Debug)]
pub(crate) struct Verifier<L> {
    rule: L,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<L: TrustRule> Verifier<L> {
    pub(crate) const fn new(rule: L, algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { rule, algorithms }
    }
}

impl<L: TrustRule> ServerCertVerifier for Verifier<L> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = ServerCertificates { leaf, intermediates, name, now, algorithms: &self.algorithms };
        self.rule.check(&shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
