//! Certificate requests: the public key and the proof of its possession.
//!
//! The names, usages and CA flag that an applicant requests are ignored; only a repeated one is refused.

use std::collections::BTreeSet;

use holdfast_protocol::enrol::CSR_BYTES_MAX;
use holdfast_protocol::pin::{Pin, PinKind};
use rcgen::SubjectPublicKeyInfo;
use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::{ParsedCriAttribute, X509CriAttribute};
use x509_parser::prelude::FromDer as _;

/// Why a CSR is refused.
#[derive(Debug, thiserror::Error)]
pub enum CsrError {
    /// Longer than any honest one.
    #[error("the CSR is {len} bytes long; at most {CSR_BYTES_MAX} are accepted")]
    TooLarge { len: usize },
    /// Not PEM, or not a CSR.
    #[error("the CSR cannot be read: send one PEM block of the kind CERTIFICATE REQUEST")]
    Unreadable,
    /// Something follows the CSR.
    #[error("the CSR has bytes after its end")]
    Trailing,
    /// A kind of key that is not taken.
    #[error("the CSR's key is of a kind that is not taken: make an Ed25519, P-256 or P-384 key")]
    Kind,
    /// It requests the same thing twice.
    #[error("the CSR asks for the same thing twice: make it anew with each attribute and extension once")]
    Twice,
    /// The signature is not by the CSR's own key.
    #[error(
        "the CSR is not signed by its own key: the applicant must hold the key it asks a certificate for"
    )]
    Signature,
}

/// A public key whose holder proved to hold it.
#[derive(Clone)]
pub struct AgentKey {
    spki: SubjectPublicKeyInfo,
    der: Vec<u8>,
}

impl AgentKey {
    /// Takes the key out of a CSR.
    ///
    /// # Errors
    /// [`CsrError`].
    pub fn from_csr(pem: &str) -> Result<Self, CsrError> {
        if pem.len() > CSR_BYTES_MAX {
            return Err(CsrError::TooLarge { len: pem.len() });
        }
        if !is_one_block(pem) {
            return Err(CsrError::Unreadable);
        }
        let der =
            CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).map_err(|_| CsrError::Unreadable)?;
        let (rest, csr) = X509CertificationRequest::from_der(&der).map_err(|_| CsrError::Unreadable)?;
        if !rest.is_empty() {
            return Err(CsrError::Trailing);
        }
        let spki = csr.certification_request_info.subject_pki.raw.to_vec();
        // Before the signature: a kind that is not taken should not cost a verification.
        let key = Self::from_spki(spki)?;
        if asks_twice(&csr) {
            return Err(CsrError::Twice);
        }
        let info = csr.certification_request_info.raw;
        if !names_an_algorithm(&der, info) || !ends_in_bit_string(&der, &csr.signature_value.data) {
            return Err(CsrError::Unreadable);
        }
        csr.verify_signature().map_err(|_| CsrError::Signature)?;
        Ok(key)
    }

    /// Takes back a key that was taken out of a CSR before.
    ///
    /// # Errors
    /// [`CsrError::Kind`] when it is not a key of a kind that is taken.
    pub fn from_spki(der: Vec<u8>) -> Result<Self, CsrError> {
        use rcgen::PublicKeyData as _;
        let spki = SubjectPublicKeyInfo::from_der(&der).map_err(|_| CsrError::Kind)?;
        let taken = [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384];
        if taken.contains(&spki.algorithm()) { Ok(Self { spki, der }) } else { Err(CsrError::Kind) }
    }

    pub(super) const fn spki(&self) -> &SubjectPublicKeyInfo {
        &self.spki
    }

    /// The key, DER of its SubjectPublicKeyInfo.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// SHA-256 of the key, by which a returning applicant is known.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.der).into()
    }

    /// What the operator and the person at the host compare by eye.
    #[must_use]
    pub fn fingerprint(&self) -> Pin {
        Pin::of(PinKind::Spki, &self.der)
    }
}

/// Whether an attribute, or an extension in one, occurs twice. The requested values are never granted, but readers
/// disagree on which of the two counts. So the text is not accepted as a CSR.
fn asks_twice(csr: &X509CertificationRequest<'_>) -> bool {
    let info = &csr.certification_request_info;
    let extensions = |attribute: &X509CriAttribute<'_>| match attribute.parsed_attribute() {
        ParsedCriAttribute::ExtensionRequest(asked) => {
            let different: BTreeSet<&[u8]> = asked.extensions.iter().map(|one| one.oid.as_bytes()).collect();
            different.len() < asked.extensions.len()
        }
        _ => false,
    };
    info.attributes_map().is_err() || info.iter_attributes().any(extensions)
}

