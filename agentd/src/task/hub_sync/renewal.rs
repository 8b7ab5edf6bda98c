//! A renewed identity is the old one with another certificate: pure.
//!
//! The hub states an agent's identity once, at enrollment. If it were believed again at each renewal, anyone who stole
//! the hub could turn this host into another one, for which operators signed other jobs. Or they could replace the
//! pinned CA, and the rightful hub would no longer be accepted.

use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::id::HostId;

/// Why a renewed certificate is not taken. The one in use stays.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenewalError {
    /// For another host.
    #[error("the hub renewed the certificate of host {theirs}, and this is {ours}: look who runs the hub")]
    Host { ours: HostId, theirs: HostId },
    /// Under another CA.
    #[error(
        "the hub renewed the certificate under another CA than the one this host was enrolled with: look who runs the \
         hub; a new CA is taken by enrolling again"
    )]
    Authority,
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

/// Whether it is the same host under the same CA, with a newer certificate.
pub(super) fn judge(held: &Enrolled, renewed: &Enrolled) -> Result<(), RenewalError> {
    if renewed.host_id != held.host_id {
        return Err(RenewalError::Host { ours: held.host_id, theirs: renewed.host_id });
    }
    if renewed.ca_pem != held.ca_pem {
        return Err(RenewalError::Authority);
    }
    if renewed.certificate_generation <= held.certificate_generation {
        let (ours, theirs) = (held.certificate_generation, renewed.certificate_generation);
        return Err(RenewalError::Older { ours, theirs });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enrolled() -> Enrolled {
        Enrolled {
            host_id: "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02".parse().unwrap(),
            host_name: "box1".parse().unwrap(),
            certificate_pem: "one".to_owned(),
            ca_pem: "the CA".to_owned(),
            certificate_generation: 3,
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2026-12-01T00:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn only_the_certificate_may_be_another() {
        let held = enrolled();
        let next = Enrolled { certificate_pem: "two".to_owned(), certificate_generation: 4, ..enrolled() };
        assert!(judge(&held, &next).is_ok());
        let other = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03".parse().unwrap();
        let host = judge(&held, &Enrolled { host_id: other, ..next.clone() });
        assert!(matches!(host, Err(RenewalError::Host { .. })), "{host:?}");
        let ca = judge(&held, &Enrolled { ca_pem: "another".to_owned(), ..next.clone() });
        assert!(matches!(ca, Err(RenewalError::Authority)), "{ca:?}");
        let again = judge(&held, &Enrolled { certificate_generation: 3, ..next });
        assert!(matches!(again, Err(RenewalError::Older { .. })), "{again:?}");
    }
}
