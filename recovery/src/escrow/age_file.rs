//! Escrow file: ASCII-armoured `age`, for one passphrase.
//!
//! What can be judged without the code is judged when it is read ([`form`]): its length, its form, that there is one
//! reader, a passphrase, and how much work that passphrase requires. The library would derive its limit from the
//! machine, so a slow machine could refuse a file; the bounds of [`form`] are fixed.

use std::fmt;
use std::io::{Read as _, Write as _};

use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, Encryptor, scrypt};
use holdfast_protocol::escrow::form::{self, WORK_FACTOR, WORK_FACTOR_MAX};
use holdfast_seal::refused_to_encrypt;
use zeroize::Zeroizing;

use super::error::{OpenError, PLAIN_BYTES_MAX, WrapError};
use crate::code::RecoveryCode;
use crate::parse::Mismatch;
use crate::suggest::Position;

/// An `age` file for one passphrase, within the bounds. Its text is not secret.
#[derive(Clone, PartialEq, Eq)]
pub struct EscrowFile {
    bytes: Vec<u8>,
}

impl EscrowFile {
    /// Judges what came from outside, without opening it.
    pub fn parse(text: &[u8]) -> Result<Self, OpenError> {
        Ok(Self { bytes: form::judge(text)? })
    }

    /// As it is kept and printed.
    #[must_use]
    pub fn to_text(&self) -> String {
        form::to_text(&self.bytes)
    }

    /// The place of the one word that was typed wrongly: with the fitting word there instead, this file opens. `None`
    /// where more than one is wrong, or where the file requires so much work that eleven tries would keep a person
    /// waiting.
    #[must_use]
    pub fn wrong_position(&self, mismatch: &Mismatch) -> Option<Position> {
        if form::work_factor(&self.bytes) != Ok(WORK_FACTOR) {
            return None;
        }
        mismatch.with_another_word().find_map(|(position, words)| {
            let code = RecoveryCode::keep(&words).ok()?;
            self.unwrap(&code).is_ok().then_some(position)
        })
    }

    pub(super) fn wrap(plain: &[u8], code: &RecoveryCode) -> Result<Self, WrapError> {
        if plain.len() > PLAIN_BYTES_MAX {
            return Err(WrapError::TooLong);
        }
        let mut recipient = scrypt::Recipient::new(secret(code).map_err(WrapError::Memory)?);
        recipient.set_work_factor(WORK_FACTOR);
        let one = std::iter::once(&recipient as &dyn age::Recipient);
        let encryptor = Encryptor::with_recipients(one)
            .map_err(|error| WrapError::Library(Box::new(refused_to_encrypt(error))))?;
        let failed = |error: std::io::Error| WrapError::Library(Box::new(error));
        let mut bytes = Vec::new();
        let mut writer = encryptor.wrap_output(&mut bytes).map_err(failed)?;
        writer.write_all(plain).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(Self { bytes })
    }

    pub(super) fn unwrap(&self, code: &RecoveryCode) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let mut identity = scrypt::Identity::new(secret(code).map_err(OpenError::Memory)?);
        identity.set_max_work_factor(WORK_FACTOR_MAX);
        let decryptor = Decryptor::new(self.bytes.as_slice()).map_err(refused)?;
        let reader = decryptor.decrypt(std::iter::once(&identity as &dyn age::Identity)).map_err(refused)?;
        // As large as it can be at once: a buffer that grows leaves its former places unwiped.
        let mut plain = Zeroizing::new(Vec::with_capacity(PLAIN_BYTES_MAX + 1));
        let mut bounded = reader.take(PLAIN_BYTES_MAX as u64 + 1);
        bounded.read_to_end(&mut plain).map_err(|_| OpenError::Broken)?;
        Ok(plain)
    }
}

impl fmt::Debug for EscrowFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EscrowFile({} bytes)", self.bytes.len())
    }
}

/// The library wants a copy of its own, which it wipes.
fn secret(code: &RecoveryCode) -> std::io::Result<SecretString> {
    Ok(SecretString::from(code.passphrase()?.as_text()))
}

fn refused(error: DecryptError) -> OpenError {
    match error {
        DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed | DecryptError::NoMatchingKeys => {
            OpenError::Code
        }
        DecryptError::ExcessiveWork { required, .. } => OpenError::Work(required),
        _ => OpenError::Broken,
    }
}
