//! `agentd run`: the daemon, in the foreground, as systemd starts it.

use logging::{Form, ParseError, Service, Targets};

use crate::port::privilege::{PrivilegeError, Privileges};
use crate::run::{self, RunError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The daemon refuses to run as root, with any capability, or as a second one on the same state folder. It stops on \
SIGTERM and SIGINT, after notifying the hub. Under systemd it reports when it is ready, and feeds the watchdog while \
its loop runs.")]
pub struct RunArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// What to log: a level, or directives such as `info,agentd::task=debug`.
    #[arg(long, env = "HOLDFAST_AGENT_LOG", default_value = "info", value_name = "FILTER", value_parser = filter)]
    log: Targets,
    /// Fields of systemd's journal where it reads along, lines for people on a terminal, JSON elsewhere; or always one
    /// form.
    #[arg(long, env = "HOLDFAST_AGENT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Auto)]
    log_format: LogFormat,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// By the place of standard error.
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl From<LogFormat> for Form {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Auto => Self::ByPlace,
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

fn filter(text: &str) -> Result<Targets, ParseError> {
    text.parse()
}

/// Why the daemon did not run, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunCommandError {
    /// Too much power.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// No runtime.
    #[error("the program's runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    /// The daemon.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl RunCommandError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Privilege(_) => 77,
            Self::Settings(_) => 78,
            Self::Runtime(_) => 71,
            Self::Run(error) => error.exit_code(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`RunCommandError`].
pub fn run(arguments: &RunArguments) -> Result<(), RunCommandError> {
    // Before anything is opened, and before there is a second thread.
    let unprivileged = Privileges::of_this_process()?.none()?;
    let settings = Settings::load(&arguments.config)?;
    logging::start(Service::Agentd, arguments.log.clone(), arguments.log_format.into());
    // One thread for all loops: none of them computes for long, a handshake takes a third of a millisecond, and SQLite
    // and hashing have threads of their own. Each further thread costs memory and wake-ups on a host that belongs to
    // others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunCommandError::Runtime)?;
    Ok(runtime.block_on(run::run(settings, unprivileged))?)
}
