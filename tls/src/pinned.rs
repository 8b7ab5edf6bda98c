//! Trusts a server whose certificate or public key is pinned, and nobody else.
//!
//! Possession of the key is still proved: the signature of the handshake is checked by the provider. Name, issuer and
//! validity are not looked at, since these certificates are self-signed and made once.

use holdfast_protocol::pin::PinSet;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct PinnedVerifier {
    pins: PinSet,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedVerifier {
    pub(crate) const fn new(pins: PinSet, algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { pins, algorithms }
    }
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let spki = ParsedCertificate::try_from(leaf)?.subject_public_key_info();
        if self.pins.accepts(leaf, &spki) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Refusal::not_pinned(leaf, &spki).into())
        }
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
