//! `agentd thaw`: releases a guest with frozen tokens.
//!
//! Exit code 0: it may use the local API again, or was not frozen. 1: the agent refused. 64: no guest has this name.
//! 69: no agent runs. The guest keeps its token: the operator who thaws it has found out which of the two is the guest,
//! and ended the other. A copy that still exists freezes it again with its next call.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::GuestReport;

use crate::port::admin_socket::{self, Answer, Question, StatusError};
use crate::port::store::token_holder::Thawed;
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct ThawArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The guest's name, number or uid.
    guest: String,
    /// What you found and did, for the audit.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Why no guest was released.
#[derive(Debug, thiserror::Error)]
pub enum ThawError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] StatusError),
    /// No guest of that name.
    #[error("no guest here is called {0:?}: `agentd status` shows them")]
    NoSuch(String),
    /// More than one of that name.
    #[error("more than one guest is called {0:?}: name it by its uid")]
    Several(String),
}

impl ThawError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Agent(error) => error.exit_code(),
            Self::NoSuch(_) | Self::Several(_) => 64,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`ThawError`].
pub fn run(arguments: &ThawArguments) -> Result<(), ThawError> {
    let settings = Settings::load(&arguments.config)?;
    let status = admin_socket::ask(&settings.state.dir)?;
    let guest = named(status.sections.guests.as_deref().unwrap_or_default(), &arguments.guest)?;
    let question = Question::Thaw { guest, reason: arguments.reason.clone() };
    match admin_socket::put(&settings.state.dir, question)? {
        Answer::Thawed(Thawed::Yes) => println!("{} may use the local API again", arguments.guest),
        Answer::Thawed(Thawed::WasOpen) => println!("{} was not frozen", arguments.guest),
        Answer::Thawed(Thawed::Unknown) => return Err(ThawError::NoSuch(arguments.guest.clone())),
        _ => return Err(StatusError::Other.into()),
    }
    Ok(())
}

/// The selected guest. A uid is passed on as it is: the agent knows guests that its last observation did not show.
fn named(guests: &[GuestReport], which: &str) -> Result<GuestUid, ThawError> {
    if let Ok(uid) = which.parse() {
        return Ok(uid);
    }
    let called = |guest: &&GuestReport| {
        guest.name == which || guest.vmid.is_some_and(|vmid| vmid.to_string() == which)
    };
    let mut found = guests.iter().filter(called).filter_map(|guest| guest.uid);
    match (found.next(), found.next()) {
        (None, _) => Err(ThawError::NoSuch(which.to_owned())),
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(ThawError::Several(which.to_owned())),
    }
}
