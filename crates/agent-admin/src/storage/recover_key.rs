//! `agentd storage recover-key`: the backup key of a lost host.
//!
//! It is opened with the recovery code and sealed to this host, in one process.
//!
//! Input: the wrapped key, handed over by the hub or from a file, and the words, typed at a terminal. The output is
//! that of `make-key` ([`super::sealing`]), so that the rest is one path: an operator signs for the fingerprint, and
//! Proxmox gets the key with the target's entry. The fingerprint must already be in the document: operators sign for
//! it, and no other key is sealed, whatever the hub hands over. The handed-over file must also match the hub's
//! description: this host's, of this sheet and date. Words and key are only in this process's memory, and are wiped
//! once the key is sealed. Deliberately absent: a file of the bare key (`agentd recover`), and trusting the hub about
//! which key it should be.

use std::path::{Path, PathBuf};

use holdfast_protocol::id::{KeyFingerprint, TargetName};
use holdfast_protocol::storage::Backend;
use holdfast_recovery::escrow::{Context, EscrowFile, Expected, Record};

use super::StorageCommandError;
use super::sealing::{self, ForDocument, SealingArguments};
use crate::code_prompt::{self, TypingFailed};
use crate::port::admin_socket::{EscrowQuestion, put_escrow};
use crate::port::host_replacement::{HandOverError, HandOverFolder};
use crate::port::identity::{IdentityError, IdentityFolder};
use crate::recover::{self, RecoverError};
use crate::settings::Settings;

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct RecoverKeyArguments {
    #[command(flatten)]
    sealing: SealingArguments,
    /// The wrapped key from a backup disk or from the page "Wrapped key" of the sheet, where the hub handed over none.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Why no key is sealed.
#[derive(Debug, thiserror::Error)]
pub enum RecoverKeyError {
    /// What was handed over.
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    /// Who this host is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Nothing was.
    #[error(
        "no wrapped key was handed over here{why}: give the file from a backup disk or from the sheet with --from",
        why = .withheld.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
    )]
    NotHanded {
        /// Why the hub kept it back.
        withheld: Option<String>,
    },
    /// The host did not replace the lost one completely.
    #[error("this box did not take the lost one's place to the end: run `agentd enroll --restore` again")]
    NotEnrolled,
    /// The document does not name the key.
    #[error(
        "{} names no `key` for {target}: write the fingerprint there that operators sign for; it stands in the lost box's document \
         and on the sheet",
        path.display()
    )]
    Keyless {
        /// The document.
        path: PathBuf,
        /// The target.
        target: TargetName,
    },
    /// Other keys were handed over.
    #[error(
        "what the hub handed over is said to be {handed}, and {} names {wanted} for {target}: correct the document, or give that \
         key's file with --from",
        path.display()
    )]
    OtherKey {
        /// The document.
        path: PathBuf,
        /// The target.
        target: TargetName,
        /// The key that it names.
        wanted: KeyFingerprint,
        /// What was handed over.
        handed: String,
    },
    /// The file or the words.
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

impl RecoverKeyError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::HandOver(_) | Self::Identity(_) => 74,
            Self::NotHanded { .. } | Self::NotEnrolled => 66,
            Self::Keyless { .. } | Self::OtherKey { .. } => 65,
            Self::Recover(error) => error.exit_code(),
        }
    }
}

