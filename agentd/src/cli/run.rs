//! `agentd run`: the daemon, in the foreground, as systemd starts it.

use tracing_subscriber::EnvFilter;

use crate::port::privilege::{PrivilegeError, Privileges};
use crate::run::{self, RunError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// Two threads: one for the loops, one for guests' handshakes. SQLite and hashing have threads of their own.
const WORKERS: usize = 2;

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The daemon refuses to run as root or with any capability, and a second one on the same state folder. It stops on SIGTERM \
and SIGINT, after telling the hub. Under systemd it tells when it is ready and feeds the watchdog while its loop moves.")]
pub struct RunArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// What is logged: a level, or directives such as `info,agentd::task=debug`.
    #[arg(long, env = "HOLDFAST_AGENT_LOG", default_value = "info", value_name = "FILTER", value_parser = filter)]
    log: String,
    /// Lines for people, or JSON for programs.
    #[arg(long, env = "HOLDFAST_AGENT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

fn filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    text.parse::<EnvFilter>().map(|_| text.to_owned())
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
    log_to_stderr(arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("agentd")
        .enable_all()
        .build()
        .map_err(RunCommandError::Runtime)?;
    Ok(runtime.block_on(run::run(settings, unprivileged))?)
}

fn log_to_stderr(arguments: &RunArguments) {
    let filter = EnvFilter::new(&arguments.log);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match arguments.log_format {
        // The journal has the time already; a terminal's reader looks at the clock.
        LogFormat::Text => log.with_ansi(false).with_target(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
