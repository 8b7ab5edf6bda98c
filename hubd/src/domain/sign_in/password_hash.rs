//! Hashes of passwords by Argon2id.
//!
//! In: a password, a salt or a stored hash. Out: the text to be stored (the form that other programs use too), or whether the
//! password is the one. It takes tens of milliseconds and 19 MiB; who calls bounds how many run at once. Deliberately
//! absent: randomness.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use holdfast_protocol::sign_in::Password;
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize as _, Zeroizing};

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;

const HASH_BYTES: usize = 32;

/// The work of a new hash: 19 MiB and two passes, the least that OWASP advises. A stored hash with other work is made anew
/// at the next sign-in.
pub const WORK: Work = Work { memory_kib: 19 * 1024, passes: 2 };

/// More than any hub writes: a row that was tampered with takes no memory beyond it.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;

/// How much a hash costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub memory_kib: u32,
    pub passes: u32,
}

/// A stored hash with its salt.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    work: Work,
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// Why there is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordHashError {
    #[error("a stored password is damaged: set it again with `hubd operator password NAME`")]
    Damaged,
    #[error("the password could not be hashed with {0} KiB of memory")]
    Work(u32),
}

impl PasswordHash {
    /// Hashes a password.
    ///
    /// # Errors
    /// [`PasswordHashError::Work`].
    pub fn make(password: &Password, salt: [u8; SALT_BYTES], work: Work) -> Result<Self, PasswordHashError> {
        let mut hash = [0; HASH_BYTES];
        let failed = |_| PasswordHashError::Work(work.memory_kib);
        let params = Params::new(work.memory_kib, work.passes, 1, Some(HASH_BYTES)).map_err(failed)?;
        let mut memory = vec![Block::default(); params.block_count()];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let done = argon2.hash_password_into_with_memory(
            password.expose().as_bytes(),
            &salt,
            &mut hash,
            &mut memory,
        );
        memory.zeroize();
        done.map_err(failed)?;
        Ok(Self { work, salt, hash })
    }

    /// Whether the password is the one.
    ///
    /// # Errors
    /// [`PasswordHashError::Work`].
    pub fn is_of(&self, password: &Password) -> Result<bool, PasswordHashError> {
        let made = Self::make(password, self.salt, self.work)?;
        Ok(made.hash.ct_eq(&self.hash).into())
    }

    /// Whether it was made with other work than new ones are.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.work != WORK
    }

    /// The text to be stored.
    #[must_use]
    pub fn text(&self) -> String {
        let Work { memory_kib, passes } = self.work;
        let (salt, hash) = (STANDARD_NO_PAD.encode(self.salt), STANDARD_NO_PAD.encode(self.hash));
        format!("$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${hash}")
    }

    /// Reads a stored text.
    ///
    /// # Errors
    /// [`PasswordHashError::Damaged`].
    pub fn parse(text: &str) -> Result<Self, PasswordHashError> {
        read(text).ok_or(PasswordHashError::Damaged)
    }
}

fn read(text: &str) -> Option<PasswordHash> {
    let (work, rest) = text.strip_prefix("$argon2id$v=19$m=")?.split_once('$')?;
    let (memory, passes) = work.strip_suffix(",p=1")?.split_once(",t=")?;
    let work = Work { memory_kib: memory.parse().ok()?, passes: passes.parse().ok()? };
    if work.memory_kib > MEMORY_KIB_MAX || work.passes > PASSES_MAX {
        return None;
    }
    let (salt, hash) = rest.split_once('$')?;
    let bytes = |text: &str| STANDARD_NO_PAD.decode(text).ok().map(Zeroizing::new);
    Some(PasswordHash {
        work,
        salt: bytes(salt)?.as_slice().try_into().ok()?,
        hash: bytes(hash)?.as_slice().try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIGHT: Work = Work { memory_kib: 64, passes: 1 };

    fn password(text: &str) -> Password {
        Password::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_hash_is_of_its_password_alone_and_reads_back() {
        let made = PasswordHash::make(&password("correct horse"), [7; SALT_BYTES], LIGHT).unwrap();
        let read = PasswordHash::parse(&made.text()).unwrap();
        assert_eq!(read, made);
        assert!(read.is_of(&password("correct horse")).unwrap());
        assert!(!read.is_of(&password("correct horsf")).unwrap());
        assert!(read.is_outdated());
        assert_eq!(format!("{read:?}"), "PasswordHash(…)");
        assert_ne!(PasswordHash::make(&password("correct horse"), [8; SALT_BYTES], LIGHT).unwrap(), made);
    }

    /// By the reference library, through Python's `argon2-cffi`.
    #[test]
    fn hashes_are_those_of_the_reference() {
        let text = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$UaQ39X7qfPsCgdREesq+cEPWc8npUeFUaL3NoSgkdh4";
        let made = PasswordHash::make(&password("correct horse staple"), *b"somesalt12345678", WORK).unwrap();
        assert_eq!(made.text(), text);
        assert!(!PasswordHash::parse(text).unwrap().is_outdated());
    }

    #[test]
    fn a_damaged_text_takes_no_memory() {
        let text = PasswordHash::make(&password("x"), [1; SALT_BYTES], LIGHT).unwrap().text();
        for bad in [
            String::new(),
            text.replace("argon2id", "argon2d"),
            text.replace("m=64", "m=9999999"),
            text.replace("t=1", "t=99"),
            text.replace("p=1", "p=2"),
            text[..text.len() - 4].to_owned(),
        ] {
            assert_eq!(PasswordHash::parse(&bad), Err(PasswordHashError::Damaged), "{bad}");
        }
    }
}
