//! Who a peer's certificate names: `urn:holdfast:host:<id>:<generation>` among its names.
//!
//! The certificate's signature was verified by the handshake.

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::domain::identity::Presented;

/// Reads the identity; none when the certificate names no host.
#[must_use]
pub fn presented(certificate: &CertificateDer<'_>) -> Option<Presented> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let names = certificate.subject_alternative_name().ok()??;
    names.value.general_names.iter().find_map(|name| match name {
        GeneralName::URI(uri) => parse(uri),
        _ => None,
    })
}

fn parse(uri: &str) -> Option<Presented> {
    let (host, generation) = uri.strip_prefix("urn:holdfast:host:")?.split_once(':')?;
    Some(Presented { host: host.parse().ok()?, generation: generation.parse().ok()? })
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
            format!("urn:holdfast:host:{id}:1:2"),
            format!("urn:holdfast:guest:{id}:1"),
            "urn:holdfast:host:box7:1".to_owned(),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }
}
