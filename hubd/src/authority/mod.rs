//! The hub's certificate authority.
//!
//! In: a folder; public keys of approved agents. Out: certificates for agents and for the hub's own listener.
//! The key is made once, written 0600 and synced before it is used. Deliberately absent: which hosts are approved; that is judged
//! before.
//!
//! | file | what | mode |
//! | --- | --- | --- |
//! | `ca.key` | the CA's key, PEM | 0600 |
//! | `ca.pem` | the CA's certificate, PEM | 0644 |
//! | `next-ca.key`, `next-ca.pem`, `next-ca-cross.pem` | the next CA, during a change; its key signed by the present one | 0600, 0644 |
//! | `former-ca.pem`, `former-ca-cross.pem` | the CA before a change, and the present one's key signed by it | 0644 |
//! | `countersign.key` | the key for statements about restore certificates, PEM | 0600 |
//! | `seed.key` | 32 random bytes that invite secrets, operators' tokens and the keys of sign-in are derived from | 0600 |

mod cas;
mod change;
mod countersign;
mod csr;
mod issue;
mod sealed;
mod server;
mod server_files;
mod sign_in;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::id::InviteId;
use holdfast_protocol::secret::Secret;
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose};
use restore_certificate::SigningKey;
use ring::hmac;
use uuid::Uuid;
use zeroize::Zeroizing;

use cas::Stamp;
pub use cas::{Ca, CaSet, Course};
pub use change::{CaFolder, ChangeError};
pub use csr::{AgentKey, CsrError};
pub use issue::{HostLife, IssueError, Issued};
pub use server::{ServerCertificate, ServerCertificateError};
pub use server_files::{CertificateFiles, CertificateFilesError, FilesReload};
pub use sign_in::{NONCE_BYTES, SealError};

/// The CA lives ten years. It can be changed before ([`change`]).
const CA_DAYS: i64 = 3650;

/// Every operator's token starts with this, so that one can be found where it should not be.
pub const OPERATOR_TOKEN_PREFIX: &str = "hfo_";

/// What tokens of machines begin with.
pub const MACHINE_TOKEN_PREFIX: &str = "hfm_";

/// The hub's authority, opened.
pub struct Authority {
    folder: PathBuf,
    cas: RwLock<Arc<CaSet>>,
    seed: hmac::Key,
    countersign: SigningKey,
}

/// Why the authority cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("{path} cannot be read: the hub's user must be able to")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Write(#[from] FileError),
    /// Some files of the authority are there, others are not.
    #[error(
        "{missing} is missing while the rest of the hub's data is there: restore it from the backup, or copy all keys from the \
         folder of another hub on this database; a new one would lock every enrolled box out"
    )]
    Incomplete {
        /// The missing file.
        missing: PathBuf,
    },
    /// A file is there, but is not what it should be.
    #[error("{path} is damaged: restore it from the backup")]
    Damaged { path: PathBuf },
    /// The CA's key or certificate cannot be used.
    #[error("{path} cannot be used: restore it from the backup")]
    Unusable {
        path: PathBuf,
        #[source]
        source: rcgen::Error,
    },
    /// The system has no randomness.
    #[error("the system gives no random bytes")]
    Random(#[source] getrandom::Error),
}

