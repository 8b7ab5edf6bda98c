//! The command line: what a person at the box can ask for.
//!
//! What comes in: arguments. What goes out: an exit code of sysexits, errors as one sentence on standard error. Each
//! command is a module of its own.

use clap::{Parser, Subcommand};
use holdfast_protocol::strict::chain;

use crate::settings::SettingsError;

/// The host agent of Holdfast: keeps the guests of this Proxmox box as the operator wants them.
#[derive(Debug, Parser)]
#[command(name = "agentd", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the configuration and say what it holds.
    CheckConfig(crate::settings::ConfigPath),
}

/// Why a command failed; the kinds tell who must act.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The configuration is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl CommandError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
        }
    }
}

/// Reads the arguments, runs the command, tells the outcome.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    match dispatch(arguments.command) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agentd: {}", chain(&error));
            std::process::ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(command: Command) -> Result<(), CommandError> {
    match command {
        Command::CheckConfig(at) => {
            let settings = crate::settings::Settings::load(&at)?;
            println!(
                "{} is well-formed: node {}, pool {}, {} golden images",
                at.config.display(),
                settings.proxmox.node,
                settings.proxmox.pool,
                settings.golden.len()
            );
            Ok(())
        }
    }
}
