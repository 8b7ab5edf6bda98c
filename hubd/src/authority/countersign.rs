//! The hub's key for statements about restore certificates.
//!
//! It is made on the first start that finds none, and used for nothing else. It is no key of the CA: what it signs admits
//! no host, and no agent obeys it. A hub that lost it makes a new one; certificates that the old one countersigned
//! stay good for those who kept its public key.

use std::path::Path;

use held_files::atomic_file::{self, Readers};
use rcgen::KeyPair;
use restore_certificate::SigningKey;
use zeroize::Zeroizing;

use super::{AuthorityError, read};

const FILE: &str = "countersign.key";

/// Opens the key of a folder, or makes it.
pub(super) fn open_or_make(folder: &Path) -> Result<SigningKey, AuthorityError> {
    let path = folder.join(FILE);
    let unusable = |source| AuthorityError::Unusable { path: path.clone(), source };
    if !path.exists() {
        let key = KeyPair::generate().map_err(unusable)?;
        atomic_file::write(&path, Zeroizing::new(key.serialize_pem()).as_bytes(), Readers::Owner)?;
    }
    let key = KeyPair::from_pem(&Zeroizing::new(read(&path)?)).map_err(unusable)?;
    SigningKey::from_pkcs8(&Zeroizing::new(key.serialize_der()))
        .map_err(|_| AuthorityError::Damaged { path: path.clone() })
}