impl Authority {
    /// Opens the authority of a folder. In a folder without any of its files it is made. A first start that a loss of
    /// power interrupted is continued: it leaves no database, and only the first of these files. Existing files are
    /// used and never overwritten.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn open_or_make(folder: &Path, fresh: Fresh, now: Timestamp) -> Result<Self, AuthorityError> {
        change::resume(folder)?;
        let paths = ["seed.key", cas::CA_KEY, cas::CA].map(|name| folder.join(name));
        let [seed, key, ca] = paths.each_ref().map(|path| path.exists());
        let is_first_start = fresh == Fresh::Yes && !ca && (seed || !key);
        match paths.iter().find(|path| !path.exists()) {
            None => {}
            Some(_) if is_first_start => make(&paths, now)?,
            Some(missing) => return Err(AuthorityError::Incomplete { missing: missing.clone() }),
        }
        open(folder, &paths[0], countersign::open_or_make(folder)?)
    }

    /// The CAs as they are now.
    #[must_use]
    pub fn cas(&self) -> Arc<CaSet> {
        Arc::clone(&self.cas.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the CAs again where a command changed them. None: they are as they were, or between two states.
    ///
    /// # Errors
    /// [`AuthorityError`]; the CAs stay as they were.
    pub fn reload(&self) -> Result<Option<Arc<CaSet>>, AuthorityError> {
        match Stamp::of(&self.folder) {
            Some(stamp) if stamp != self.cas().stamp => {}
            Some(_) | None => return Ok(None),
        }
        let opened = Arc::new(CaSet::open(&self.folder)?);
        *self.cas.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&opened);
        Ok(Some(opened))
    }

    /// The key for statements about restore certificates.
    #[must_use]
    pub const fn countersign_key(&self) -> &SigningKey {
        &self.countersign
    }

    /// The secret of an invite. It is derived, so that a repeated request can be given the same invite although only
    /// the secret's hash is stored.
    #[must_use]
    pub fn invite_secret(&self, invite: InviteId) -> Secret {
        let tag = hmac::sign(&self.seed, invite.uuid().as_bytes());
        Secret::new(hex::encode(tag))
    }

    /// An operator's token by its number. It is derived like an invite's secret, and for the same reason.
    #[must_use]
    pub fn operator_token(&self, number: Uuid) -> Secret {
        let of_operators = [&b"operator's token"[..], number.as_bytes()].concat();
        let tag = hmac::sign(&self.seed, &of_operators);
        Secret::new(format!("{OPERATOR_TOKEN_PREFIX}{}", hex::encode(tag)))
    }

    /// The same of a machine's token.
    #[must_use]
    pub fn machine_token(&self, number: Uuid) -> Secret {
        let of_machines = [&b"machine's token"[..], number.as_bytes()].concat();
        let tag = hmac::sign(&self.seed, &of_machines);
        Secret::new(format!("{MACHINE_TOKEN_PREFIX}{}", hex::encode(tag)))
    }
}

/// Whether the folder is a new hub's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// There is no database yet.
    Yes,
    /// There is one, so there was an authority.
    No,
}

