//! `agentd metrics`: the metrics of this host, in Prometheus' text format.
//!
//! Exit code 0: shown. 69: no agent runs. For the textfile collector of node_exporter, or to see what a scraper would get.

use std::io::Write as _;

use crate::port::admin_socket::{self, Answer, Question, StatusError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct MetricsArguments {
    #[command(flatten)]
    config: ConfigPath,
}

/// Why there are no metrics.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Status(#[from] StatusError),
    #[error("the metrics cannot be written to the standard output")]
    Print(#[source] std::io::Error),
}

impl MetricsError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Status(error) => error.exit_code(),
            Self::Print(_) => 74,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`MetricsError`].
pub fn run(arguments: &MetricsArguments) -> Result<(), MetricsError> {
    let settings = Settings::load(&arguments.config)?;
    match admin_socket::put(&settings.state.dir, Question::Metrics)? {
        Answer::Metrics(page) => std::io::stdout().write_all(page.as_bytes()).map_err(MetricsError::Print),
        _ => Err(StatusError::Other.into()),
    }
}
