//! A renewed identity is the old one with another certificate: pure.
//!
//! The hub states an agent's identity once, at enrollment. If it were believed again at each renewal, anyone who stole
//! the hub could turn this host into another one, for which operators signed other jobs. Or they could replace the
//! pinned CA, and the rightful hub would no longer be accepted. So another CA is added by the rules of
//! [`hub_ca`], and the old one stays beside it.

use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::id::HostId;
use jiff::Timestamp;

use crate::port::hub_ca::{self, HubCaError, NamedCas, TrustedCas};
use crate::port::identity::Identity;

/// Why a renewed certificate is not taken. The one in use stays.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenewalError {
    /// For another host.
    #[error("the hub renewed the certificate of host {theirs}, and this is {ours}: look who runs the hub")]
    Host { ours: HostId, theirs: HostId },
    /// Under a CA that does not follow from the trusted ones.
    #[error(transparent)]
    Authority(#[from] HubCaError),
    /// An older one.
    #[error(
        "the hub renewed the certificate as number {theirs}, and {ours} is in use: look who runs the hub"
    )]
    Older {
        /// The one in use.
        ours: u32,
        theirs: u32,
    },
}

/// Whether it is the same host with a newer certificate. The answer is which CAs of the hub are trusted from then on.
pub(super) fn judge(held: &Identity, renewed: &Enrolled, now: Timestamp) -> Result<TrustedCas, RenewalError> {
    let ours = &held.enrolled;
    if renewed.host_id != ours.host_id {
        return Err(RenewalError::Host { ours: ours.host_id, theirs: renewed.host_id });
    }
    if renewed.certificate_generation <= ours.certificate_generation {
        let (ours, theirs) = (ours.certificate_generation, renewed.certificate_generation);
        return Err(RenewalError::Older { ours, theirs });
    }
    let named = NamedCas { pem: &renewed.ca_pem, cross_pem: renewed.ca_cross_pem.as_deref() };
    Ok(hub_ca::next(&held.trusted_cas(), named, now)?)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;
    use crate::port::identity::IdentitySchema;

    fn ca() -> String {
        CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn held() -> Identity {
        Identity {
            schema: IdentitySchema::V1,
            hub: "https://hub".to_owned(),
            key_pem: holdfast_protocol::secret::Secret::new("key".to_owned()),
            enrolled: Enrolled {
                host_id: "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02".parse().unwrap(),
                host_name: "box1".parse().unwrap(),
                certificate_pem: "one".to_owned(),
                ca_pem: ca(),
                ca_cross_pem: None,
                certificate_generation: 3,
                not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
                not_after: "2026-12-01T00:00:00Z".parse().unwrap(),
            },
            learned_cas: Vec::new(),
        }
    }

    #[test]
    fn only_the_certificate_may_be_another() {
        let (held, now) = (held(), "2026-11-20T00:00:00Z".parse().unwrap());
        let next = Enrolled {
            certificate_pem: "two".to_owned(),
            certificate_generation: 4,
            ..held.enrolled.clone()
        };
        assert_eq!(judge(&held, &next, now).unwrap(), held.trusted_cas());
        let other = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03".parse().unwrap();
        let host = judge(&held, &Enrolled { host_id: other, ..next.clone() }, now);
        assert!(matches!(host, Err(RenewalError::Host { .. })), "{host:?}");
        for ca_pem in ["-----BEGIN".to_owned(), ca(), held.enrolled.ca_pem.clone() + &ca()] {
            let refused = judge(&held, &Enrolled { ca_pem, ..next.clone() }, now);
            assert!(matches!(refused, Err(RenewalError::Authority(_))), "{refused:?}");
        }
        let again = judge(&held, &Enrolled { certificate_generation: 3, ..next }, now);
        assert!(matches!(again, Err(RenewalError::Older { .. })), "{again:?}");
    }
}
