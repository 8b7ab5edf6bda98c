//! Command line arguments.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use holdfast_protocol::desired::Reason;
use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{JobId, TargetName};
use holdfast_protocol::job::act::{ArchiveText, VolumeText};
use holdfast_protocol::job::stamp::Reason as JobReason;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::storage::HostRecipient;
use holdfast_protocol::usage::UsageSpan;

use crate::exit_codes::EXIT_CODES;

/// The grammar of filters, for people.
const FILTER_HELP: &str = "\
Filters:
  A filter is terms with ',' between them; a guest is shown when one of them fits and none with '-' before it does. A \
term is parts with '+' between them, and all of them must fit:
    wiki  %wiki%  wiki%  5001  5000:5099  @all  @host-box7  @label-tier=canary  @label-tier  @state-offline
    @customer-acme  @status-parked  @run-stopped  @image-2026.11.1  @protection-unprotected
    @condition-FROZEN  @attention-some  @attention-none
  @label and @state are those of the host.
Examples:
  holdfast guest list --filter @customer-acme+@run-stopped
  holdfast guest list --filter @protection-unprotected,@protection-attention,-%test%";

mod alert;
mod certificate;
mod ends;
mod escrow;
mod host;
mod order;
mod person;
mod release;
mod resource;
mod rollout;
mod sign;
mod state;
mod top;

pub use alert::{AlertCommand, ExplainArgs, ListArgs, LogArgs, SilenceCommand};
pub use certificate::{CertificateArgs, CertificateCommand};
pub use ends::EndOrNow;
pub use escrow::EscrowCommand;
pub use host::{ApproveArgs, HostCommand, LabelTerm, PinArgs, RestoreArgs, WindowArgs, WithdrawArgs};
pub use order::{OneOrder, OrderArgs, OrderCommand};
pub use person::{CustomerCommand, FieldArg, FieldArgs, OperatorCommand, TokenCommand};
pub use release::{ManifestArgs, ReleaseCommand, VerifyArgs};
pub use resource::{
    ChangeArgs, FieldTermError, PolicyCommand, PutArgs, RemoveArgs, RollbackArgs, SetArgs, merge_of,
};
pub use rollout::{PlanArgs, RolloutCommand};
pub use sign::{BackupTier, KeyArgs, LossArg, SignArgs};
pub use state::{ExportArgs, StateCommand, StateRef};
pub use top::TopArgs;

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
    /// The folder of the login; by default in the user's configuration folder.
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
    /// Backup policies of hosts' documents.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Restore certificates: what a restore test showed, signed by host and hub.
    #[command(subcommand)]
    Certificate(CertificateCommand),
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
    /// Work orders: backups, snapshots, restarts and readings now, which need no signature.
    #[command(subcommand)]
    Order(OrderCommand),
    /// Releases of Holdfast: manifests, signatures, and what the hub has for its hosts.
    #[command(subcommand)]
    Release(ReleaseCommand),
    /// Rollouts: a release for many hosts, wave by wave.
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// Audit chains of hosts.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// People of the hub: operators, viewers, customers. For admins.
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Tokens of machines.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Customers: who they are and how they are reached.
    #[command(subcommand)]
    Customer(CustomerCommand),
    /// Alerts: what is wrong now, who was notified, silences and receivers.
    #[command(subcommand)]
    Alert(AlertCommand),
    /// Show events, newest last.
    Events(EventsArgs),
    /// Snapshots of what all hosts should be, and are: take, list, show, compare.
    #[command(subcommand)]
    State(StateCommand),
    /// Write everything of a period as files that a person or a program can read.
    Export(ExportArgs),
    /// Watch the fleet on a whole screen: what needs a person, hosts, guests, running work.
    Top(TopArgs),
}

/// Of `holdfast storage`.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Show the storage targets of one host, or of all hosts. Those that need attention come first.
    List {
        /// The host's name or id.
        host: Option<String>,
    },
    /// Change fields of a storage target in its host's document.
    #[command(after_help = "\
Example:
  holdfast storage set box7 usb1 state=decommissioned")]
    Set(SetArgs),
    /// Remove a storage target that nothing uses from its host's document. Detach it first: set its state.
    Remove(RemoveArgs),
    /// Seal the name and password of a share or backup server for one host, and print what to put into the document's
    /// `creds`.
    #[command(after_long_help = "\
