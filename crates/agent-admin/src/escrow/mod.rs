//! `agentd escrow`: recovery codes.
//!
//! | command | module |
//! | --- | --- |
//! | `create`, `rotate` | [`create`] |
//! | `drill` | [`drill`] |
//! | `retire` | [`drill`] as well: a code is retired by typing the one that replaced it |
//! | `status` | [`status`] |
//!
//! The running agent keeps the records and the wrapped keys; codes and keys are in this process alone, and are never
//! sent to the agent. Exit code 0: done. 1: the agent refuses. 65: a sealed or wrapped key does not open. 69: no agent
//! runs. 73: the sheet cannot be made. 74: there is no terminal, or its input ended. 78: the configuration.

use std::path::PathBuf;

use holdfast_recovery::code::MakeError;
use holdfast_recovery::escrow::{CodeNumber, OpenError, WrapError};
use holdfast_recovery::sheet::DrawError;

use super::code_prompt::TypingFailed;
use crate::port::admin_socket::StatusError;
use crate::port::host_key::HostKeyError;
use crate::settings::SettingsError;

mod back;
mod create;
mod drill;
mod paper;
mod screen;
mod signals;
mod status;

/// The commands for recovery codes.
#[derive(Debug, clap::Subcommand)]
pub enum EscrowCommand {
    /// Create the recovery code that opens the off-site backups when this host is gone.
    #[command(after_long_help = LONG)]
    Create(create::CreateArguments),
    /// Create another code for the same key. Earlier codes still open it until they are retired.
    #[command(after_long_help = LONG)]
    Rotate(create::CreateArguments),
    /// Check the code in use by typing its words: the answer is yes or no, and nothing is shown. Do this every half
    /// year.
    Drill(drill::DrillArguments),
    /// Retire an older code by typing the one that replaced it, at the earliest 14 days after that one was created.
    Retire(drill::RetireArguments),
    /// Show all codes, which of them open which key, and where the wrapped keys are stored.
    Status(status::StatusArguments),
}

const LONG: &str = "\
The backup key of the off-site target is wrapped under eleven words that are created here and shown once: on the \
terminal's alternate screen, to write down, or as a sheet in a file in memory (`--sheet /dev/shm/sheet.pdf`), to \
print. Then the command asks for three of them, and stores the wrapped key only when they are right. The agent stores \
the number of the code, never the words. Ctrl-C at any moment leaves everything as it was, and so does a lost \
connection: the sheet is removed, and the next code gets the number of a code that was not stored. The next \
`agentd escrow create` removes what a killed process leaves in /dev/shm or in the folder of --sheet.

The sheet's second page says where the backups are, and every command to type to read them without Holdfast. \
`holdfast escrow kit` prints the same page with today's state.

Printers and spoolers keep what they print: use one without a disk, or write the words by hand.";

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum EscrowCommandError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] StatusError),
    /// No answer to the last request.
    #[error(
        "the words were right, and the agent did not say whether the code is kept: hold on to the paper until \
         `agentd escrow status` tells that code {code} is in use; if it says that it opens nothing, destroy the paper and \
         begin again. What opened the key before still does"
    )]
    Unsure {
        /// Which.
        code: CodeNumber,
        /// Why.
        #[source]
        source: StatusError,
    },
    /// The host's key.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// There is none.
    #[error(
        "this host has no key of its own yet, so nothing was sealed to it: the agent makes it at its first start"
    )]
    NoHostKey,
    /// The credentials.
    #[error(transparent)]
    Creds(#[from] holdfast_seal::OpenError),
    /// There is no key in them.
    #[error(
        "no backup key was sealed for this target: seal its credentials with the key, with `holdfast storage seal`"
    )]
    NoKey,
    /// No code.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// It cannot be wrapped.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// It does not open, or something else is in it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The sheet.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// A place that remembers.
    #[error(
        "{} does not lie in memory, and on a disk the words would outlive the paper: take a place like /dev/shm/sheet.pdf",
        .0.display()
    )]
    OnDisk(PathBuf),
    /// Something else is there.
    #[error(
        "{} is there already, and is no sheet that a broken-off try left: take another name, or remove it",
        .0.display()
    )]
    Taken(PathBuf),
    /// Another process prints it.
    #[error("{} is the sheet of another `agentd escrow`, which still runs: end that one first", .0.display())]
    Busy(PathBuf),
    /// Signals could not be received.
    #[error("a sheet could not be taken away again when this is ended by a signal, so none is made")]
    Signals(#[source] std::io::Error),
    /// A sheet that cannot be made.
    #[error("the sheet {} cannot be made", .path.display())]
    Sheet {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A terminal that cannot erase what it shows.
    #[error(
        "this terminal cannot take back what it shows (TERM is {0:?}): use another one, or have a sheet made with --sheet"
    )]
    Plain(String),
    /// No words.
    #[error(transparent)]
    Typing(#[from] TypingFailed),
    /// Ended before the words were typed back.
    #[error(
        "the words were not typed back, so this code was thrown away and opens nothing: destroy what you wrote or printed, and \
         begin again. What opened the key before still does"
    )]
    NotBack,
}

impl EscrowCommandError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Agent(error) | Self::Unsure { source: error, .. } => error.exit_code(),
            Self::Creds(_) | Self::NoKey | Self::Open(_) => 65,
            Self::NoHostKey => 69,
            Self::Make(_) | Self::Wrap(_) | Self::Draw(_) | Self::Signals(_) => 70,
            Self::OnDisk(_) | Self::Taken(_) | Self::Busy(_) | Self::Sheet { .. } => 73,
            Self::HostKey(_) | Self::Plain(_) | Self::NotBack => 74,
            Self::Typing(error) => error.exit_code(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`EscrowCommandError`].
pub fn run(command: &EscrowCommand) -> Result<(), EscrowCommandError> {
    use crate::plan::escrow::Purpose;
    match command {
        EscrowCommand::Create(arguments) => create::run(arguments, Purpose::First),
        EscrowCommand::Rotate(arguments) => create::run(arguments, Purpose::Another),
        EscrowCommand::Drill(arguments) => drill::run(arguments),
        EscrowCommand::Retire(arguments) => drill::retire(arguments),
        EscrowCommand::Status(arguments) => status::run(arguments),
    }
}
