//! Trusts a server that shows the pinned CA in its chain and a certificate of its own made by that CA.
//!
//! This is how an agent with nothing but an invite, or an operator with nothing but a pin, meets the hub for the first
//! time: the CA itself comes over the wire and is known by its pin. Showing it is not enough (anybody can); the server's
//! own certificate must be signed by it, be valid now, and carry the name that was asked for.

use holdfast_protocol::pin::{Pin, PinSet};
use rustls::RootCertStore;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct PinnedCaVerifier {
    ca: PinSet,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedCaVerifier {
    pub(crate) fn new(ca: Pin, algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { ca: PinSet::from(ca), algorithms }
    }

    fn find_ca<'a>(&self, chain: &[CertificateDer<'a>]) -> Result<CertificateDer<'a>, Error> {
        for certificate in chain {
            let spki = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
            if self.ca.accepts(certificate, &spki) {
                return Ok(certificate.clone());
            }
        }
        Err(Refusal::ca_not_shown(chain).into())
    }
}

impl ServerCertVerifier for PinnedCaVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(self.find_ca(intermediates)?.into_owned())?;
        let parsed = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, now, self.algorithms.all)?;
        verify_server_name(&parsed, name)?;
        Ok(ServerCertVerified::assertion())
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