The password is typed at a prompt, or read from standard input; it is never an argument. Only that host can read the \
output, and it is valid only for this target and backend.\n\n\
The recipient is the host's public key. The hub passes it on, and a stolen hub could show a key of its own and read \
what you seal. So compare it: `agentd storage key`, on the host itself or over SSH, prints the true one. Give that one \
with --recipient; without it, the command shows the hub's key and asks whether it is the same.")]
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
    /// The document, as for `holdfast desired apply`: the target's backend is read from it. Its `creds` may be missing.
    #[arg(long, value_name = "FILE")]
    pub document: PathBuf,
    /// The login name, such as backup or pve@pbs!bk.
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// For backup servers: the key file that backups are encrypted with, without a passphrase.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// What `agentd storage key` prints on the host. Required when there is no terminal.
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
        /// Also compare it with the head that this host last reported, to detect a cut end.
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
    /// Show the signed jobs of one host, or of all hosts, newest first.
    List {
        /// The host's name or id.
        host: Option<String>,
    },
    /// Show one signed job: content, signers and state.
    Show {
        /// The host's name or id.
        host: String,
        /// The job's id, or its first characters.
        job: String,
        /// Write the signed job to this file, so that another operator can sign it.
        #[arg(long, value_name = "FILE")]
        save: Option<PathBuf>,
    },
    /// Follow a signed job until it ends.
    Watch {
        /// The host's name or id.
        host: String,
        /// The job's id, or its first characters.
        job: String,
        /// Stop following after this many seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=172_800))]
        timeout: u64,
    },
    /// Write the bytes that a customer signs to consent to a job: `ssh-keygen -Y sign -n holdfast-consent -f KEY FILE`.
    Payload {
        /// The signed job, as `holdfast sign` wrote it.
        file: PathBuf,
        /// Where to write the bytes.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Add the consents of customers to a signed job.
    Consent {
        /// The signed job; the consents are written into it.
        file: PathBuf,
        /// The signatures of customers over the job's payload.
        #[arg(required = true, value_name = "SIGNATURE")]
        consents: Vec<PathBuf>,
    },
    /// Show signed jobs about guests, newest first: for customers, those about theirs.
    Guests,
    /// Object to a signed job that waits. Operators see it; the job goes on unless one of them signs a cancel.
    Object {
        /// The job's id.
        job: JobId,
        /// Why.
        #[arg(long, value_name = "TEXT", value_parser = reason)]
        reason: Reason,
    },
    /// Cancel a signed job: withdraw it from the hub, or sign a cancel when its host already has it.
    Cancel(CancelArgs),
}

