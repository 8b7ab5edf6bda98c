//! The agent's key, certificate and hub CA.
//!
//! ```text
//! <state>/identity/identity.json      key and certificate together, replaced whole, so the two always fit
//! <state>/identity/enrol.key.pem      made and synced before an invite is shown to the hub; gone once enrolled
//! <state>/identity/renewal.key.pem    the same for the next certificate
//! ```
//! A request whose answer is lost is repeated with the same key, by which the hub knows it. The old identity is used
//! until the new one is on the disk. Deliberately absent: the network.

use std::path::{Path, PathBuf};

use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::secret::Secret;
use rcgen::{CertificateParams, KeyPair, PublicKeyData};
use restore_certificate::SigningKey;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::atomic_file::{self, FileError, Readers};
use super::hub_ca::{LearnedCa, TrustedCas};

/// Key, certificate and CA are under 4 KiB together.
const IDENTITY_BYTES_MAX: u64 = 64 * 1024;

const IDENTITY_FILE: &str = "identity.json";

/// Why there is no usable identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(transparent)]
    File(#[from] FileError),
    /// The file was damaged or is of another version.
    #[error("the identity in {} is damaged: restore it from the box's backup, or remove the folder and enrol again", path.display())]
    Damaged {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// A key that was left by an earlier attempt cannot be read.
    #[error("the key in {} is damaged: remove it and enrol again", path.display())]
    DamagedKey {
        path: PathBuf,
        #[source]
        source: rcgen::Error,
    },
    /// No key could be made.
    #[error("no key or request could be made: this is a fault of this program or of the box's randomness")]
    Make(#[source] rcgen::Error),
    /// The key is of a kind that signs no restore certificates.
    #[error("the agent's key cannot sign restore certificates")]
    Unsuited(#[source] restore_certificate::KeyError),
    /// The hub's answer is not a certificate for our key.
    #[error("the hub's certificate is not for this agent's key: it was not taken; tell the hub's operator")]
    NotOurs,
    /// The hub's answer cannot be read.
    #[error("the hub's certificate cannot be read: it was not taken; tell the hub's operator")]
    Certificate,
    /// Cannot be written as JSON; does not happen for what was read.
    #[error("the identity cannot be written")]
    Unwritable(#[source] serde_json::Error),
}

/// The version of the identity file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub enum IdentitySchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.identity/v1")]
    V1,
}

/// An enrolled agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The version of the file.
    pub schema: IdentitySchema,
    /// The hub, `https://name:port`.
    pub hub: String,
    /// The agent's private key, PEM.
    pub key_pem: Secret,
    /// The hub's answer for it, with all CAs of the hub that are trusted.
    pub enrolled: Enrolled,
    /// When those of them were learned that did not come with the enrolment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned_cas: Vec<LearnedCa>,
}

impl Identity {
    /// The CAs of the hub that this agent trusts.
    #[must_use]
    pub fn trusted_cas(&self) -> TrustedCas {
        TrustedCas { pem: self.enrolled.ca_pem.clone(), learned: self.learned_cas.clone() }
    }

    /// The key of the identity, for a request that an agent makes whose certificate is over.
    ///
    /// # Errors
    /// [`IdentityError::Make`].
    pub fn held_key(&self) -> Result<PendingKey, IdentityError> {
        let key = KeyPair::from_pem(self.key_pem.expose()).map_err(IdentityError::Make)?;
        Ok(PendingKey { key, purpose: None })
    }

    /// The key by which restore certificates are signed: the one that the hub knows this host by.
    ///
    /// # Errors
    /// [`IdentityError::Unsuited`].
    pub fn signing_key(&self) -> Result<SigningKey, IdentityError> {
        let pair = KeyPair::from_pem(self.key_pem.expose()).map_err(IdentityError::Make)?;
        SigningKey::from_pkcs8(&Zeroizing::new(pair.serialize_der())).map_err(IdentityError::Unsuited)
    }
}

/// The purpose of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The first certificate.
    Enrol,
    /// The next one.
    Renewal,
}

impl Purpose {
    const fn file(self) -> &'static str {
        match self {
            Self::Enrol => "enrol.key.pem",
            Self::Renewal => "renewal.key.pem",
        }
    }
}

