//! `agentd storage make-key`: the key of a backup server's target, made here, so that nobody but this box ever has it.
//!
//! What comes in: a document that names the target, name and password for the server, typed at a terminal. What goes out:
//! the target's `medium` with the fingerprint of a fresh key, and its `creds` with the key inside, sealed to this very host.
//! Both go into the document; an operator signs for the fingerprint as for any other. Nothing is kept here: until the
//! document carries it, the key encrypts nothing, and is lost with the text without harm. Deliberately absent: showing the
//! key, changing the document, and changing the key of a target that is in use.

use std::path::{Path, PathBuf};

use holdfast_protocol::desired::DOCUMENT_BYTES_MAX;
use holdfast_protocol::id::{KeyFingerprint, TargetName};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::draft::{self, NoMedium};
use holdfast_protocol::storage::{Medium, Sealed};
use holdfast_recovery::locked::Locked;
use holdfast_seal::backup_key::BackupKey;
use holdfast_seal::{Creds, Meant, SealError};
use serde::Serialize;
use serde_json::Value;

use super::StorageCommandError;
use crate::cli::terminal::{Line, Terminal};
use crate::cli::{Output, now, print_json};
use crate::port::atomic_file::{self, FileError};
use crate::port::host_key;
use crate::settings::{ConfigPath, Settings};

/// A line of the terminal has no more.
const TYPED_BYTES_MAX: usize = 4096;

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct MakeKeyArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The document that names the target with its medium; what stands at its `key` is not looked at.
    #[arg(long, value_name = "FILE")]
    document: PathBuf,
    /// The target.
    #[arg(long, value_name = "TARGET")]
    target: TargetName,
    /// Who logs in at the backup server.
    #[arg(long, value_name = "USER")]
    user: String,
    /// Words for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum MakeKeyError {
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
        "{} names no backup server {target} with a medium: write it there first, without `key` and `creds`",
        path.display()
    )]
    NoTarget {
        /// The document.
        path: PathBuf,
        /// The target.
        target: TargetName,
        /// What is wrong with it, where it is there.
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

impl MakeKeyError {
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

/// What goes into the document, in the target's place.
#[derive(Serialize)]
struct Made<'a> {
    schema: &'static str,
    target: &'a TargetName,
    fingerprint: &'a KeyFingerprint,
    medium: &'a Medium,
    creds: &'a Sealed,
}

/// Makes it.
///
/// # Errors
/// [`StorageCommandError`]; there is no key then.
pub fn run(arguments: &MakeKeyArguments) -> Result<(), StorageCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let host_key = host_key::read(&settings.state.dir)?.ok_or(StorageCommandError::NoKey)?;
    let recipient = host_key.recipient().map_err(|_| StorageCommandError::NoKey)?;
    let written = written(&arguments.document, &arguments.target)?;
    let password = password(&arguments.user)?;
    let key = BackupKey::generate(now())?;
    let medium = with_key(written, key.fingerprint()).map_err(|source| MakeKeyError::NoTarget {
        path: arguments.document.clone(),
        target: arguments.target.clone(),
        source: Some(source),
    })?;
    let meant = Meant { target: &arguments.target, medium: &medium };
    let fingerprint = key.fingerprint().clone();
    let creds = Creds::new(meant, arguments.user.clone(), password, Some(key))?;
    let creds = creds.seal(&recipient).map_err(MakeKeyError::Seal)?;
    let made = Made {
        schema: "holdfast.made-key/v1",
        target: &arguments.target,
        fingerprint: &fingerprint,
        medium: &medium,
        creds: &creds,
    };
    match arguments.output {
        Output::Json => print_json(&made),
        Output::Table => tell(&made),
    }
    Ok(())
}

fn tell(made: &Made<'_>) {
    println!(
        "A key was made for {}, which nobody has but this box. Put into its place in the document:",
        made.target
    );
    println!("  \"key\" of its medium: \"{}\"", made.fingerprint);
    println!("  \"creds\": \"{}\"", made.creds.as_str());
    println!(
        "An operator signs for it. Then make its recovery code here at once: `agentd escrow create`. Without one its"
    );
    println!("backups are lost with this box, for everyone.");
}

/// The medium as it is written, which need not have a key yet.
fn written(document: &Path, target: &TargetName) -> Result<Value, MakeKeyError> {
    let none = |source| MakeKeyError::NoTarget { path: document.to_owned(), target: target.clone(), source };
    let missing = || MakeKeyError::NoDocument { path: document.to_owned() };
    let bytes = atomic_file::read(document, DOCUMENT_BYTES_MAX as u64)?.ok_or_else(missing)?;
    let medium = draft::medium(&bytes, target).map_err(|why| match why {
        NoMedium::Form(source) => none(Some(source)),
        NoMedium::Unnamed => none(None),
    })?;
    if medium.get("pbs").is_some_and(Value::is_object) { Ok(medium) } else { Err(none(None)) }
}

fn with_key(mut medium: Value, fingerprint: &KeyFingerprint) -> Result<Medium, serde_json::Error> {
    if let Some(pbs) = medium.get_mut("pbs").and_then(Value::as_object_mut) {
        pbs.insert("key".to_owned(), fingerprint.as_str().into());
    }
    serde_json::from_value(medium)
}

fn password(user: &str) -> Result<Secret, MakeKeyError> {
    let mut terminal = Terminal::open().map_err(MakeKeyError::Terminal)?;
    let mut typed = Locked::with_capacity(TYPED_BYTES_MAX).map_err(MakeKeyError::Terminal)?;
    terminal
        .say(&format!("Password of {user} at the backup server (not shown): "))
        .map_err(MakeKeyError::Terminal)?;
    match terminal.line(&mut typed).map_err(MakeKeyError::Terminal)? {
        Line::Typed => Ok(Secret::new(typed.as_text().trim_end_matches(['\r', '\n']).to_owned())),
        Line::Empty | Line::Ended => Err(MakeKeyError::Ended),
    }
}