/// Opens and seals it.
///
/// # Errors
/// [`StorageCommandError`]; nothing is sealed then, and nothing changed.
pub fn run(arguments: &RecoverKeyArguments) -> Result<(), StorageCommandError> {
    let (from, arguments) = (arguments.from.as_deref(), &arguments.sealing);
    let settings = Settings::load(&arguments.config)?;
    let state = &settings.state.dir;
    // All refusals come before the operator types eleven words.
    let recipient = sealing::recipient(state)?;
    let (backend, key) = backend(arguments)?;
    let (file, record) = match from {
        Some(path) => (recover::read(path).map_err(RecoverKeyError::Recover)?, None),
        None => handed(state, &key, arguments).map(|(file, record)| (file, Some(record)))?,
    };
    let mut terminal = sealing::terminal()?;
    let login = arguments.login(&mut terminal)?;
    if let Some(context) = record.as_ref().map(|record| &record.context) {
        let says = format!("Recovery code of sheet {}, made {}.\n", context.code, context.made_at);
        terminal.say(&says).map_err(sealing::SealingError::Terminal)?;
    }
    let wanted = record.as_ref().map_or(Expected::Key(&key), Expected::Exactly);
    let opened = code_prompt::open(&file, wanted, &mut terminal).map_err(RecoverError::Typing);
    let escrow = opened.and_then(|opened| Ok(opened?)).map_err(RecoverKeyError::Recover)?;
    let (context, key) = escrow.into_parts();
    let sealed = arguments.seal(("holdfast.recovered-key/v1", &recipient), backend, login, key)?;
    if record.is_some() {
        // The sheet is in force here as well, and was typed just now. Where no agent runs that notes it, a drill does.
        let _noted = put_escrow(state, EscrowQuestion::Drilled { code: context.code });
    }
    let gone = "The code opens the file. The key is sealed to this box, and nothing of it is left here.\n";
    terminal.say(gone).map_err(|error| RecoverKeyError::Recover(TypingFailed::Terminal(error).into()))?;
    drop(terminal);
    arguments.report(&sealed, |sealed| words(sealed, &context));
    Ok(())
}

/// The complete backend, with the key that it names.
fn backend(arguments: &SealingArguments) -> Result<(Backend, KeyFingerprint), StorageCommandError> {
    let written = arguments.written()?;
    let named = written.get("pbs").and_then(|pbs| pbs.get("key")).is_some();
    if !named {
        let (path, target) = (arguments.document.clone(), arguments.target.clone());
        return Err(RecoverKeyError::Keyless { path, target }.into());
    }
    let backend = serde_json::from_value(written).map_err(|why| arguments.no_target(Some(why)))?;
    match &backend {
        Backend::Pbs { key, .. } => Ok((backend.clone(), key.clone())),
        _ => Err(arguments.no_target(None).into()),
    }
}

/// The wrapped key that the hub handed over, and its expected record by the hub's description.
fn handed(
    state: &Path,
    key: &KeyFingerprint,
    arguments: &SealingArguments,
) -> Result<(EscrowFile, Record), RecoverKeyError> {
    let handed = HandOverFolder::of(state).read()?;
    let withheld = handed.as_ref().and_then(|handed| handed.withheld.as_ref()).map(ToString::to_string);
    let all = handed.map(|handed| handed.escrows).unwrap_or_default();
    if all.is_empty() {
        return Err(RecoverKeyError::NotHanded { withheld });
    }
    let said: Vec<String> = all.iter().map(|found| format!("key {}", found.version.fingerprint)).collect();
    let found = all.into_iter().find(|found| found.version.fingerprint == *key);
    let found = found.ok_or_else(|| RecoverKeyError::OtherKey {
        path: arguments.document.clone(),
        target: arguments.target.clone(),
        wanted: key.clone(),
        handed: said.join(" and "),
    })?;
    let identity = IdentityFolder::open(state)?.read()?.ok_or(RecoverKeyError::NotEnrolled)?;
    let file = EscrowFile::parse(found.file.as_bytes()).map_err(RecoverError::Open)?;
    let version = found.version;
    let context = Context {
        host: identity.enrolled.host_id,
        host_name: identity.enrolled.host_name,
        customer: version.customer,
        epoch: version.epoch,
        code: version.code,
        made_at: version.made_at,
    };
    Ok((file, Record { context, fingerprint: version.fingerprint }))
}

fn words(sealed: &ForDocument, context: &Context) {
    println!(
        "The key of {} was opened by the code of sheet {} ({}, customer {}, made on {}).",
        sealed.target, context.code, context.host_name, context.customer, context.made_at
    );
    println!("fingerprint  {}", sealed.fingerprint);
    println!("Put into its place in the document:");
    println!("  \"creds\": \"{}\"", sealed.creds.as_str());
    println!(
        "An operator signs for it; then Proxmox gets the key, and guests that were taken up come back from there."
    );
    println!(
        "The sheet goes on opening the key: `agentd escrow drill` tries it here, `agentd escrow rotate` makes another."
    );
}
