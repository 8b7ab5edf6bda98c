//! `agentd storage`: storage targets, and the host's public key.
//!
//! Exit code 0: shown. 69: no agent runs. Under each target that is not well it shows why, and who must do what.

mod make_key;
mod recover_key;
mod sealing;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use comfy_table::{ContentArrangement, Table, presets};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::report::{OffSiteReport, TargetReport};
use holdfast_seal::OpenError;
use holdfast_seal::token::Token;
use jiff::Timestamp;
use zeroize::Zeroizing;

use self::recover_key::RecoverKeyError;
use self::sealing::SealingError;
use super::Output;
use super::ago::ago;
use super::drop_privileges::{self, StepDownError};
use crate::port::admin_socket::{self, AgentStatus, StatusError};
use crate::port::atomic_file::Given;
use crate::port::host_key::{self, HostKeyError};
use crate::port::sealed_token::{self, SealedTokenError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// A token's secret is a UUID.
const SECRET_BYTES_MAX: usize = 512;

/// Why nothing is shown.
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
    /// No secret.
    #[error("the token's secret cannot be read from standard input")]
    Input(#[source] std::io::Error),
    /// Not a token, or no credentials or key.
    #[error(transparent)]
    Content(#[from] OpenError),
    /// Nothing was sealed.
    #[error(transparent)]
    Sealing(#[from] SealingError),
    /// No key was brought back.
    #[error(transparent)]
    RecoverKey(#[from] RecoverKeyError),
    /// The sealed token.
    #[error(transparent)]
    SealedToken(#[from] SealedTokenError),
    /// Root.
    #[error(transparent)]
    StepDown(#[from] StepDownError),
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
            Self::HostKey(_) | Self::Input(_) | Self::SealedToken(_) => 74,
            Self::StepDown(_) => 77,
            Self::Content(_) => 65,
            Self::Sealing(error) => error.exit_code(),
            Self::RecoverKey(error) => error.exit_code(),
            Self::NoKey => 69,
        }
    }
}

/// The commands for storage targets.
#[derive(Debug, clap::Subcommand)]
pub enum StorageCommand {
    /// Show every target that the document names or that was ever approved.
    #[command(after_long_help = "\
A target is mounted, by-proxmox (a share that Proxmox reaches by itself), held (it waits for an operator's signature), \
absent (not seen since the agent started), dropped (it went away; it is mounted again by itself when it comes back), \
wrong (something else is there in its place), refused (the helper does not mount it), unmarked (root must create one \
folder on it) or detached.")]
    List(StorageArguments),
    /// Show the recipient that credentials of this host's targets are sealed to.
    #[command(after_long_help = "\
Operators seal with `holdfast storage seal HOST`. The hub passes the recipient on, and a stolen hub could show one of \
its own. Before you seal, compare what is printed here, read on this host or over SSH, with the recipient that you \
seal to.")]
    Key(KeyArguments),
    /// Create the backup key of a backup server's target on this host, so that it exists nowhere else.
    #[command(after_long_help = "\
Run it at a terminal of this host: it prompts for the password of the backup server and does not show it. What is \
printed goes into the target's place in the document: the fingerprint of the key, and name, password and key sealed to \
this host alone. Neither the operator nor the hub can open it. Once it is signed for, create its recovery code at once \
(`agentd escrow create`): until then its backups are lost if this host is lost.")]
    MakeKey(make_key::MakeKeyArguments),
    /// Recover the backup key of a lost host with the recovery code from the sheet, sealed to this host alone.
    #[command(after_long_help = "\
Run it at a terminal of the host that took the lost one's place (`agentd enroll --restore`): it prompts for the \
password of the backup server and the eleven words, and does not show them. The wrapped key is the one that the hub \
handed over, or --from FILE. It must be the key whose fingerprint the document names at the target's `key`, which \
operators sign for. What is printed goes into the target's `creds`: name, password and key, sealed to this host alone. \
The bare key is in no file and is never shown. Once it is signed for, Proxmox gets it, and the guests that were taken \
up are restored from there.")]
    RecoverKey(recover_key::RecoverKeyArguments),
    /// Seal a Proxmox token's secret, read from standard input, to this host's key, as `agentd setup --print` does.
    SealToken(SealTokenArguments),
}

/// The arguments of `seal-token`.
#[derive(Debug, clap::Args)]
pub struct SealTokenArguments {
    /// The state folder.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/holdfast")]
    state_dir: PathBuf,
    /// The token, user@realm!name.
    id: String,
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
        StorageCommand::MakeKey(arguments) => make_key::run(arguments),
        StorageCommand::RecoverKey(arguments) => recover_key::run(arguments),
        StorageCommand::SealToken(arguments) => seal_token(arguments),
    }
}

fn seal_token(arguments: &SealTokenArguments) -> Result<(), StorageCommandError> {
    // Both files are in the agent's folder and belong to it.
    drop_privileges::to_owner_of(&arguments.state_dir)?;
    let mut text = Zeroizing::new(String::with_capacity(SECRET_BYTES_MAX + 1));
    let mut input = std::io::stdin().lock().take(SECRET_BYTES_MAX as u64);
    input.read_to_string(&mut text).map_err(StorageCommandError::Input)?;
    let token = Token::new(arguments.id.clone(), Secret::new(text.trim().to_owned()))?;
    let key = host_key::open(&arguments.state_dir)?;
    let path = arguments.state_dir.join("secrets/proxmox-storage.sealed");
    Ok(sealed_token::write(&path, &token, &key, Given::Kept)?)
}

fn key(arguments: &KeyArguments) -> Result<(), StorageCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let key = host_key::read(&settings.state.dir)?.ok_or(StorageCommandError::NoKey)?;
    println!("{}", key.recipient().map_err(|_| StorageCommandError::NoKey)?);
    Ok(())
}

fn list(arguments: &StorageArguments) -> Result<(), StorageCommandError> {
    let settings = Settings::load(&arguments.config)?;
    let status = admin_socket::ask(&settings.state.dir)?;
    match arguments.output {
        Output::Json => super::print_json(&status.sections.storage.unwrap_or_default()),
        Output::Table => print!("{}", page(&status)),
    }
    Ok(())
}

fn page(status: &AgentStatus) -> String {
    let targets = status.sections.storage.as_deref().unwrap_or_default();
    if targets.is_empty() {
        return "no storage target is asked for, and none was ever approved\n".to_owned();
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
    page.push_str(&off_site(targets));
    for held in status.sections.waiting.iter().flatten().filter(|held| held.guest.is_none()) {
        let _infallible = writeln!(page, "  ! waits for a signature: {} ({})", held.effect, held.reason);
    }
    page
}

/// The reports of backup servers about our backups.
pub(super) fn off_site(targets: &[TargetReport]) -> String {
    let mut text = String::new();
    for target in targets {
        for line in target.off_site.iter().flat_map(OffSiteReport::lines) {
            // Writing into a String cannot fail.
            let _infallible = writeln!(text, "  {}: {line}", target.name);
        }
    }
    text
}

/// A line for each.
pub(super) fn table(targets: &[TargetReport], at: Timestamp) -> Table {
    let mut table = Table::new();
    let head = ["TARGET", "STATUS", "SINCE", "ROLE", "CLASS", "WHAT", "DEVICE", "LABEL"];
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(head);
    for target in targets {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let class = match target.iops {
            Some(iops) => format!("{} ({iops} IOPS)", target.class),
            None => target.class.to_string(),
        };
        table.add_row([
            target.name.to_string(),
            target.status.as_str().to_owned(),
            ago(target.since, at),
            target.role.to_string(),
            class,
            target.backend.clone(),
            or_dash(&target.device),
            or_dash(&target.label),
        ]);
    }
    table
}
