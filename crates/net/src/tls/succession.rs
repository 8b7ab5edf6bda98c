//! The proof that an older CA signed its successor.
//!
//! In: the older CA's certificate, the newer one's, and a cross certificate: the newer CA's key, signed by the older CA.
//! Out: that the three fit, or why not. Deliberately absent: validity and names. The proof says that the older CA's holder
//! wanted this key to follow, and nothing else.

use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

use super::client::provider;

/// Why a cross certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuccessionError {
    /// One of the three is no certificate.
    #[error("one of the certificates cannot be read")]
    Unreadable,
    /// It is about another key.
    #[error("the signed key is not the key of the new CA")]
    OtherKey,
    /// The signature is of a kind that this program does not check, or is wrong.
    #[error("it is not signed by the old CA")]
    Signature,
}

/// Checks that `older` signed the key of `newer`, by this cross certificate.
///
/// # Errors
/// [`SuccessionError`].
pub fn succeeds(
    older: &CertificateDer<'_>,
    newer: &CertificateDer<'_>,
    cross: &CertificateDer<'_>,
) -> Result<(), SuccessionError> {
    let spki = |certificate| {
        let parsed = ParsedCertificate::try_from(certificate).map_err(|_| SuccessionError::Unreadable)?;
        Ok(parsed.subject_public_key_info())
    };
    if spki(newer)? != spki(cross)? {
        return Err(SuccessionError::OtherKey);
    }
    let signed = Signed::read(cross).ok_or(SuccessionError::Unreadable)?;
    let issuer = spki(older)?;
    let (key_kind, key) = read_key(&issuer).ok_or(SuccessionError::Unreadable)?;
    let fitting = provider().signature_verification_algorithms.all.iter().filter(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key_kind
            && algorithm.signature_alg_id().as_ref() == signed.kind
    });
    let mut verdicts =
        fitting.map(|algorithm| algorithm.verify_signature(key, signed.body, signed.signature));
    if verdicts.any(|verdict| verdict.is_ok()) { Ok(()) } else { Err(SuccessionError::Signature) }
}

/// The three parts of a certificate.
struct Signed<'a> {
    /// What is signed, with its header.
    body: &'a [u8],
    /// The content of the signature's algorithm.
    kind: &'a [u8],
    signature: &'a [u8],
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

impl<'a> Signed<'a> {
    fn read(certificate: &'a [u8]) -> Option<Self> {
        let (outer, after) = Element::read(certificate, SEQUENCE)?;
        let (body, rest) = Element::read(outer.content, SEQUENCE)?;
        let (kind, rest) = Element::read(rest, SEQUENCE)?;
        let (signature, end) = Element::read(rest, BIT_STRING)?;
        let signature = signature.content.strip_prefix(&[0])?;
        (after.is_empty() && end.is_empty()).then_some(Self {
            body: body.whole,
            kind: kind.content,
            signature,
        })
    }
}

/// The kind and the bits of a public key.
fn read_key(spki: &[u8]) -> Option<(&[u8], &[u8])> {
    let (outer, _) = Element::read(spki, SEQUENCE)?;
    let (kind, rest) = Element::read(outer.content, SEQUENCE)?;
    let (bits, _) = Element::read(rest, BIT_STRING)?;
    Some((kind.content, bits.content.strip_prefix(&[0])?))
}

/// One element of DER.
struct Element<'a> {
    whole: &'a [u8],
    content: &'a [u8],
}

impl<'a> Element<'a> {
    /// The first element, which must be of this tag, and what follows it. A certificate is far below 64 KiB.
    fn read(bytes: &'a [u8], tag: u8) -> Option<(Self, &'a [u8])> {
        const LONG_BY_ONE: u8 = 0x81;
        const LONG_BY_TWO: u8 = 0x82;
        let (header, length) = match bytes {
            [first, short @ ..=0x7f, ..] if *first == tag => (2, usize::from(*short)),
            [first, LONG_BY_ONE, one, ..] if *first == tag => (3, usize::from(*one)),
            [first, LONG_BY_TWO, high, low, ..] if *first == tag => {
                (4, usize::from(u16::from_be_bytes([*high, *low])))
            }
            _ => return None,
        };
        let (whole, rest) = bytes.split_at_checked(header + length)?;
        Some((Self { whole, content: whole.get(header..)? }, rest))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair};

    use super::*;

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params
    }

    fn ca(name: &str) -> CertifiedIssuer<'static, KeyPair> {
        CertifiedIssuer::self_signed(params(name), KeyPair::generate().unwrap()).unwrap()
    }

    /// The key of one CA, signed by another.
    fn cross(by: &CertifiedIssuer<'static, KeyPair>, of: &KeyPair) -> CertificateDer<'static> {
        let issuer: &Issuer<'_, KeyPair> = by;
        params("next").signed_by(of, issuer).unwrap().der().clone()
    }

    #[test]
    fn only_a_key_that_the_old_ca_signed_follows_it() {
        let (old, other) = (ca("old"), ca("other"));
        let key = KeyPair::generate().unwrap();
        let new = params("next").self_signed(&key).unwrap().der().clone();
        let proof = cross(&old, &key);
        assert_eq!(succeeds(old.der(), &new, &proof), Ok(()));
        assert_eq!(succeeds(other.der(), &new, &proof), Err(SuccessionError::Signature));
        assert_eq!(succeeds(old.der(), other.der(), &proof), Err(SuccessionError::OtherKey));
        // What another CA signed, and what the new one signed itself.
        assert_eq!(succeeds(old.der(), &new, &cross(&other, &key)), Err(SuccessionError::Signature));
        assert_eq!(succeeds(old.der(), &new, &new), Err(SuccessionError::Signature));
    }

    #[test]
    fn no_changed_byte_is_a_proof() {
        let old = ca("old");
        let key = KeyPair::generate().unwrap();
        let new = params("next").self_signed(&key).unwrap().der().clone();
        let proof = cross(&old, &key);
        for place in 0..proof.len() {
            let mut bytes = proof.to_vec();
            bytes[place] ^= 1;
            assert!(succeeds(old.der(), &new, &bytes.into()).is_err(), "byte {place}");
        }
        for cut in 0..proof.len() {
            assert!(succeeds(old.der(), &new, &proof[..cut].to_vec().into()).is_err(), "cut at {cut}");
        }
    }
}
