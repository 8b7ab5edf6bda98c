//! The certificate of an instance and its pins.
//!
//! In: the state folder. Out: a rustls configuration (TLS 1.3 only) and the SHA-256 of the leaf and of its public key. The certificate is
//! made once and kept, so that pins survive a restart.
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

use crate::access::credential::hex;
use crate::state::Paths;

/// A certificate in use.
#[derive(Debug, Clone)]
pub struct Identity {
    /// For the listener.
    pub config: Arc<rustls::ServerConfig>,
    /// SHA-256 of the leaf certificate, as Proxmox shows it: `AA:BB:…`.
    pub fingerprint: String,
    /// SHA-256 of the leaf certificate, in hexadecimal.
    pub leaf_sha256: String,
    /// SHA-256 of the subject public key info, in hexadecimal.
    pub spki_sha256: String,
    /// The certificate as PEM.
    pub pem: String,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It cannot be read or written.
    #[error("the certificate in the state folder cannot be read or written")]
    File(#[source] std::io::Error),
    /// It cannot be made.
    #[error("no certificate could be made")]
    Make(#[source] rcgen::Error),
    /// It does not parse.
    #[error(
        "the certificate in the state folder is broken; remove cert.pem and key.pem to have a new one made"
    )]
    Parse(#[source] rustls::pki_types::pem::Error),
    /// TLS does not take it.
    #[error("TLS refuses the certificate in the state folder")]
    Refused(#[source] rustls::Error),
    /// The key does not parse.
    #[error("the key in the state folder is broken; remove cert.pem and key.pem to have new ones made")]
    Key(#[source] rcgen::Error),
}

impl Identity {
    /// Reads or makes the certificate.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn open(paths: &Paths) -> Result<Self, IdentityError> {
        let (cert_path, key_path) = (paths.etc("cert.pem"), paths.etc("key.pem"));
        if !cert_path.exists() || !key_path.exists() {
            let names = ["pve1", "localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
            let made = rcgen::generate_simple_self_signed(names).map_err(IdentityError::Make)?;
            std::fs::write(&cert_path, made.cert.pem()).map_err(IdentityError::File)?;
            std::fs::write(&key_path, made.signing_key.serialize_pem()).map_err(IdentityError::File)?;
        }
        let pem = std::fs::read_to_string(&cert_path).map_err(IdentityError::File)?;
        let key_pem = std::fs::read_to_string(&key_path).map_err(IdentityError::File)?;
        let leaf = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(IdentityError::Parse)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(IdentityError::Parse)?;
        let pair = rcgen::KeyPair::from_pem(&key_pem).map_err(IdentityError::Key)?;
        let spki_sha256 = hex(&Sha256::digest(rcgen::PublicKeyData::subject_public_key_info(&pair)));
        let leaf_sha256 = hex(&Sha256::digest(&leaf));
        let builder =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(IdentityError::Refused)?;
        let config = builder
            .with_no_client_auth()
            .with_single_cert(vec![leaf], key)
            .map_err(IdentityError::Refused)?;
        Ok(Self {
            config: Arc::new(config),
            fingerprint: colons(&leaf_sha256),
            leaf_sha256,
            spki_sha256,
            pem,
        })
    }
}

fn colons(hexadecimal: &str) -> String {
    let upper = hexadecimal.to_ascii_uppercase();
    upper
        .as_bytes()
        .chunks(2)
        .map(|pair| String::from_utf8_lossy(pair).into_owned())
        .collect::<Vec<_>>()
        .join(":")
}
