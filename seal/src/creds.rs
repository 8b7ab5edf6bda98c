//! Sealed credentials of a storage target.
//!
//! They hold user and password, and for a backup server the key, with the target and backend that they are for.

use holdfast_protocol::id::TargetName;
use holdfast_protocol::json;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::{Backend, HostRecipient, Sealed};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::backup_key::BackupKey;
use crate::file::{OpenError, PLAIN_BYTES_MAX, SealError, unwrap, wrap};
use crate::key::HostKey;

/// Proxmox takes no longer one.
const PASSWORD_CHARS_MAX: usize = 256;

const USER_CHARS_MAX: usize = 128;

/// The version of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CredsSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.storage-creds/v1")]
    V1,
}

/// What credentials are for.
#[derive(Clone, Copy, Debug)]
pub struct SealContext<'a> {
    /// The target's name.
    pub target: &'a TargetName,
    /// What it is.
    pub backend: &'a Backend,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Creds {
    schema: CredsSchema,
    target: TargetName,
    backend: Backend,
    user: String,
    password: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<BackupKey>,
}

impl Creds {
    /// Puts them together.
    ///
    /// # Errors
    /// [`OpenError::Value`], by the same rules as on opening.
    pub fn new(
        context: SealContext<'_>,
        user: String,
        password: Secret,
        key: Option<BackupKey>,
    ) -> Result<Self, OpenError> {
        let (target, backend) = (context.target.clone(), context.backend.clone());
        let creds = Self { schema: CredsSchema::V1, target, backend, user, password, key };
        creds.check()?;
        Ok(creds)
    }

    /// Who logs in.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    #[must_use]
    pub const fn password(&self) -> &Secret {
        &self.password
    }

    /// What backups are encrypted with.
    #[must_use]
    pub const fn key(&self) -> Option<&BackupKey> {
        self.key.as_ref()
    }

    /// Seals them for one host.
    pub fn seal(&self, to: &HostRecipient) -> Result<Sealed, SealError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(PLAIN_BYTES_MAX * 2));
        serde_json::to_writer(&mut *plain, self).map_err(|error| SealError::Library(Box::new(error)))?;
        wrap(&plain, to)
    }

    /// Opens the credentials of a target.
    ///
    /// # Errors
    /// [`OpenError`], at the first reason.
    pub fn open(sealed: &Sealed, key: &HostKey, context: SealContext<'_>) -> Result<Self, OpenError> {
        let plain = unwrap(sealed, key)?;
        let creds: Self =
            json::parse("the sealed credentials", &plain, PLAIN_BYTES_MAX).map_err(OpenError::Form)?;
        if creds.target != *context.target {
            return Err(OpenError::OtherTarget {
                inside: creds.target.to_string(),
                wanted: context.target.to_string(),
            });
        }
        if creds.backend != *context.backend {
            return Err(OpenError::OtherMedium {
                target: context.target.to_string(),
                inside: creds.backend.to_string(),
                wanted: context.backend.to_string(),
            });
        }
        creds.check()?;
        Ok(creds)
    }

    /// Whether these could be a login: nothing that means something to a credentials file, a mount option or a shell.
    ///
    /// # Errors
    /// [`OpenError::Value`].
    pub fn may_log_in(user: &str, password: &Secret) -> Result<(), OpenError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-@!$".contains(c);
        if !(1..=USER_CHARS_MAX).contains(&user.len()) || !user.chars().all(plain) {
            return Err(OpenError::Value(
                "the user is 1 to 128 of letters, digits, '.', '_', '-', '@', '!' and '$'",
            ));
        }
        let password = password.expose();
        if !(1..=PASSWORD_CHARS_MAX).contains(&password.chars().count())
            || password.chars().any(char::is_control)
        {
            return Err(OpenError::Value("the password is 1 to 256 characters without control characters"));
        }
        Ok(())
    }

    /// A login, and the key that was approved.
    fn check(&self) -> Result<(), OpenError> {
        Self::may_log_in(&self.user, &self.password)?;
        match (&self.backend, &self.key) {
            (Backend::Pbs { key: wanted, .. }, Some(key)) => {
                key.check()?;
                if key.fingerprint() == wanted {
                    Ok(())
                } else {
                    Err(OpenError::Value(
                        "the backup key is another one than the target names by its fingerprint",
                    ))
                }
            }
            (Backend::Pbs { .. }, None) => {
                Err(OpenError::Value("a backup server needs the key that backups are encrypted with"))
            }
            (Backend::Cifs { .. }, None) => Ok(()),
            (Backend::Cifs { .. }, Some(_)) => Err(OpenError::Value("a share has no backup key")),
            (Backend::LocalDir { .. } | Backend::Usb { .. } | Backend::Nfs { .. }, _) => {
                Err(OpenError::Value("only shares and backup servers have a user and a password"))
            }
        }
    }
}

#[cfg(test)]
#[path = "creds_tests.rs"]
mod tests;
