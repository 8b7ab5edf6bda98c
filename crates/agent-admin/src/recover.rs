//! `agentd recover`: an escrow file, opened with a recovery code.
//!
//! It needs no hub and none of this host's own records. The agent need not run, nor be set up.
//!
//! With `--to` the key file is written in the form that Proxmox takes. Without it the code is only tried: a drill. The
//! words are read from the terminal alone, not shown, and never from arguments, environment or a pipe. Wrong words are
//! reported before anything slow is done, by their positions, with the words that were probably meant. Exit code 0: it
//! opened. 65: the file is no escrow file, or was changed. 66: it cannot be read. 73: the key file cannot be made. 74:
//! there is no terminal, or its input ended.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use holdfast_recovery::escrow::{Escrow, EscrowFile, Expected, FILE_BYTES_MAX, OpenError};

use super::code_prompt::{self, TypingFailed};
use super::terminal::Terminal;
use crate::port::held_folder::{self, HeldError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct RecoverArguments {
    /// The wrapped key (`escrow-N.age`): from the operator, from a backup disk, or from the page "Wrapped key" of the
    /// sheet.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Write the key file here. It must not exist yet. Without this option, the code is only tried.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The wrapped key cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no escrow file, or its content is refused.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No words.
    #[error(transparent)]
    Typing(#[from] TypingFailed),
    /// The key file.
    #[error("{} cannot be made; it must not be there yet", .path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A link, or a stranger's file, where a file was named.
    #[error(transparent)]
    Held(HeldError),
    /// The key cannot be written as text.
    #[error("the key cannot be written as a key file: this is a fault of this program")]
    Key(#[source] holdfast_seal::OpenError),
}

impl RecoverError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Unread { .. } => 66,
            Self::Open(_) => 65,
            Self::Typing(error) => error.exit_code(),
            Self::Unwritten { .. } => 73,
            Self::Held(_) => 77,
            Self::Key(_) => 70,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`RecoverError`].
pub fn run(arguments: &RecoverArguments) -> Result<(), RecoverError> {
    let file = read(&arguments.from)?;
    // Before the words are asked for, so that no operator types them twice because a file is in the way.
    if let Some(path) = arguments.to.as_deref().filter(|path| path.symlink_metadata().is_ok()) {
        let source = io::ErrorKind::AlreadyExists.into();
        return Err(RecoverError::Unwritten { path: path.to_owned(), source });
    }
    let mut terminal = Terminal::open().map_err(TypingFailed::Terminal)?;
    let escrow = code_prompt::open(&file, Expected::Any, &mut terminal)??;
    drop(terminal);
    let context = escrow.context();
    println!("The code opens the file.");
    println!("host         {} (customer {}, epoch {})", context.host_name, context.customer, context.epoch);
    println!("sheet        {}, made on {}", context.code, context.made_at);
    println!("fingerprint  {}", escrow.key().fingerprint());
    if let Some(path) = &arguments.to {
        write(path, &escrow)?;
        println!("The key file is {}.", path.display());
    }
    Ok(())
}

/// Reads a wrapped key.
///
/// # Errors
/// [`RecoverError`].
pub(super) fn read(path: &Path) -> Result<EscrowFile, RecoverError> {
    let unread = |source| RecoverError::Unread { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // It may be stored on a backup disk, in the agent's folder there.
    let file = held_folder::open_file(path).map_err(|error| held(error, unread))?;
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    Ok(EscrowFile::parse(&bytes)?)
}

fn write(path: &Path, escrow: &Escrow) -> Result<(), RecoverError> {
    let json = escrow.key().to_json().map_err(RecoverError::Key)?;
    let unwritten = |source| RecoverError::Unwritten { path: path.to_owned(), source };
    held_folder::create_new(path, json.expose().as_bytes(), 0o600).map_err(|error| held(error, unwritten))
}

/// A refusal is returned as it is; a disk error gets a message about the attempted action.
fn held(error: HeldError, failed: impl FnOnce(io::Error) -> RecoverError) -> RecoverError {
    if error.is_refusal() { RecoverError::Held(error) } else { failed(error.into()) }
}
