//! Settings of certificates: life of hosts', files for the listener.

use std::path::PathBuf;

use crate::authority::{CertificateFiles, HostLife};

/// Certificates of hosts and of the listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSettings {
    /// How long a host's certificate lives.
    pub host_life: HostLife,
    /// A certificate of another CA, for who does not pin the hub's.
    pub files: Option<CertificateFiles>,
}

/// Why the settings of certificates are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateSettingsError {
    #[error("host_certificate_hours is {hours}: set 24 to 720 hours")]
    Hours { hours: u16 },
    #[error("tls_certificate_file and tls_key_file belong together: set both, or neither")]
    Half,
}

impl CertificateSettings {
    pub(super) fn checked(
        hours: Option<u16>,
        files: (Option<PathBuf>, Option<PathBuf>),
    ) -> Result<Self, CertificateSettingsError> {
        let host_life = match hours {
            None => HostLife::default(),
            Some(hours) => HostLife::from_hours(hours).ok_or(CertificateSettingsError::Hours { hours })?,
        };
        let files = match files {
            (Some(certificate), Some(key)) => Some(CertificateFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(CertificateSettingsError::Half),
        };
        Ok(Self { host_life, files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_bounded_and_files_come_in_pairs() {
        let hours = |hours| CertificateSettings::checked(Some(hours), (None, None));
        assert_eq!(CertificateSettings::checked(None, (None, None)).unwrap(), hours(24).unwrap());
        assert!(hours(720).is_ok());
        for bad in [0, 23, 721] {
            assert_eq!(hours(bad), Err(CertificateSettingsError::Hours { hours: bad }));
        }
        let half = CertificateSettings::checked(None, (Some("a".into()), None));
        assert_eq!(half, Err(CertificateSettingsError::Half));
        let both = CertificateSettings::checked(None, (Some("a".into()), Some("b".into()))).unwrap();
        assert!(both.files.is_some());
    }
}
