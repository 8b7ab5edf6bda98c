//! A certificate of another CA for the listener, from files.
//!
//! In: paths that an ACME client writes. Out: the certificate for connections that do not pin the hub's CA; read again when
//! a file changed. Files that do not fit are refused, and the certificate read before stays. Deliberately absent: ACME.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// A chain is a few certificates; a key is smaller.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those between it and its CA, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

/// Why the files are not used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFilesError {
    #[error("{path} cannot be read: the hub's user must be able to")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "{path} is longer than {FILE_BYTES_MAX} bytes: name the PEM file of the certificate or of its key"
    )]
    Size { path: PathBuf },
    #[error("{path} is not PEM, or holds no certificate or key: name the file that the ACME client wrote")]
    Pem { path: PathBuf },
    /// Certificate and key do not fit.
    #[error(
        "the key in {key} is not that of the certificate in {certificate}, or is of a kind that TLS does not use"
    )]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
}

/// Whether the files were read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesReload {
    Unchanged,
    Taken,
}

/// Size and time of both files, by which a change is seen.
type Stamp = [Option<(u64, SystemTime)>; 2];

#[derive(Debug)]
pub(super) struct PublicCertificate {
    files: CertificateFiles,
    read: RwLock<(Arc<CertifiedKey>, Stamp)>,
}

impl PublicCertificate {
    pub(super) fn read(
        files: CertificateFiles,
        provider: &CryptoProvider,
    ) -> Result<Self, CertificateFilesError> {
        let stamp = stamp(&files);
        let key = Arc::new(read(&files, provider)?);
        Ok(Self { files, read: RwLock::new((key, stamp)) })
    }

    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.read.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// An ACME client writes one file after the other: a pair that does not fit yet is read again at the next look.
    pub(super) fn reload(&self, provider: &CryptoProvider) -> Result<FilesReload, CertificateFilesError> {
        let stamp = stamp(&self.files);
        if stamp == self.read.read().unwrap_or_else(PoisonError::into_inner).1 {
            return Ok(FilesReload::Unchanged);
        }
        let key = Arc::new(read(&self.files, provider)?);
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = (key, stamp);
        Ok(FilesReload::Taken)
    }
}

/// Links are followed: certbot's names are links to the newest version.
fn stamp(files: &CertificateFiles) -> Stamp {
    [&files.certificate, &files.key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    })
}

fn read(files: &CertificateFiles, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateFilesError> {
    let (certificate, key) = (&files.certificate, &files.key);
    let pem = |path: &Path| CertificateFilesError::Pem { path: path.to_owned() };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(certificate)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| pem(certificate))?;
    let private = PrivateKeyDer::from_pem_slice(&text(key)?).map_err(|_| pem(key))?;
    CertifiedKey::from_der(chain, private, provider).map_err(|source| CertificateFilesError::Pair {
        certificate: certificate.clone(),
        key: key.clone(),
        source,
    })
}

fn text(path: &Path) -> Result<zeroize::Zeroizing<Vec<u8>>, CertificateFilesError> {
    let failed = |source| CertificateFilesError::Read { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(CertificateFilesError::Size { path: path.to_owned() });
    }
    std::fs::read(path).map(zeroize::Zeroizing::new).map_err(failed)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::default().self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn a_pair_that_fits_replaces_the_one_before_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            CertificateFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
        let provider = net::tls::provider();
        let write = |(certificate, key): &(String, String)| {
            std::fs::write(&files.certificate, certificate).unwrap();
            std::fs::write(&files.key, key).unwrap();
        };
        assert!(PublicCertificate::read(files.clone(), &provider).is_err());
        let (first, second) = (pair(), pair());
        write(&first);
        let read = PublicCertificate::read(files.clone(), &provider).unwrap();
        let before = read.key().cert.clone();
        assert_eq!(read.reload(&provider).unwrap(), FilesReload::Unchanged);
        // One of the two files, as between two writes of the client.
        write(&(format!("{}\n", second.0), first.1));
        assert!(matches!(read.reload(&provider), Err(CertificateFilesError::Pair { .. })));
        assert_eq!(read.key().cert, before);
        write(&second);
        assert_eq!(read.reload(&provider).unwrap(), FilesReload::Taken);
        assert_ne!(read.key().cert, before);
        std::fs::write(&files.certificate, "torn").unwrap();
        assert!(matches!(read.reload(&provider), Err(CertificateFilesError::Pem { .. })));
    }
}