/// A key that is on the disk and for which a certificate is requested.
pub struct PendingKey {
    key: KeyPair,
    /// None: the key of the identity itself.
    purpose: Option<Purpose>,
}

impl PendingKey {
    /// The request for a certificate. The hub takes only the public key from it.
    ///
    /// # Errors
    /// [`IdentityError::Make`].
    pub fn csr_pem(&self) -> Result<String, IdentityError> {
        let params = CertificateParams::new(Vec::new()).map_err(IdentityError::Make)?;
        let request = params.serialize_request(&self.key).map_err(IdentityError::Make)?;
        request.pem().map_err(IdentityError::Make)
    }

    /// What operator and person at the host compare by eye.
    #[must_use]
    pub fn fingerprint(&self) -> Pin {
        Pin::of(PinKind::Spki, &self.key.subject_public_key_info())
    }
}

#[derive(Clone, Debug)]
pub struct IdentityFolder {
    dir: PathBuf,
}

impl IdentityFolder {
    /// Opens the folder, and makes it when it is not there.
    ///
    /// # Errors
    /// [`IdentityError::File`].
    pub fn open(state: &Path) -> Result<Self, IdentityError> {
        let dir = state.join("identity");
        atomic_file::private_folder(&dir)?;
        Ok(Self { dir })
    }

    /// The identity, once enrolled.
    ///
    /// # Errors
    /// [`IdentityError`]. A damaged file is never taken for none: enrolling again would need a new invite.
    pub fn read(&self) -> Result<Option<Identity>, IdentityError> {
        let path = self.dir.join(IDENTITY_FILE);
        let Some(bytes) = atomic_file::read(&path, IDENTITY_BYTES_MAX)? else { return Ok(None) };
        let max = usize::try_from(IDENTITY_BYTES_MAX).unwrap_or(usize::MAX);
        json::parse("the identity", &bytes, max)
            .map(Some)
            .map_err(|source| IdentityError::Damaged { path, source })
    }

