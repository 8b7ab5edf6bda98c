//! Trust in pinned certificates or public keys.
//!
//! Name, issuer and validity are not checked, since these certificates are self-signed and made once.

use holdfast_protocol::pin::PinSet;
use rustls::Error;
use rustls::server::ParsedCertificate;

use super::refusal::Refusal;
use super::verifier::{ServerCertificates, TrustRule};

/// One of these certificates or keys.
#[derive(Debug)]
pub(crate) struct Pinned(pub PinSet);

impl TrustRule for Pinned {
    fn check(&self, shown: &ServerCertificates<'_, '_>) -> Result<(), Error> {
        let spki = ParsedCertificate::try_from(shown.leaf)?.subject_public_key_info();
        if self.0.accepts(shown.leaf, &spki) {
            Ok(())
        } else {
            Err(Refusal::not_pinned(shown.leaf, &spki).into())
        }
    }
}
