//! The certificate that guests pin: self-signed, made once, kept for ever.
//!
//! Input: the state folder. Output: a server configuration and the pin that goes into every bootstrap token. Key and
//! certificate are one file, written whole, so the two always fit. Deliberately absent: renewal. A guest trusts exactly
//! this certificate; names and validity are not checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_protocol::pin::{Pin, PinKind};
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::atomic_file::{self, FileError, Readers};

/// Certificate and key are under 2 KiB.
const PEM_BYTES_MAX: u64 = 16 * 1024;

/// Why there is no certificate for guests.
#[derive(Debug, thiserror::Error)]
pub enum LeafError {
    #[error(transparent)]
    File(#[from] FileError),
    /// The file was damaged.
    #[error(
        "{} is damaged: restore it from the box's backup; a new one would lock out every guest that pinned the old",
        path.display()
    )]
    Damaged {
        path: PathBuf,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// No certificate could be made.
    #[error(
        "no certificate for guests could be made: this is a fault of this program or of the box's randomness"
    )]
    Make(#[source] rcgen::Error),
    /// Key and certificate do not fit, or TLS 1.3 is missing.
    #[error("the certificate for guests cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// The certificate and its key.
pub struct LocalLeaf {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl LocalLeaf {
    /// Reads the certificate, or makes it when there is none yet.
    ///
    /// # Errors
    /// [`LeafError`]. A damaged file is never taken for none.
    pub fn open(state: &Path) -> Result<Self, LeafError> {
        let path = state.join("local-api.pem");
        let pem = match atomic_file::read(&path, PEM_BYTES_MAX)? {
            Some(pem) => pem,
            None => {
                let pem = make()?;
                atomic_file::write(&path, &pem, Readers::Owner)?;
                pem
            }
        };
        let damaged = |source| LeafError::Damaged { path: path.clone(), source };
        Ok(Self {
            certificate: CertificateDer::from_pem_slice(&pem).map_err(damaged)?,
            key: PrivateKeyDer::from_pem_slice(&pem).map_err(damaged)?,
        })
    }

    /// The pin that guests use.
    #[must_use]
    pub fn pin(&self) -> Pin {
        Pin::of(PinKind::Leaf, &self.certificate)
    }

    /// A server that shows it: TLS 1.3 alone, no client certificates, no session tickets.
    ///
    /// # Errors
    /// [`LeafError::Unusable`].
    pub fn server(&self) -> Result<Arc<ServerConfig>, LeafError> {
        net::tls::server(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
        })
        .map_err(LeafError::Unusable)
    }
}

fn make() -> Result<Zeroizing<Vec<u8>>, LeafError> {
    let key = KeyPair::generate().map_err(LeafError::Make)?;
    let mut params = CertificateParams::new(vec!["holdfast-agent".to_owned()]).map_err(LeafError::Make)?;
    params.distinguished_name.push(DnType::CommonName, "Holdfast local API");
    let certificate = params.self_signed(&key).map_err(LeafError::Make)?;
    let mut pem = Zeroizing::new(certificate.pem().into_bytes());
    pem.extend_from_slice(Zeroizing::new(key.serialize_pem()).as_bytes());
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_is_the_same_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let first = LocalLeaf::open(dir.path()).unwrap();
        first.server().unwrap();
        let again = LocalLeaf::open(dir.path()).unwrap();
        assert_eq!(first.pin(), again.pin());
        let other = tempfile::tempdir().unwrap();
        assert_ne!(first.pin(), LocalLeaf::open(other.path()).unwrap().pin());
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("local-api.pem"), b"").unwrap();
        assert!(matches!(LocalLeaf::open(dir.path()), Err(LeafError::Damaged { .. })));
        assert_eq!(std::fs::read(dir.path().join("local-api.pem")).unwrap(), b"");
    }
}
