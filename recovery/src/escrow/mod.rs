//! Escrow: the backup key wrapped under a recovery code with `age`.
//!
//! ```text
//! Context + BackupKey ─▶ Escrow ── wrap(code) ─▶ EscrowFile ─▶ hub, backup targets, paper
//! whatever came back ── EscrowFile::parse (no key needed) ─▶ open(code, wanted) ─▶ Escrow, or who must do what
//! ```
//! Stock `age` opens the file with the words as passphrase. The key file is inside under `.key`, as
//! `proxmox-backup-client` reads it. A returned file may have been in foreign hands, so it is bounded and judged before
//! anything slow is done. Its purpose is written inside, since `age` binds nothing from outside. Deliberately absent:
//! which files there are and where they are stored.

mod age_file;
mod context;
mod error;

use holdfast_protocol::id::KeyFingerprint;
use holdfast_protocol::json;
use holdfast_seal::backup_key::BackupKey;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use age_file::EscrowFile;
pub use context::{Context, Record};
pub use error::{OpenError, PLAIN_BYTES_MAX, WrapError};
pub use holdfast_protocol::escrow::CodeNumber;
pub use holdfast_protocol::escrow::form::{FILE_BYTES_MAX, WORK_FACTOR, WORK_FACTOR_MAX};

use crate::code::RecoveryCode;

/// The version of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EscrowSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.escrow/v1")]
    V1,
}

/// A backup key and what it is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escrow {
    schema: EscrowSchema,
    context: Context,
    key: BackupKey,
}

/// What a file should be.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// This and no other: a hub could serve another host's, or an older one.
    Exactly(&'a Record),
    /// This key, by whichever of its sheets: the file came by another way than its records.
    Key(&'a KeyFingerprint),
    /// No record is left to compare with: the content is shown to the person who decides.
    Any,
}

impl Escrow {
    /// Puts them together.
    #[must_use]
    pub const fn new(context: Context, key: BackupKey) -> Self {
        Self { schema: EscrowSchema::V1, context, key }
    }

    /// What it is for.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    #[must_use]
    pub const fn key(&self) -> &BackupKey {
        &self.key
    }

    /// Takes it apart.
    #[must_use]
    pub fn into_parts(self) -> (Context, BackupKey) {
        (self.context, self.key)
    }

    /// What to remember of it.
    #[must_use]
    pub fn record(&self) -> Record {
        Record { context: self.context.clone(), fingerprint: self.key.fingerprint().clone() }
    }

    /// Wraps it, and proves it: the file is opened again with the same code and compared.
    pub fn wrap(&self, code: &RecoveryCode) -> Result<EscrowFile, WrapError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(PLAIN_BYTES_MAX * 2));
        serde_json::to_writer(&mut *plain, self).map_err(|error| WrapError::Library(Box::new(error)))?;
        let file = EscrowFile::wrap(&plain, code)?;
        file.open(code, Expected::Exactly(&self.record())).map_err(WrapError::NotReadable)?;
        Ok(file)
    }
}

impl EscrowFile {
    /// Opens it. This takes about a tenth of a second and 64 MiB as we write it, and never more than 1 GiB.
    ///
    /// # Errors
    /// [`OpenError`], at the first reason.
    pub fn open(&self, code: &RecoveryCode, wanted: Expected<'_>) -> Result<Escrow, OpenError> {
        let plain = self.unwrap(code)?;
        let escrow: Escrow = json::parse("the escrow", &plain, PLAIN_BYTES_MAX).map_err(OpenError::Form)?;
        escrow.key.check().map_err(OpenError::key)?;
        match wanted {
            Expected::Exactly(record) => record.compare(&escrow.record())?,
            Expected::Key(wanted) if wanted != escrow.key.fingerprint() => {
                let inside = escrow.key.fingerprint().clone();
                return Err(OpenError::OtherKey { inside, wanted: wanted.clone() });
            }
            Expected::Key(_) | Expected::Any => {}
        }
        Ok(escrow)
    }
}