/// Of `holdfast job cancel`.
#[derive(Debug, ClapArgs)]
pub struct CancelArgs {
    /// The host's name or id.
    pub host: String,
    /// The job's id, or its first characters.
    pub job: String,
    /// Your SSH key, needed when the host already has the job.
    #[arg(long, short, value_name = "FILE", env = "HOLDFAST_KEY")]
    pub key: Option<PathBuf>,
    /// The reason.
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
    /// Read the token from this file, or `-` for standard input. By default the command prompts for it.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Of `holdfast desired`.
#[derive(Debug, Subcommand)]
pub enum DesiredCommand {
    /// Show the document that the hub holds for a host.
    Show {
        /// The host's name or id.
        host: String,
        /// The document of this generation; by default the newest.
        #[arg(long, value_parser = resource::generation)]
        generation: Option<Generation>,
    },
    /// Show guests, storage targets and policies as desired, reported and last applied. Those that differ come first.
    Status {
        /// The host's name or id.
        host: String,
    },
    /// Show what a file would change, or what differs between two generations.
    Diff {
        /// The host's name or id.
        host: String,
        /// The document: JSON, or TOML when its name ends in .toml; `-` for JSON from standard input. Without it two
        /// generations are compared.
        #[arg(conflicts_with_all = ["from", "to"])]
        file: Option<PathBuf>,
        /// The earlier generation; by default the one before the later.
        #[arg(long, value_parser = resource::generation)]
        from: Option<Generation>,
        /// The later generation; by default the newest.
        #[arg(long, value_parser = resource::generation)]
        to: Option<Generation>,
    },
    /// Show what a file would change, ask for confirmation, and apply it.
    Apply(ApplyArgs),
    /// Show what the content of an earlier generation would change, ask for confirmation, and put it as a new generation.
    Rollback(RollbackArgs),
    /// Show the versions of a document: operator, time and reason.
    History {
        /// The host's name or id.
        host: String,
        /// Show at most this many, the newest.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
}

/// Of `holdfast desired apply`.
#[derive(Debug, ClapArgs)]
pub struct ApplyArgs {
    /// The host's name or id.
    pub host: String,
    /// The document: JSON, or TOML when its name ends in .toml; `-` for JSON from standard input. You may leave out
    /// `schema`, `generation`, `poll_interval_s` and the `uid` of a guest: they are taken from the hub's document, or
    /// created.
    pub file: PathBuf,
    /// The reason, kept in the history; by default it names the file that was applied.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<Reason>,
    /// Show what the hub says that it would do, and change nothing.
    #[arg(long, conflicts_with_all = ["yes", "watch"])]
    pub dry_run: bool,
    #[command(flatten)]
    pub assume_yes: AssumeYes,
    /// Follow the host until its guests have converged.
    #[arg(long)]
    pub watch: bool,
    /// Stop following after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

/// Whether to ask first.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct AssumeYes {
    /// Do not ask for confirmation.
    #[arg(long, short)]
    pub yes: bool,
}

/// Of `holdfast golden`.
#[derive(Debug, Subcommand)]
pub enum GoldenCommand {
    /// Show the images of one host, or of all hosts: where each was built, which guests were made from it, which are old.
    List {
        /// The host's name or id; by default all hosts.
        host: Option<String>,
    },
    /// Compare the images of all hosts by what they were built of. Exit code 1 where the same inputs gave different images.
    Compare,
    /// Show the approvals for all hosts and how many hosts admitted each; of one, each host.
    Approvals(ApprovalArgs),
    /// Submit a signed approval for all hosts.
    Submit {
        /// The approval, as `holdfast sign --all-hosts` wrote it.
        file: PathBuf,
    },
    /// Take an approval for all hosts back from the hosts that have not seen it. Hosts that admitted it keep it.
    Withdraw {
        /// The approval's id, or its first characters.
        job: String,
    },
}

/// Of `holdfast golden approvals`.
#[derive(Debug, ClapArgs)]
pub struct ApprovalArgs {
    /// The approval's id, or its first characters; by default all of them.
    pub job: Option<String>,
    /// Write the signed approval to this file, so that another operator can sign it.
    #[arg(long, value_name = "FILE", requires = "job")]
    pub save: Option<PathBuf>,
}

/// Of `holdfast guest`.
#[derive(Debug, Subcommand)]
pub enum GuestCommand {
    /// Show the guests of one host, or of all hosts.
    #[command(after_help = FILTER_HELP)]
    List {
        /// The host's name or id.
        host: Option<String>,
        /// Only these guests, such as `@customer-acme+@run-stopped`, `5000:5099` or `@all,-%test%`.
        #[arg(long, value_name = "FILTER", allow_hyphen_values = true)]
        filter: Option<GuestFilter>,
    },
    /// Show the promises about guests' backups: those in force, and those that are held for a signature.
    Protection {
        /// The host's name or id; by default all hosts.
        host: Option<String>,
    },
    /// Change fields of a guest in its host's document.
    #[command(after_help = "\
Examples:
  holdfast guest set box7 web-1 size.memory_mib=2048 size.cores=4 --dry-run
  holdfast guest set box7 web-1 run=stopped --reason 'moved to web-2' --yes
  holdfast guest set box7 web-1 policy=            # under no policy")]
    Set(SetArgs),
    /// Add the guest of a file to a host's document. Its uid may be left out.
    Add(PutArgs),
    /// Remove a guest from its host's document. One that the host still has is refused without --leave.
    Remove(RemoveArgs),
    /// Show one guest, and what it used.
    Show {
        /// The guest's name, uid or VMID.
        guest: String,
        /// Search only this host; by default all hosts.
        #[arg(long)]
        host: Option<String>,
        /// How far back its use is shown: 2h, 7d or 400d.
        #[arg(long, value_name = "SPAN", default_value_t)]
        span: UsageSpan,
    },
    /// Show the newest audit records about a guest, held to their hashes and to the ends of the audit that the hub kept.
    Audit {
        /// The guest's name, uid or VMID.
        guest: String,
        /// Search only this host; by default all hosts.
        #[arg(long)]
        host: Option<String>,
    },
    /// Show the newest restore certificate of a guest, verified, and write it as a page or a file.
    #[command(after_help = "\
Examples:
  holdfast guest certificate web-1 --pdf web-1.pdf --json web-1.json
  holdfast certificate verify web-1.json --hub-key SHA256:…")]
    Certificate(CertificateArgs),
}

/// Of `holdfast events`.
#[derive(Debug, ClapArgs)]
pub struct EventsArgs {
    /// Show only events of this host, by name or id.
    #[arg(long)]
    pub host: Option<String>,
    /// Show at most this many, the newest.
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
