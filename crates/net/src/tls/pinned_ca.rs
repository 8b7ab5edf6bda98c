//! Trust in servers with a certificate of the pinned CA.
//!
//! This is how an agent with nothing but an invite, or an operator with nothing but a pin, meets the hub for the first
//! time: the CA itself comes over the wire and is known by its pin. Showing it is not enough (any server can); the
//! server's own certificate must be signed by it, be valid now, and carry the requested name.

use holdfast_protocol::pin::{Pin, PinSet};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use rustls::{Error, RootCertStore};

use super::refusal::Refusal;
use super::verifier::{ServerCertificates, TrustRule};

/// A server of this CA.
#[derive(Debug)]
pub(crate) struct PinnedCa(PinSet);

impl PinnedCa {
    pub(crate) fn new(ca: Pin) -> Self {
        Self(PinSet::from(ca))
    }

    fn find<'a>(&self, chain: &[CertificateDer<'a>]) -> Result<CertificateDer<'a>, Error> {
        for certificate in chain {
            let spki = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
            if self.0.accepts(certificate, &spki) {
                return Ok(certificate.clone());
            }
        }
        Err(Refusal::ca_not_shown(chain).into())
    }
}

impl TrustRule for PinnedCa {
    fn check(&self, shown: &ServerCertificates<'_, '_>) -> Result<(), Error> {
        let ServerCertificates { leaf, intermediates, name, now, algorithms } = shown;
        let mut roots = RootCertStore::empty();
        roots.add(self.find(intermediates)?.into_owned())?;
        let parsed = ParsedCertificate::try_from(*leaf)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, *now, algorithms.all)?;
        verify_server_name(&parsed, name)
    }
}
