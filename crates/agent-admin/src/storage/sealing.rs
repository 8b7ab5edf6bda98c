//! Sealing of a storage target's credentials, for `make-key` and `recover-key`.
//!
//! The login of the backup server and the backup key are sealed together to exactly this host.
//!
//! Input: a document that names the target, name and password for the server, typed at a terminal, and a key. Output:
//! the target's `backend` with the key's fingerprint, and its `creds` with the key inside. The opened credentials do
//! not show where the key comes from. Deliberately absent: showing a key, and changing the document.

use std::path::{Path, PathBuf};

use holdfast_protocol::desired::DOCUMENT_BYTES_MAX;
use holdfast_protocol::id::{KeyFingerprint, TargetName};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::draft::{self, NoMedium};
use holdfast_protocol::storage::{Backend, HostRecipient, Sealed};
use holdfast_recovery::locked::Locked;
use holdfast_seal::backup_key::BackupKey;
use holdfast_seal::{Creds, SealContext, SealError};
use serde::Serialize;
use serde_json::Value;

use super::StorageCommandError;
use crate::port::atomic_file::{self, FileError};
use crate::port::host_key;
use crate::settings::ConfigPath;
use crate::terminal::{Line, Terminal};
use crate::{Output, print_json};

/// A line of the terminal has no more.
const TYPED_BYTES_MAX: usize = 4096;

/// The arguments of both.
#[derive(Debug, clap::Args)]
pub struct SealingArguments {
    #[command(flatten)]
    pub(super) config: ConfigPath,
    /// The document that names the target with its backend.
    #[arg(long, value_name = "FILE")]
    pub(super) document: PathBuf,
    /// The target.
    #[arg(long, value_name = "TARGET")]
    pub(super) target: TargetName,
    /// The user for the backup server.
    #[arg(long, value_name = "USER")]
    user: String,
    /// Text for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
}

/// Why nothing is sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealingError {
    /// The document.
    #[error(transparent)]
    File(#[from] FileError),
    /// No document.
    #[error("there is no document {}: give the one that you would apply", path.display())]
    NoDocument {
        /// The file.
        path: PathBuf,
    },
    /// No such target in it.
    #[error(
        "{} names no backup server {target} with a backend: write it there first, without `creds`",
        path.display()
    )]
    NoTarget {
        /// The document.
        path: PathBuf,
        /// The target.
        target: TargetName,
        /// Its fault, where it exists.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// No terminal.
    #[error(
        "the password is typed at a terminal, and there is none: run this in one (with `ssh -t` from afar)"
    )]
    Terminal(#[source] std::io::Error),
    /// The person went away.
    #[error("no password was typed, so nothing was made")]
    Ended,
    /// Sealing.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl SealingError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::File(_) | Self::NoDocument { .. } => 66,
            Self::NoTarget { .. } => 65,
            Self::Terminal(_) | Self::Ended => 74,
            Self::Seal(_) => 70,
        }
    }
}

/// The text for the document, in place of the target's entry.
#[derive(Serialize)]
pub(super) struct ForDocument {
    schema: &'static str,
    pub(super) target: TargetName,
    pub(super) fingerprint: KeyFingerprint,
    backend: Backend,
    pub(super) creds: Sealed,
}

/// The user and password for the server.
pub(super) struct Login {
    user: String,
    password: Secret,
}

impl SealingArguments {
    /// The backend of the backup server as it is written, which need not have a key yet.
    pub(super) fn written(&self) -> Result<Value, SealingError> {
        let missing = || SealingError::NoDocument { path: self.document.clone() };
        let bytes = atomic_file::read(&self.document, DOCUMENT_BYTES_MAX as u64)?.ok_or_else(missing)?;
        let backend = draft::backend(&bytes, &self.target).map_err(|why| match why {
            NoMedium::Form(source) => self.no_target(Some(source)),
            NoMedium::Unnamed => self.no_target(None),
        })?;
        if backend.get("pbs").is_some_and(Value::is_object) { Ok(backend) } else { Err(self.no_target(None)) }
    }

    /// The document's entry is no backend of a backup server.
    pub(super) fn no_target(&self, source: Option<serde_json::Error>) -> SealingError {
        SealingError::NoTarget { path: self.document.clone(), target: self.target.clone(), source }
    }

    /// Asks for the password.
    pub(super) fn login(&self, terminal: &mut Terminal) -> Result<Login, StorageCommandError> {
        let mut typed = Locked::with_capacity(TYPED_BYTES_MAX).map_err(SealingError::Terminal)?;
        let question = format!("Password of {} at the backup server (not shown): ", self.user);
        terminal.say(&question).map_err(SealingError::Terminal)?;
        let password = match terminal.line(&mut typed).map_err(SealingError::Terminal)? {
            Line::Typed => Secret::new(typed.as_text().trim_end_matches(['\r', '\n']).to_owned()),
            Line::Empty | Line::Ended => return Err(SealingError::Ended.into()),
        };
        Creds::may_log_in(&self.user, &password)?;
        Ok(Login { user: self.user.clone(), password })
    }

    /// Seals the key with the login to this host.
    pub(super) fn seal(
        &self,
        (schema, to): (&'static str, &HostRecipient),
        backend: Backend,
        login: Login,
        key: BackupKey,
    ) -> Result<ForDocument, StorageCommandError> {
        let fingerprint = key.fingerprint().clone();
        let meant = SealContext { target: &self.target, backend: &backend };
        let creds = Creds::new(meant, login.user, login.password, Some(key))?;
        let creds = creds.seal(to).map_err(SealingError::Seal)?;
        Ok(ForDocument { schema, target: self.target.clone(), fingerprint, backend, creds })
    }

    /// Prints the result.
    pub(super) fn report(&self, made: &ForDocument, words: impl FnOnce(&ForDocument)) {
        match self.output {
            Output::Json => print_json(made),
            Output::Table => words(made),
        }
    }
}

/// The public half of this host's own key.
pub(super) fn recipient(state: &Path) -> Result<HostRecipient, StorageCommandError> {
    let key = host_key::read(state)?.ok_or(StorageCommandError::NoKey)?;
    key.recipient().map_err(|_| StorageCommandError::NoKey)
}

/// The terminal.
pub(super) fn terminal() -> Result<Terminal, SealingError> {
    Terminal::open().map_err(SealingError::Terminal)
}
