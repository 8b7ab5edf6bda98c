//! Certificates for hosts.
//!
//! The certificate holds the identity as `urn:holdfast:host:<id>:<generation>`, from the hub's record. Only the public
//! key comes from the applicant.

use holdfast_protocol::id::HostId;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType, SerialNumber,
};

use super::{AgentKey, Authority};

/// How long a host's certificate lives: a day by default, thirty at most. Below a day there would be no time for a
/// person to see that a renewal fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLife(SignedDuration);

impl HostLife {
    /// By hours; none outside of the bounds.
    #[must_use]
    pub const fn from_hours(hours: u16) -> Option<Self> {
        match hours {
            24..=720 => Some(Self(SignedDuration::from_hours(hours as i64))),
            _ => None,
        }
    }
}

impl Default for HostLife {
    fn default() -> Self {
        Self(SignedDuration::from_hours(24))
    }
}

/// Certificates begin this many seconds before they are made, for hosts whose clock is behind.
pub(super) const SKEW_S: i64 = 3600;

/// A certificate, made.
#[derive(Clone, Debug)]
pub struct Issued {
    pub pem: String,
    /// When it was made; its life counts from here.
    pub not_before: Timestamp,
    /// When it ends.
    pub not_after: Timestamp,
}

/// Why a certificate cannot be made. Our own fault.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The system has no randomness.
    #[error("the system gives no random bytes for a serial number")]
    Random(#[source] getrandom::Error),
    /// The library refused.
    #[error("the certificate cannot be made")]
    Make(#[source] rcgen::Error),
    /// The clock is beyond what a certificate can say.
    #[error("the hub's clock is beyond what a certificate can say: set the clock")]
    Time,
}

impl Authority {
    /// Issues the certificate of an approved host.
    ///
    /// # Errors
    /// [`IssueError`].
    pub fn issue_host(
        &self,
        host: HostId,
        generation: u32,
        key: &AgentKey,
        now: Timestamp,
        life: HostLife,
    ) -> Result<Issued, IssueError> {
        // X.509 counts seconds; so do we, that the answer and the certificate say the same.
        let not_before = Timestamp::from_second(now.as_second()).map_err(|_| IssueError::Time)?;
        let not_after = not_before.checked_add(life.0).map_err(|_| IssueError::Time)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, host.to_string());
        let urn = host_urn(host, generation).try_into().map_err(IssueError::Make)?;
        params.subject_alt_names = vec![SanType::URI(urn)];
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        set_life(&mut params, not_before.as_second() - SKEW_S, not_after.as_second());
        params.serial_number = Some(random_serial().map_err(IssueError::Random)?);
        params.use_authority_key_identifier_extension = true;
        let certificate =
            params.signed_by(key.spki(), &self.cas().issuing().issuer).map_err(IssueError::Make)?;
        Ok(Issued { pem: certificate.pem(), not_before, not_after })
    }
}

/// The identity as a certificate holds it.
fn host_urn(host: HostId, generation: u32) -> String {
    format!("urn:holdfast:host:{host}:{generation}")
}

/// Sets when a certificate begins and ends, in seconds since 1970, without a second time library of our own.
pub(super) fn set_life(params: &mut CertificateParams, from_s: i64, to_s: i64) {
    let time = |unix_s: i64| {
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(u64::try_from(unix_s).unwrap_or(0))
    };
    params.not_before = time(from_s);
    params.not_after = time(to_s);
}

/// A serial number that was never used before. The library's own would be the same for the same key.
pub(super) fn random_serial() -> Result<SerialNumber, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    // Positive, and not zero.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, IsCa, KeyPair, KeyUsagePurpose};
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    use x509_parser::prelude::{FromDer as _, X509Certificate};

    use super::*;
    use crate::authority::Fresh;

    #[test]
    fn of_the_applicant_there_is_the_public_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let authority = Authority::open_or_make(folder.path(), Fresh::Yes, now).unwrap();
        let mut greedy = CertificateParams::new(vec!["hub.example".to_owned()]).unwrap();
        greedy.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        greedy.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        greedy.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let csr = greedy.serialize_request(&key).unwrap().pem().unwrap();
        let host = HostId::new(uuid::Uuid::from_u128(7));
        let issued = authority
            .issue_host(host, 3, &AgentKey::from_csr(&csr).unwrap(), now, HostLife::default())
            .unwrap();
        let der = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        assert!(!certificate.is_ca());
        let usage = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth && !usage.any);
        let names = &certificate.subject_alternative_name().unwrap().unwrap().value.general_names;
        assert_eq!(format!("{names:?}"), format!("[URI({:?})]", host_urn(host, 3)));
        assert_eq!(certificate.validity().not_after.timestamp(), issued.not_after.as_second());
    }
}
