//! Command line arguments.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use holdfast_protocol::desired::Reason;
use holdfast_protocol::id::{OperatorName, TargetName};
use holdfast_protocol::job::act::{ArchiveText, VolumeText};
use holdfast_protocol::job::stamp::Reason as JobReason;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::storage::HostRecipient;

use crate::exit_codes::EXIT_CODES;

mod escrow;
mod host;
mod sign;

pub use escrow::EscrowCommand;
pub use host::{HostCommand, PinArgs, RestoreArgs, WithdrawArgs};
pub use sign::{BackupTier, KeyArgs, LossArg, SignArgs};

/// Command line of operators: enroll hosts, apply desired documents, watch and sign.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, about, after_help = EXIT_CODES)]
pub struct Args {
    /// Tables, or one JSON document.
    #[arg(long, value_enum, default_value_t = Output::Table, global = true)]
    pub output: Output,
    /// Print the result and errors only.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// No colours (the variable NO_COLOR does the same).
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Where the login is kept; otherwise in the user's configuration folder.
    #[arg(long, value_name = "DIR", env = "HOLDFAST_CONFIG", global = true)]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Store the hub's address, its trust anchor and your token.
    Login(LoginArgs),
    /// Show your name and role at the hub.
    Whoami,
    /// Hosts: Proxmox VE machines with an agent.
    #[command(subcommand)]
    Host(HostCommand),
    /// Desired documents of hosts.
    #[command(subcommand)]
    Desired(DesiredCommand),
    /// Guests, as their agents report them.
    #[command(subcommand)]
    Guest(GuestCommand),
    /// Golden images that guests are made from.
    #[command(subcommand)]
    Golden(GoldenCommand),
    /// Storage targets, as the agents report them.
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Kits and wrapped keys for customers who read their off-site backups without Holdfast.
    #[command(subcommand)]
    Escrow(EscrowCommand),
    /// Sign what waits on a host, with your own SSH key.
    Sign(Box<SignArgs>),
    /// Signed jobs: submit, list, follow, cancel.
    #[command(subcommand)]
    Job(JobCommand),
    /// Audit chains of hosts.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Operators of the hub. For admins.
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Events, newest last.
    Events(EventsArgs),
}

/// Of `holdfast operator`.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Show all operators, also revoked ones.
    List,
    /// Make an operator, or another token for one in the same role, and print the token this once.
    Add {
        /// The name.
        name: OperatorName,
        /// What they may do.
        #[arg(long, value_enum)]
        role: RoleArg,
        /// How many days the token lives.
        #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
    },
    /// Revoke an operator: all their tokens end at once.
    Revoke {
        /// The name.
        name: OperatorName,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
}

/// What an operator may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Looks.
    Viewer,
    /// Invites, approves, puts desired documents.
    Operator,
    /// Makes and revokes operators.
    Admin,
}

/// Of `holdfast storage`.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Show the storage targets of one host, or of all, those that need attention first.
    List {
        /// The host's name or id.
        host: Option<String>,
    },
    /// Seal name and password of a share or backup server for one host, and print what goes into the document's `creds`.
    #[command(after_long_help = "\
The password is typed at a prompt, or read from standard input; it is never an argument. The output can be read by that host \
alone, and is valid for this target and backend alone.\n\n\
The recipient is the host's public key. The hub passes it on, and a stolen hub could show one of its own and read what you \
seal. So compare it: `agentd storage key`, at the box or over SSH, prints the true one. Give that as --recipient, or you are \
shown the hub's and asked.")]
    Seal(SealArgs),
}

/// Of `holdfast storage seal`.
#[derive(Debug, ClapArgs)]
pub struct SealArgs {
    /// The host's name or id.
    pub host: String,
    /// The target's name.
    #[arg(long, value_name = "NAME")]
    pub target: TargetName,
    /// The document, as `holdfast desired apply` takes it: the target's backend is read there. Its `creds` may be missing.
    #[arg(long, value_name = "FILE")]
    pub document: PathBuf,
    /// Who logs in, such as backup or pve@pbs!bk.
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// The key file that backups are encrypted with, without a passphrase. For backup servers.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// What `agentd storage key` prints on the box. Must be given where there is no terminal.
    #[arg(long, value_name = "age1…")]
    pub recipient: Option<HostRecipient>,
}

/// Of `holdfast audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Verify the hash chain of an exported audit (`agentd audit export`).
    Verify {
        /// The file.
        file: PathBuf,
        /// Compare it with the head that this host last reported, so that a cut end is seen, too.
        #[arg(long)]
        host: Option<String>,
    },
}

/// Of `holdfast job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Submit a signed job to its host.
    Submit {
        /// The host's name or id.
        host: String,
        /// The signed job, as `holdfast sign` wrote it.
        file: PathBuf,
    },
    /// Show the signed jobs of one host, or of all, newest first.
    List {
        /// The host's name or id.
        host: Option<String>,
    },
    /// Show one signed job: content, signers and state.
    Show {
        /// The host's name or id.
        host: String,
        /// Its id, or how that begins.
        job: String,
        /// Write the signed job to this file, so that another operator can sign it.
        #[arg(long, value_name = "FILE")]
        save: Option<PathBuf>,
    },
    /// Follow a signed job to its end.
    Watch {
        /// The host's name or id.
        host: String,
        /// Its id, or how that begins.
        job: String,
        /// Give up following after this many seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=172_800))]
        timeout: u64,
    },
    /// Cancel a signed job: withdraw it from the hub or, when its host has it, sign a cancel.
    Cancel(CancelArgs),
}

