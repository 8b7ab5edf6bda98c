//! The host identity in a client certificate.
//!
//! The certificate's signature was verified by the handshake. One with two such names is refused.

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::domain::identity::Presented;

/// Reads the identity; none when the certificate names no host. Our CA signs hosts' certificates itself and lets no
/// other CA sign. So a chain with a certificate in between is refused here: the verifier does not enforce a root's
/// limit on the path length.
#[must_use]
pub fn presented(chain: &[CertificateDer<'_>]) -> Option<Presented> {
    let [certificate] = chain else { return None };
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let names = certificate.subject_alternative_name().ok()??;
    let mut hosts = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => parse(uri),
        _ => None,
    });
    hosts.next().filter(|_| hosts.next().is_none())
}

fn parse(uri: &str) -> Option<Presented> {
    let (host, generation) = uri.strip_prefix("urn:holdfast:host:")?.split_once(':')?;
    let said: u32 = generation.parse().ok()?;
    // A number has one spelling: no sign, no zero before it.
    (said.to_string() == generation).then_some(Presented { host: host.parse().ok()?, generation: said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_name_is_an_identity() {
        let id = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55";
        let good = parse(&format!("urn:holdfast:host:{id}:3")).unwrap();
        assert_eq!((good.host.to_string().as_str(), good.generation), (id, 3));
        for bad in [
            format!("urn:holdfast:host:{id}"),
            format!("urn:holdfast:host:{id}:"),
            format!("urn:holdfast:host:{id}:-1"),
            format!("urn:holdfast:host:{id}:+1"),
            format!("urn:holdfast:host:{id}:01"),
            format!("urn:holdfast:host:{id}:1:2"),
            format!("urn:holdfast:guest:{id}:1"),
            "urn:holdfast:host:box7:1".to_owned(),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }
}