    /// The key for this purpose: the one an earlier attempt left, or a new one, synced before it is returned.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn pending(&self, purpose: Purpose) -> Result<PendingKey, IdentityError> {
        let path = self.dir.join(purpose.file());
        if let Some(bytes) = atomic_file::read(&path, IDENTITY_BYTES_MAX)? {
            let text = String::from_utf8_lossy(&bytes);
            let key =
                KeyPair::from_pem(&text).map_err(|source| IdentityError::DamagedKey { path, source })?;
            return Ok(PendingKey { key, purpose: Some(purpose) });
        }
        let key = KeyPair::generate().map_err(IdentityError::Make)?;
        atomic_file::write(&path, Zeroizing::new(key.serialize_pem()).as_bytes(), Readers::Owner)?;
        Ok(PendingKey { key, purpose: Some(purpose) })
    }

    /// Takes the certificate that the hub gave for this key. The old identity, if any, is replaced in one stroke.
    ///
    /// # Errors
    /// [`IdentityError`]; then the old identity stays.
    pub fn accept(&self, key: &PendingKey, hub: &str, enrolled: Enrolled) -> Result<Identity, IdentityError> {
        let pem = enrolled.ca_pem.clone();
        self.accept_renewal(key, hub, enrolled, TrustedCas { pem, learned: Vec::new() })
    }

    /// The same for a certificate that follows another: which CAs are trusted was decided before.
    ///
    /// # Errors
    /// [`IdentityError`]; then the old identity stays.
    pub fn accept_renewal(
        &self,
        key: &PendingKey,
        hub: &str,
        enrolled: Enrolled,
        cas: TrustedCas,
    ) -> Result<Identity, IdentityError> {
        let der = CertificateDer::from_pem_slice(enrolled.certificate_pem.as_bytes())
            .map_err(|_| IdentityError::Certificate)?;
        let theirs = net::tls::pin_of(PinKind::Spki, &der).map_err(|_| IdentityError::Certificate)?;
        if theirs != key.fingerprint() {
            return Err(IdentityError::NotOurs);
        }
        let identity = Identity {
            schema: IdentitySchema::V1,
            hub: hub.to_owned(),
            key_pem: Secret::new(key.key.serialize_pem()),
            enrolled: Enrolled { ca_pem: cas.pem, ca_cross_pem: None, ..enrolled },
            learned_cas: cas.learned,
        };
        let bytes = Zeroizing::new(serde_json::to_vec_pretty(&identity).map_err(IdentityError::Unwritable)?);
        atomic_file::write(&self.dir.join(IDENTITY_FILE), &bytes, Readers::Owner)?;
        if let Some(file) = key.purpose.map(Purpose::file) {
            atomic_file::remove(&self.dir.join(file))?;
        }
        Ok(identity)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The answer that a hub would give for this key.
    pub(crate) fn enrolled_for(key: &KeyPair, generation: u32) -> Enrolled {
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(key).unwrap();
        Enrolled {
            host_id: holdfast_protocol::id::HostId::new(uuid::Uuid::nil()),
            host_name: "box7".parse().unwrap(),
            certificate_pem: certificate.pem(),
            ca_pem: certificate.pem(),
            ca_cross_pem: None,
            certificate_generation: generation,
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2026-12-01T00:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn an_attempt_that_was_cut_off_goes_on_with_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let folder = IdentityFolder::open(dir.path()).unwrap();
        let first = folder.pending(Purpose::Enrol).unwrap().fingerprint();
        let again = IdentityFolder::open(dir.path()).unwrap().pending(Purpose::Enrol).unwrap();
        assert_eq!(again.fingerprint(), first);
        assert_ne!(folder.pending(Purpose::Renewal).unwrap().fingerprint(), first);
        assert!(again.csr_pem().unwrap().starts_with("-----BEGIN CERTIFICATE REQUEST"));
    }

    #[test]
    fn the_old_identity_serves_until_the_new_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = IdentityFolder::open(dir.path()).unwrap();
        assert!(folder.read().unwrap().is_none());
        let key = folder.pending(Purpose::Enrol).unwrap();
        folder.accept(&key, "https://hub", enrolled_for(&key.key, 1)).unwrap();

        let next = folder.pending(Purpose::Renewal).unwrap();
        let foreign = KeyPair::generate().unwrap();
        let refused = folder.accept(&next, "https://hub", enrolled_for(&foreign, 2));
        assert!(matches!(refused, Err(IdentityError::NotOurs)));
        assert_eq!(folder.read().unwrap().unwrap().enrolled.certificate_generation, 1);

        folder.accept(&next, "https://hub", enrolled_for(&next.key, 2)).unwrap();
        let kept = folder.read().unwrap().unwrap();
        assert_eq!((kept.enrolled.certificate_generation, kept.hub.as_str()), (2, "https://hub"));
        assert_ne!(folder.pending(Purpose::Renewal).unwrap().fingerprint(), next.fingerprint());
    }

    #[test]
    fn the_held_key_gets_its_next_certificate_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let folder = IdentityFolder::open(dir.path()).unwrap();
        let key = folder.pending(Purpose::Enrol).unwrap();
        let held = folder.accept(&key, "https://hub", enrolled_for(&key.key, 1)).unwrap();
        // A renewal that was cut off is not disturbed.
        let next = folder.pending(Purpose::Renewal).unwrap().fingerprint();
        let again = held.held_key().unwrap();
        assert_eq!(again.fingerprint(), key.fingerprint());
        folder
            .accept_renewal(&again, "https://hub", enrolled_for(&again.key, 2), held.trusted_cas())
            .unwrap();
        assert_eq!(folder.read().unwrap().unwrap().enrolled.certificate_generation, 2);
        assert_eq!(folder.pending(Purpose::Renewal).unwrap().fingerprint(), next);
    }

    #[test]
    fn a_damaged_identity_is_not_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let folder = IdentityFolder::open(dir.path()).unwrap();
        std::fs::write(dir.path().join("identity/identity.json"), b"{\"schema\":").unwrap();
        assert!(matches!(folder.read(), Err(IdentityError::Damaged { .. })));
    }

    #[test]
    fn nothing_of_the_key_shows() {
        let dir = tempfile::tempdir().unwrap();
        let folder = IdentityFolder::open(dir.path()).unwrap();
        let key = folder.pending(Purpose::Enrol).unwrap();
        let identity = folder.accept(&key, "https://hub", enrolled_for(&key.key, 1)).unwrap();
        assert!(!format!("{identity:?}").contains("PRIVATE KEY"));
    }
}