/// Of `holdfast job cancel`.
#[derive(Debug, ClapArgs)]
pub struct CancelArgs {
    /// The host's name or id.
    pub host: String,
    /// The job's id, or how that begins.
    pub job: String,
    /// Your SSH key, in case its host has the job already.
    #[arg(long, short, value_name = "FILE", env = "HOLDFAST_KEY")]
    pub key: Option<PathBuf>,
    /// Why.
    #[arg(long, value_name = "TEXT", value_parser = job_reason)]
    pub reason: JobReason,
}

/// Of `holdfast login`.
#[derive(Debug, ClapArgs)]
#[command(group(ArgGroup::new("trust").required(true)))]
pub struct LoginArgs {
    /// The hub, such as https://hub.example:8440.
    pub url: String,
    /// The pin of the hub's CA, as the hub printed it: leaf/sha256:… or spki/sha256:…
    #[arg(long, value_name = "PIN", group = "trust")]
    pub ca_pin: Option<Pin>,
    /// The hub's CA certificate, PEM.
    #[arg(long, value_name = "FILE", group = "trust")]
    pub ca_file: Option<PathBuf>,
    /// Read the token from this file, `-` for standard input. Otherwise it is asked for.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Of `holdfast desired`.
#[derive(Debug, Subcommand)]
pub enum DesiredCommand {
    /// Show the document that the hub holds for a host.
    Show {
        /// Its name or id.
        host: String,
    },
    /// Show what a file would change.
    Diff {
        /// The host's name or id.
        host: String,
        /// The document: JSON, or TOML when its name ends so; `-` for JSON from standard input.
        file: PathBuf,
    },
    /// Show what a file would change, confirm, and put it.
    Apply(ApplyArgs),
    /// Show the versions of a document: operator, time and reason.
    History {
        /// The host's name or id.
        host: String,
        /// At most this many, the newest.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
}

/// Of `holdfast desired apply`.
#[derive(Debug, ClapArgs)]
pub struct ApplyArgs {
    /// The host's name or id.
    pub host: String,
    /// The document: JSON, or TOML when its name ends so; `-` for JSON from standard input. `schema`, `generation`,
    /// `poll_interval_s` and the `uid` of a guest may be left out: they are taken from what the hub holds, or made.
    pub file: PathBuf,
    /// Why; kept in the history. Otherwise it says which file was applied.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<Reason>,
    #[command(flatten)]
    pub assume_yes: AssumeYes,
    /// Follow the host until its guests have converged.
    #[arg(long)]
    pub watch: bool,
    /// Give up following after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

/// Whether to ask first.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct AssumeYes {
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
}

/// Of `holdfast golden`.
#[derive(Debug, Subcommand)]
pub enum GoldenCommand {
    /// Show the images of one host, or of all, which guests came from which, and which are old.
    List {
        /// The host's name or id; otherwise all.
        host: Option<String>,
    },
}

/// Of `holdfast guest`.
#[derive(Debug, Subcommand)]
pub enum GuestCommand {
    /// Show the guests of one host, or of all.
    List {
        /// The host's name or id.
        host: Option<String>,
    },
    /// Show what is promised about guests' backups: what is in force, and what is held for a signature.
    Protection {
        /// The host's name or id; otherwise all.
        host: Option<String>,
    },
    /// Show one guest.
    Show {
        /// Its name, uid or VMID.
        guest: String,
        /// On this host; otherwise on all.
        #[arg(long)]
        host: Option<String>,
    },
}

/// Of `holdfast events`.
#[derive(Debug, ClapArgs)]
pub struct EventsArgs {
    /// Only of this host, by name or id.
    #[arg(long)]
    pub host: Option<String>,
    /// At most this many, the newest.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

fn volume(text: &str) -> Result<VolumeText, &'static str> {
    VolumeText::try_from(text.to_owned())
}

fn archive(text: &str) -> Result<ArchiveText, &'static str> {
    ArchiveText::try_from(text.to_owned())
}

fn job_reason(text: &str) -> Result<JobReason, &'static str> {
    JobReason::try_from(text.to_owned())
}

fn reason(text: &str) -> Result<Reason, &'static str> {
    Reason::try_from(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_command() {
        let mut text = String::new();
        let mut todo = vec![Args::command().term_width(100)];
        while let Some(mut command) = todo.pop() {
            command.build();
            let help = command.render_help();
            let name = command.get_bin_name().unwrap_or("holdfast");
            text.push_str(&format!("# {name}\n{help}\n"));
            let mut below: Vec<_> =
                command.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
            below.reverse();
            todo.extend(below);
        }
        insta::assert_snapshot!(text);
    }
}
