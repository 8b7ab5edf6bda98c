//! The command line of `agentd`: its commands, and which module does each.
//!
//! In: arguments. Out: an exit code of sysexits, the outcome on standard output, and errors as one sentence on standard
//! error. `run` is here; every command that a person runs is in `agent-admin`.

use agent_admin::{
    audit, break_glass, diagnose, doctor, enroll, escrow, golden, metrics, parked, recover, recovery,
    release, rescue, restore_tests, setup, status, storage, token_renewal, unfreeze,
};
use clap::{Parser, Subcommand};
use holdfast_manual::Section;
use holdfast_protocol::json::chain;

mod current_build;
pub mod run;

/// The host agent of Holdfast: keeps the guests of this Proxmox box as the operator wants them.
#[derive(Debug, Parser)]
#[command(name = "agentd", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Enroll this host at a hub, by an invite or by an enrollment request.
    Enroll(enroll::EnrollArguments),
    /// Run the daemon in the foreground, as systemd starts it.
    Run(Box<run::RunArguments>),
    /// Create what the agent needs, in Proxmox and on this host: user, roles, tokens, folders, settings.
    Setup(Box<setup::SetupArguments>),
    /// Make tokens for Proxmox anew that are old enough, and have the running agent use them.
    RenewTokens(token_renewal::RenewTokensArguments),
    /// Check whether everything in Proxmox is as the agent needs it, and show what repairs the rest.
    Doctor(doctor::DoctorArguments),
    /// Show the state of the running agent, its guests and its work.
    Status(status::StatusArguments),
    /// Read one named thing of this host as a bounded text, as the hub can order it.
    Diagnose(diagnose::DiagnoseArguments),
    /// Print the metrics of this host, in Prometheus' text format.
    Metrics(metrics::MetricsArguments),
    /// Show the results of restore tests, and whether restores take longer than before.
    RestoreTests(restore_tests::RestoreTestsArguments),
    /// Storage targets: the state of the disks, shares and backup servers of this host.
    #[command(subcommand)]
    Storage(storage::StorageCommand),
    /// Operations that were parked for a person: show them, try them again, or end them.
    Parked(parked::ParkedArguments),
    /// Show which operations the agent found open when it started, and how they ended.
    Recovery(recovery::RecoveryArguments),
    /// Show what the records of this host hold without a running agent, and what is safe to do.
    Rescue(rescue::RescueArguments),
    /// Open a wrapped backup key with the recovery code from the sheet, by hand and without a hub.
    Recover(recover::RecoverArguments),
    /// Recovery codes: make one, try it, replace it, show the state of all.
    #[command(subcommand)]
    Escrow(escrow::EscrowCommand),
    /// Print settings of break-glass for this host, for root to check and to complete.
    BreakGlass(break_glass::BreakGlassArguments),
    /// Let a guest use the local API again after it was frozen because two held its claim or its token.
    Thaw(unfreeze::ThawArguments),
    /// Images that guests are made from: build one, show them, request an approval.
    Golden(golden::GoldenArguments),
    /// Guest agent programs that guests fetch from this host: add one, show them.
    Release(release::ReleaseArguments),
    /// The audit chain of all decisions and actions on this host: verify it, show it, export it.
    Audit(audit::AuditArguments),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// `enroll`.
    #[error(transparent)]
    Enroll(#[from] enroll::EnrollError),
    /// `run`.
    #[error(transparent)]
    Run(#[from] run::RunCommandError),
    /// `setup`.
    #[error(transparent)]
    Setup(#[from] setup::SetupError),
    /// `renew-tokens`.
    #[error(transparent)]
    RenewTokens(#[from] token_renewal::RenewTokensError),
    /// `doctor`.
    #[error(transparent)]
    Doctor(#[from] doctor::DoctorError),
    /// `status`.
    #[error(transparent)]
    Status(#[from] status::StatusCommandError),
    /// `diagnose`.
    #[error(transparent)]
    Diagnose(#[from] diagnose::DiagnoseError),
    /// `parked`.
    #[error(transparent)]
    Parked(#[from] parked::ParkedError),
    /// `recovery`.
    #[error(transparent)]
    Recovery(#[from] recovery::RecoveryError),
    /// `escrow`.
    #[error(transparent)]
    Escrow(#[from] escrow::EscrowCommandError),
    /// `recover`.
    #[error(transparent)]
    Recover(#[from] recover::RecoverError),
    /// `storage`.
    #[error(transparent)]
    Storage(storage::StorageCommandError),
    /// `thaw`.
    #[error(transparent)]
    Thaw(#[from] unfreeze::ThawError),
    /// `golden`.
    #[error(transparent)]
    Golden(#[from] golden::GoldenError),
    /// `release`.
    #[error(transparent)]
    Release(#[from] release::ReleaseError),
    /// `metrics`.
    #[error(transparent)]
    Metrics(#[from] metrics::MetricsError),
    /// `rescue`.
    #[error(transparent)]
    Rescue(#[from] rescue::RescueError),
    /// `restore-tests`.
    #[error(transparent)]
    RestoreTests(#[from] restore_tests::RestoreTestsError),
    /// `break-glass`.
    #[error(transparent)]
    BreakGlass(#[from] break_glass::BreakGlassError),
    /// `audit`.
    #[error(transparent)]
    Audit(#[from] audit::AuditError),
}

impl CommandError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Enroll(error) => error.exit_code(),
            Self::Run(error) => error.exit_code(),
            Self::Setup(error) => error.exit_code(),
            Self::RenewTokens(error) => error.exit_code(),
            Self::Doctor(error) => error.exit_code(),
            Self::Status(error) => error.exit_code(),
            Self::Diagnose(error) => error.exit_code(),
            Self::Parked(error) => error.exit_code(),
            Self::Escrow(error) => error.exit_code(),
            Self::Recover(error) => error.exit_code(),
            Self::Recovery(error) => error.exit_code(),
            Self::Storage(error) => error.exit_code(),
            Self::Thaw(error) => error.exit_code(),
            Self::Golden(error) => error.exit_code(),
            Self::Release(error) => error.exit_code(),
            Self::Metrics(error) => error.exit_code(),
            Self::Rescue(error) => error.exit_code(),
            Self::RestoreTests(error) => error.exit_code(),
            Self::BreakGlass(error) => error.exit_code(),
            Self::Audit(error) => error.exit_code(),
        }
    }
}

/// Reads the arguments, runs the command and reports the outcome.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let arguments = match holdfast_manual::parse::<Arguments>(Section::Administration) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    // The daemon is started by the gate's own link.
    if !matches!(arguments.command, Command::Run(_)) {
        current_build::hand_over();
    }
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
        Command::Enroll(arguments) => Ok(enroll::run(arguments)?),
        Command::Escrow(command) => Ok(escrow::run(&command)?),
        Command::Status(arguments) => Ok(status::run(&arguments)?),
        Command::Diagnose(arguments) => Ok(diagnose::run(&arguments)?),
        Command::Storage(command) => storage::run(&command).map_err(CommandError::Storage),
        Command::Parked(arguments) => Ok(parked::run(&arguments)?),
        Command::Recover(arguments) => Ok(recover::run(&arguments)?),
        Command::Recovery(arguments) => Ok(recovery::run(&arguments)?),
        Command::Thaw(arguments) => Ok(unfreeze::run(&arguments)?),
        Command::Golden(arguments) => Ok(golden::run(arguments)?),
        Command::Release(arguments) => Ok(release::run(&arguments)?),
        Command::Metrics(arguments) => Ok(metrics::run(&arguments)?),
        Command::Rescue(arguments) => Ok(rescue::run(&arguments)?),
        Command::RestoreTests(arguments) => Ok(restore_tests::run(&arguments)?),
        Command::BreakGlass(arguments) => Ok(break_glass::run(&arguments)?),
        Command::Audit(arguments) => Ok(audit::run(&arguments)?),
        Command::Run(arguments) => Ok(run::run(&arguments)?),
        Command::Setup(arguments) => Ok(setup::run(&arguments)?),
        Command::RenewTokens(arguments) => Ok(token_renewal::run(&arguments)?),
        Command::Doctor(arguments) => Ok(doctor::run(&arguments)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_invite_on_the_command_line_shows_nowhere() {
        let arguments = Arguments::try_parse_from(["agentd", "enroll", "hf1_abcdefghijklmnop"]).unwrap();
        assert!(!format!("{arguments:?}").contains("abcdefgh"));
        assert!(Arguments::try_parse_from(["agentd", "enroll", "--request", "https://hub"]).is_err());
        assert!(Arguments::try_parse_from(["agentd", "enroll", "x", "--invite-file", "y"]).is_err());
    }
}
