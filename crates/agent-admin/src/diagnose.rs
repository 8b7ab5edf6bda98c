//! `agentd diagnose`: one named reading of this host, as a bounded text.
//!
//! Exit code 0: shown. 69: no agent runs. The text is the same that a work order of the hub gets.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::work_order::DiagnosticName;

use crate::port::admin_socket::{self, Answer, Question, StatusError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The readings, as they are typed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Name {
    /// What is wrong with the host, as the agent finds it
    Doctor,
    /// Storages and targets, and the health of disks
    Storage,
    /// Addresses and filters of guests, and tunnels
    Network,
    /// Locks and running tasks, with user and beginning
    Locks,
    /// The newest operations with their steps
    Journal,
    /// What the guest agents said last
    GuestAgent,
}

impl From<Name> for DiagnosticName {
    fn from(name: Name) -> Self {
        match name {
            Name::Doctor => Self::Doctor,
            Name::Storage => Self::Storage,
            Name::Network => Self::Network,
            Name::Locks => Self::Locks,
            Name::Journal => Self::Journal,
            Name::GuestAgent => Self::GuestAgent,
        }
    }
}

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A text is at most 64 KiB long, and what looks like a secret is blacked out. The hub gets the same text by \
`holdfast order diagnose`. Nothing is changed, and no command can be named.")]
pub struct DiagnoseArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// What is read.
    #[arg(value_enum)]
    name: Name,
    /// Only of this guest, by its uid, where the reading is of guests.
    #[arg(long)]
    guest: Option<GuestUid>,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum DiagnoseError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Status(#[from] StatusError),
}

impl DiagnoseError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Status(error) => error.exit_code(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`DiagnoseError`].
pub fn run(arguments: &DiagnoseArguments) -> Result<(), DiagnoseError> {
    let settings = Settings::load(&arguments.config)?;
    let question = Question::Diagnose { name: arguments.name.into(), guest: arguments.guest };
    let Answer::Diagnosed(text) = admin_socket::put(&settings.state.dir, question)? else {
        return Err(StatusError::Other.into());
    };
    print!("{text}");
    Ok(())
}