/// Whether the signed part and its algorithm are in their one DER form, and the algorithm is one of the accepted ones.
/// The parser also accepts other tags with the same number.
fn names_an_algorithm(der: &[u8], info: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    /// ECDSA with SHA-256, ECDSA with SHA-384, Ed25519: each a sequence of its object identifier alone.
    const TAKEN: [&[u8]; 3] = [
        &[SEQUENCE, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
        &[SEQUENCE, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
        &[SEQUENCE, 5, 6, 3, 0x2b, 0x65, 0x70],
    ];
    const LONG_LENGTH: u8 = 0x80;
    let Some([SEQUENCE, length]) = der.first_chunk() else { return false };
    let header = 2 + if *length < LONG_LENGTH { 0 } else { usize::from(*length & !LONG_LENGTH) };
    let Some(rest) = der.get(header..).and_then(|whole| whole.strip_prefix(info)) else { return false };
    info.first() == Some(&SEQUENCE) && TAKEN.iter().any(|taken| rest.starts_with(taken))
}

/// Whether the last part is a signature in DER's one form for it: the parser takes other tags with the same number, too.
/// No signature of a kind that is taken is longer than one byte of length can say.
fn ends_in_bit_string(der: &[u8], signature: &[u8]) -> bool {
    const BIT_STRING: u8 = 0x03;
    const SHORT_LENGTH_MAX: u8 = 0x7f;
    let Ok(length) = u8::try_from(signature.len() + 1) else { return false };
    let part = [&[BIT_STRING, length, 0], signature].concat();
    length <= SHORT_LENGTH_MAX && der.ends_with(&part)
}

/// Whether a text is one PEM block of a CSR and nothing else. The reader would take the first of several blocks and
/// ignore the text around it.
fn is_one_block(pem: &str) -> bool {
    let text = pem.trim();
    text.starts_with("-----BEGIN CERTIFICATE REQUEST-----")
        && text.ends_with("-----END CERTIFICATE REQUEST-----")
        && text.matches("-----BEGIN").count() == 1
        && text.matches("-----END").count() == 1
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn csr(key: &KeyPair) -> String {
        CertificateParams::default().serialize_request(key).unwrap().pem().unwrap()
    }

    #[test]
    fn keys_of_the_three_kinds_are_taken_and_known_again() {
        for kind in [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384] {
            let key = KeyPair::generate_for(kind).unwrap();
            let taken = AgentKey::from_csr(&csr(&key)).unwrap();
            assert_eq!(taken.hash(), AgentKey::from_csr(&csr(&key)).unwrap().hash());
            assert_eq!(taken.der(), AgentKey::from_spki(taken.der().to_vec()).unwrap().der());
        }
    }

    #[test]
    fn a_csr_that_is_not_signed_by_its_own_key_is_refused() {
        use rustls::pki_types::pem::PemObject as _;
        let pem = csr(&KeyPair::generate().unwrap());
        let mut der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
        // The last byte belongs to the signature.
        *der.last_mut().unwrap() ^= 1;
        let forged = pem_block(&der);
        assert!(matches!(AgentKey::from_csr(&forged), Err(CsrError::Signature)));
        der.push(0);
        assert!(matches!(AgentKey::from_csr(&pem_block(&der)), Err(CsrError::Trailing)));
    }

    #[test]
    fn what_is_no_csr_is_refused() {
        let certificate = CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap();
        for bad in ["", "hello", &certificate.pem(), &pem_block(b"hello")] {
            assert!(matches!(AgentKey::from_csr(bad), Err(CsrError::Unreadable)), "{bad}");
        }
        let long = " ".repeat(CSR_BYTES_MAX + 1);
        assert!(matches!(AgentKey::from_csr(&long), Err(CsrError::TooLarge { .. })));
    }

    #[test]
    fn an_rsa_key_of_1024_bits_is_refused() {
        let error = AgentKey::from_csr(include_str!("../../tests/csr/rsa-1024.csr.pem")).err().unwrap();
        assert!(matches!(error, CsrError::Kind), "{error}");
    }

    fn pem_block(der: &[u8]) -> String {
        use base64::Engine as _;
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<&str> =
            body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let kind = "CERTIFICATE REQUEST";
        format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
    }
}