fn read(path: &Path) -> Result<String, AuthorityError> {
    let failed = |source| AuthorityError::Read { path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

fn open(folder: &Path, seed_path: &Path, countersign: SigningKey) -> Result<Authority, AuthorityError> {
    let cas = CaSet::open(folder)?;
    let seed_text = Zeroizing::new(read(seed_path)?);
    let mut seed = Zeroizing::new([0; 32]);
    hex::decode_to_slice(seed_text.trim(), seed.as_mut_slice())
        .map_err(|_| AuthorityError::Damaged { path: seed_path.to_owned() })?;
    let seed = hmac::Key::new(hmac::HMAC_SHA256, seed.as_slice());
    Ok(Authority { folder: folder.to_owned(), cas: RwLock::new(Arc::new(cas)), seed, countersign })
}

/// What a CA's certificate says. Each has a name of its own: a verifier looks for an issuer by its name.
fn ca_params(now: Timestamp) -> Result<CertificateParams, AuthorityError> {
    let mut number = [0; 4];
    getrandom::fill(&mut number).map_err(AuthorityError::Random)?;
    let mut params = CertificateParams::default();
    let name = format!("Holdfast hub CA {}", hex::encode(number));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    issue::set_life(&mut params, now.as_second() - issue::SKEW_S, now.as_second() + CA_DAYS * 86_400);
    params.serial_number = Some(issue::random_serial().map_err(AuthorityError::Random)?);
    Ok(params)
}

fn make(paths: &[PathBuf; 3], now: Timestamp) -> Result<(), AuthorityError> {
    let [seed_path, key_path, ca_path] = paths;
    let unusable = |source| AuthorityError::Unusable { path: ca_path.clone(), source };
    if !seed_path.exists() {
        let mut seed = Zeroizing::new([0_u8; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(AuthorityError::Random)?;
        let text = Zeroizing::new(hex::encode(seed.as_slice()));
        atomic_file::write(seed_path, text.as_bytes(), Readers::Owner)?;
    }
    if !key_path.exists() {
        let key = KeyPair::generate().map_err(unusable)?;
        let pem = Zeroizing::new(key.serialize_pem());
        atomic_file::write(key_path, pem.as_bytes(), Readers::Owner)?;
    }
    let key = KeyPair::from_pem(&Zeroizing::new(read(key_path)?))
        .map_err(|source| AuthorityError::Unusable { path: key_path.clone(), source })?;
    let params = ca_params(now)?;
    let certificate = params.self_signed(&key).map_err(unusable)?;
    // Last: it is what others read, so it is there only when the rest is.
    Ok(atomic_file::write(ca_path, certificate.pem().as_bytes(), Readers::All)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_made_once_and_never_silently_again() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let made = Authority::open_or_make(folder.path(), Fresh::Yes, now).unwrap();
        let again = Authority::open_or_make(folder.path(), Fresh::No, now).unwrap();
        let invite = InviteId::new(uuid::Uuid::nil());
        assert_eq!(made.cas().serving().pin(), again.cas().serving().pin());
        assert_eq!(made.invite_secret(invite).expose(), again.invite_secret(invite).expose());
        std::fs::remove_file(folder.path().join("ca.pem")).unwrap();
        let refused = Authority::open_or_make(folder.path(), Fresh::No, now).err().unwrap();
        assert!(matches!(refused, AuthorityError::Incomplete { .. }), "{refused}");
        let key = made.countersign_key().public();
        assert_eq!(key, again.countersign_key().public());
        let empty = tempfile::tempdir().unwrap();
        assert!(Authority::open_or_make(empty.path(), Fresh::No, now).is_err());
    }

    #[test]
    fn a_first_start_that_ended_in_the_middle_goes_on_with_what_is_there() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let whole = tempfile::tempdir().unwrap();
        let invite = InviteId::new(uuid::Uuid::nil());
        let made = Authority::open_or_make(whole.path(), Fresh::Yes, now).unwrap();
        for there in [&["seed.key"][..], &["seed.key", "ca.key"]] {
            let folder = tempfile::tempdir().unwrap();
            for name in there {
                std::fs::copy(whole.path().join(name), folder.path().join(name)).unwrap();
            }
            let went_on = Authority::open_or_make(folder.path(), Fresh::Yes, now).unwrap();
            assert_eq!(went_on.invite_secret(invite).expose(), made.invite_secret(invite).expose());
            for name in there {
                let bytes = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
                assert_eq!(bytes(whole.path()), bytes(folder.path()), "{name}");
            }
        }
        // No first start leaves these: a part of a backup was brought back.
        for there in [&["ca.key"][..], &["ca.pem"], &["ca.key", "ca.pem"], &["seed.key", "ca.pem"]] {
            let folder = tempfile::tempdir().unwrap();
            for name in there {
                std::fs::copy(whole.path().join(name), folder.path().join(name)).unwrap();
            }
            let refused = Authority::open_or_make(folder.path(), Fresh::Yes, now).err().unwrap();
            assert!(matches!(refused, AuthorityError::Incomplete { .. }), "{there:?}: {refused}");
        }
    }

    #[test]
    fn keys_are_readable_by_their_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        Authority::open_or_make(folder.path(), Fresh::Yes, now).unwrap();
        for name in ["ca.key", "seed.key", "countersign.key"] {
            let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
