//! `agentd storage`: how the storage targets of this box stand, as the running agent tells at its door; and the public
//! half of this host's own key, which their credentials are sealed to.
//!
//! Exit code 0: told. 69: no agent runs. Under each target that is not well stands why, and who must do what.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use holdfast_protocol::storage::report::TargetReport;
use jiff::Timestamp;

use super::Output;
use super::status::ago;
use crate::port::host_key::{self, HostKeyError};
use crate::port::status_door::{self, AgentStatus, StatusError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// Why nothing is told.
#[derive(Debug, thiserror::Error)]
pub enum StorageCommandError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// The host's key.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// There is none yet.
    #[error(
        "this host has no key of its own yet: the agent makes it at its first start (`systemctl start agentd`)"
    )]
    NoKey,
}

impl StorageCommandError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Status(error) => error.exit_code(),
            Self::HostKey(_) => 74,
            Self::NoKey => 69,
        }
    }
}

/// What is asked about storage.
#[derive(Debug, clap::Subcommand)]
pub enum StorageCommand {
    /// Every target that is wished for or was ever approved.
    #[command(after_long_help = "\
A target is mounted, by-proxmox (a share that Proxmox reaches by itself), held (it waits for an operator's signature), absent \
(not seen since the agent started), dropped (it went away; it is mounted again by itself when it comes back), wrong (something \
else is there in its place), refused (the helper does not mount it), unmarked (root makes one folder on it) or detached.")]
    List(StorageArguments),
    /// The recipient that credentials of this host's targets are sealed to.
    #[command(after_long_help = "\
Operators seal with `holdfast storage seal HOST`. The hub passes the recipient on, and a stolen hub could show one of its own: \
whoever seals compares what is printed here, read at this box or over SSH, with what they seal to.")]
    Key(KeyArguments),
}

/// The arguments of `key`.
#[derive(Debug, clap::Args)]
pub struct KeyArguments {
    #[command(flatten)]
    config: ConfigPath,
}

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct StorageArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// A table for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Runs the command.
///
/// # Errors
/// [`StorageCommandError`].
pub fn run(command: &StorageCommand) -> Result<(), StorageCommandError> {
    match command {
        StorageCommand::List(arguments) => list(arguments),
        StorageCommand::Key(arguments) => key(arguments),
    }
}

fn key(arguments: &KeyArguments) -> Result<(), StorageCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let key = host_key::read(&settings.state.dir)?.ok_or(StorageCommandError::NoKey)?;
    println!("{}", key.recipient().map_err(|_| StorageCommandError::NoKey)?);
    Ok(())
}

fn list(arguments: &StorageArguments) -> Result<(), StorageCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let status = status_door::ask(&settings.state.dir)?;
    match arguments.output {
        Output::Json => super::print_json(&status.sections.storage.unwrap_or_default()),
        Output::Table => print!("{}", page(&status)),
    }
    Ok(())
}

fn page(status: &AgentStatus) -> String {
    let targets = status.sections.storage.as_deref().unwrap_or_default();
    if targets.is_empty() {
        return "no storage target is wished for, and none was ever approved\n".to_owned();
    }
    let mut page = format!("{}\n", table(targets, status.at));
    for target in targets.iter().filter(|target| !target.reason.is_empty()) {
        // Writing into a String cannot fail.
        let _infallible = writeln!(page, "  ! {}: {}", target.name, target.reason);
    }
    for target in targets {
        for difference in &target.entry {
            let _infallible = writeln!(page, "  ! {} in Proxmox: {difference}", target.name);
        }
    }
    for held in status.sections.waiting.iter().flatten().filter(|held| held.guest.is_none()) {
        let _infallible = writeln!(page, "  ! waits for a signature: {} ({})", held.effect, held.reason);
    }
    page
}

/// A line for each.
pub(super) fn table(targets: &[TargetReport], at: Timestamp) -> Table {
    let mut table = Table::new();
    let head = ["TARGET", "STANDING", "SINCE", "ROLE", "CLASS", "WHAT", "DEVICE", "LABEL"];
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(head);
    for target in targets {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let class = match target.iops {
            Some(iops) => format!("{} ({iops} IOPS)", target.class),
            None => target.class.to_string(),
        };
        table.add_row([
            target.name.to_string(),
            target.standing.as_str().to_owned(),
            ago(target.since, at),
            target.role.to_string(),
            class,
            target.medium.clone(),
            or_dash(&target.device),
            or_dash(&target.label),
        ]);
    }
    table
}
