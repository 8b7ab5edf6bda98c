//! Encryption key of off-site backups: a Proxmox key file without passphrase.
//!
//! Proxmox itself stores any JSON that it is given, and a fingerprint that does not belong to the key shows only when
//! the first backup fails. So the fingerprint is computed here from the key itself. Deliberately absent: keys with a
//! passphrase; Proxmox could not use one.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::id::KeyFingerprint;
use holdfast_protocol::json;
use holdfast_protocol::secret::Secret;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::file::OpenError;

/// A key file without a passphrase has about 255 bytes.
pub const KEY_FILE_BYTES_MAX: usize = 2048;

const KEY_BYTES: usize = 32;

/// A key file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupKey {
    /// Always null: no passphrase.
    kdf: (),
    #[serde(serialize_with = "as_genuine")]
    created: Timestamp,
    #[serde(serialize_with = "as_genuine")]
    modified: Timestamp,
    data: Secret,
    fingerprint: KeyFingerprint,
}

impl BackupKey {
    /// Reads a key file.
    ///
    /// # Errors
    /// When it is none, has a passphrase, or names a fingerprint that is not its own.
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        let key: Self = json::parse("a backup key", bytes, KEY_FILE_BYTES_MAX).map_err(OpenError::Form)?;
        key.check()?;
        Ok(key)
    }

    /// Makes one, from the kernel's randomness.
    ///
    /// # Errors
    /// When the kernel gives none.
    pub fn generate(at: Timestamp) -> Result<Self, OpenError> {
        let failed = || OpenError::Value("the kernel gives no randomness to make a key of");
        let mut raw = Zeroizing::new([0_u8; KEY_BYTES]);
        SystemRandom::new().fill(raw.as_mut_slice()).map_err(|_| failed())?;
        let fingerprint = KeyFingerprint::try_from(fingerprint_of(raw.as_slice())).map_err(|_| failed())?;
        let data = Secret::new(STANDARD.encode(raw.as_slice()));
        Ok(Self { kdf: (), created: at, modified: at, data, fingerprint })
    }

    /// As Proxmox takes it.
    ///
    /// # Errors
    /// Never in practice: its parts are plain text.
    pub fn to_json(&self) -> Result<Secret, OpenError> {
        serde_json::to_string(self)
            .map(Secret::new)
            .map_err(|_| OpenError::Value("the backup key cannot be written"))
    }

    /// What it is known by.
    #[must_use]
    pub const fn fingerprint(&self) -> &KeyFingerprint {
        &self.fingerprint
    }

    /// Holds the key to its own fingerprint, where it was read as part of something else.
    ///
    /// # Errors
    /// [`OpenError::Value`].
    pub fn check(&self) -> Result<(), OpenError> {
        let wrong = OpenError::Value("the backup key is not 32 bytes as base64");
        let mut raw = Zeroizing::new([0_u8; KEY_BYTES + 4]);
        let length = STANDARD.decode_slice(self.data.expose(), raw.as_mut_slice());
        let key = match length {
            Ok(KEY_BYTES) => raw.get(..KEY_BYTES).ok_or(wrong)?,
            _ => return Err(wrong),
        };
        if fingerprint_of(key) == self.fingerprint.as_str() {
            Ok(())
        } else {
            Err(OpenError::Value("the fingerprint in the backup key is not that of the key"))
        }
    }
}

/// As the backup server's own client writes a time: no parts of a second, and no `Z`.
fn as_genuine<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&at.strftime("%Y-%m-%dT%H:%M:%S+00:00"))
}

/// As the backup server's own client computes it: of the raw key, so it is equal under every passphrase.
fn fingerprint_of(key: &[u8]) -> String {
    let mut id_key = Zeroizing::new([0_u8; 32]);
    ring::pbkdf2::derive(
        ring::pbkdf2::PBKDF2_HMAC_SHA256,
        NonZeroU32::MIN.saturating_add(9),
        b"_id_key",
        key,
        id_key.as_mut_slice(),
    );
    let input = Sha256::digest(b"Proxmox Backup Encryption Key Fingerprint");
    let hash = Sha256::new().chain_update(input).chain_update(id_key.as_slice()).finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by the genuine client, for nothing but tests.
    const GENUINE: &[u8] = include_bytes!("../tests/backup-key.json");

    #[test]
    fn a_genuine_key_matches_its_fingerprint() {
        let key = BackupKey::parse(GENUINE).unwrap();
        let again = BackupKey::parse(key.to_json().unwrap().expose().as_bytes()).unwrap();
        assert_eq!(again.fingerprint(), key.fingerprint());
        let genuine = String::from_utf8(GENUINE.to_vec()).unwrap();
        assert_eq!(key.to_json().unwrap().expose(), genuine.trim(), "to the letter");
        assert!(!format!("{key:?}").contains(key.data.expose()));
    }

    #[test]
    fn generated_keys_are_valid_and_unique() {
        let at: Timestamp = "2026-11-22T12:00:00.123Z".parse().unwrap();
        let [first, second] = [(); 2].map(|()| BackupKey::generate(at).unwrap());
        let again = BackupKey::parse(first.to_json().unwrap().expose().as_bytes()).unwrap();
        assert_eq!(again.fingerprint(), first.fingerprint());
        assert_ne!(first.fingerprint(), second.fingerprint());
        assert!(first.to_json().unwrap().expose().contains("\"2026-11-22T12:00:00+00:00\""));
    }

    #[test]
    fn another_key_under_that_fingerprint_is_refused() {
        let text = String::from_utf8(GENUINE.to_vec()).unwrap();
        let data = BackupKey::parse(GENUINE).unwrap().data;
        for other in
            [STANDARD.encode([7_u8; 32]), STANDARD.encode([7_u8; 31]), "AAAA".to_owned(), "?".to_owned()]
        {
            let forged = text.replace(data.expose(), &other);
            assert_ne!(forged, text);
            assert!(matches!(BackupKey::parse(forged.as_bytes()), Err(OpenError::Value(_))), "{other}");
        }
        let locked = text.replace("\"kdf\":null", "\"kdf\":{\"Scrypt\":{}}");
        assert!(matches!(BackupKey::parse(locked.as_bytes()), Err(OpenError::Form(_))));
    }
}
