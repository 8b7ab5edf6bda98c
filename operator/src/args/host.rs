//! Command line arguments of `holdfast host`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, Subcommand};
use holdfast_protocol::condition::ConditionText;
use holdfast_protocol::filter::HostFilter;
use holdfast_protocol::host_label::{LabelKey, LabelSelector, LabelValue, label};
use holdfast_protocol::id::{EnrollmentRequestId, HostId, HostName, TunnelName};
use holdfast_protocol::job::HostFingerprint;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::stamp::Reason as JobReason;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::release::window::UpdateWindow;

use super::alert::comment;
use super::{AssumeYes, EndOrNow, KeyArgs, job_reason};

/// Of `holdfast host`.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Create an invite: one line for `agentd enroll`, shown only once.
    Invite {
        /// The name for the host.
        name: HostName,
    },
    /// Restore a lost host on a new machine: sign the order, and print one line for `agentd enroll --restore`.
    #[command(after_long_help = "\
The order is signed with your own key, and both hosts check it against the operators file that root installed on them. \
With this order alone, the new host takes the lost host's place, and the lost host does nothing more if it comes back. \
The hub hands over what it knows (document, guests, storage targets, and the wrapped backup key, of which the customer \
is notified), but it cannot create an order.

Install the operators file on the new host first (`agentd setup --operators`). Where the policy requires more than one \
signature for restore_host, this command cannot give them yet.

The order names the new host's key, so no other host can follow it. An order that no host followed expires for every \
host after its time; `holdfast host show` lists it, `holdfast host withdraw` withdraws it.")]
    Restore(RestoreArgs),
    /// Withdraw an order to restore a host, with another order signed with your key.
    #[command(after_long_help = "\
The hub stores the withdrawal with the order and no longer follows the order. A running host gets the withdrawal as a \
job and records it. A host that is off learns of it only from the hub: a stolen hub can withhold it, and that host \
then stops when it starts again, but it loses nothing.")]
    Withdraw(WithdrawArgs),
    /// Pin a host as the hub shows it, after comparing its fingerprint on the host itself.
    #[command(after_long_help = "\
An operator knows a host by name, id, key and epoch, pinned at the first use in `hosts.json` next to the \
login. When the hub shows anything else, nothing is signed (HOST_KEY_CHANGED). `agentd status` on the host shows the \
fingerprint; give it with --fingerprint, or compare it when prompted.")]
    Pin(PinArgs),
    /// Show all hosts. Those that need attention come first.
    #[command(after_help = "\
Filters:
  Terms with ',' between them, of which one must fit and none with '-' before it; parts of a term with '+':
    box7  %box%  @all  @label-tier=canary  @label-tier  @state-offline  @version-0.1.0  @attention-some
Example:
  holdfast host list --filter @label-site=vienna,-@state-online")]
    List {
        /// Show enrollment requests instead: the same as `host requests`.
        #[arg(long, conflicts_with = "filter")]
        requests: bool,
        /// Only these hosts, such as `@state-offline` or `@label-tier=canary+@label-site=vienna`.
        #[arg(long, value_name = "FILTER", allow_hyphen_values = true)]
        filter: Option<HostFilter>,
    },
    /// Show one host with its guests, storages and work.
    Show {
        /// The host's name or id.
        host: String,
    },
    /// Set labels of a host with `KEY=VALUE`, and remove them with `KEY-`.
    #[command(after_help = "\
Waves of rollouts select hosts by labels, and so does `holdfast host list --filter`. A host has at most 16.

Examples:
  holdfast host label box7 tier=canary site=vienna
  holdfast host label box7 customer=acme tier-")]
    Label {
        /// The host's name or id.
        host: String,
        /// What is set and removed.
        #[arg(required = true, value_name = "LABEL")]
        changes: Vec<LabelTerm>,
    },
    /// Say when rollouts may offer hosts a release.
    #[command(after_help = "\
A rollout may have windows too; a host is offered the release when both allow it. With --label the windows are written to \
the hosts that have the labels now: a host that gets them later has no window until the command is run again.

Examples:
  holdfast host window box7 --window \"sat,sun 02:00-06:00 Europe/Vienna\"
  holdfast host window --label customer=acme --window \"mon-fri 20:00-04:00 Europe/Vienna\"
  holdfast host window box7 --any-time")]
    Window(WindowArgs),
    /// Announce that a host is worked on: its agent begins nothing new, and no alert of it is sent meanwhile.
    #[command(after_help = "\
The agent lets what is under way end and reports the host as drained (`holdfast host show`). Backups that become due are \
caught up afterwards. Within a week an agent holds nothing back for more than a day. After the end, guests and storage \
targets that did not come back are MAINTENANCE_INCOMPLETE.

Examples:
  holdfast host maintenance box7 --for 2h --reason \"a new kernel\"
  holdfast host maintenance box7 --end")]
    Maintenance {
        /// The host's name or id.
        host: String,
        #[command(flatten)]
        end: EndOrNow,
        /// Why, for the log of events.
        #[arg(long, value_name = "TEXT", value_parser = comment, conflicts_with = "end")]
        reason: Option<ConditionText>,
    },
    /// Show the enrollment requests of hosts without an invite.
    Requests,
    /// Approve an enrollment request.
    #[command(after_long_help = "\
With --tunnel-token the host gets the token of a tunnel with its first check-in: it is sealed to the key that the \
fingerprint covers, and signed with your key. Without it, sign it later with `holdfast sign HOST --tunnel-token TUNNEL`.

Example:
  holdfast host approve 0193a000-0000-7000-8000-000000000001 box7 --fingerprint request/sha256:… \\
    --tunnel-token cloudflared --reason \"first token\"")]
    Approve(ApproveArgs),
    /// Refuse an enrollment request permanently.
    Refuse {
        /// The request's id.
        request: EnrollmentRequestId,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
    /// Revoke a host: its certificate is no longer accepted. Its guests keep running.
    Revoke {
        /// The host's name or id.
        host: String,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
}

/// Of `holdfast host window`.
#[derive(Debug, ClapArgs)]
pub struct WindowArgs {
    /// Names or ids of hosts.
    #[arg(required_unless_present = "label", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// All hosts with these labels, such as `customer=acme`.
    #[arg(long, value_name = "LABELS", conflicts_with = "hosts")]
    pub label: Option<LabelSelector>,
    /// A weekly window, such as `mon-fri 20:00-04:00 Europe/Vienna`, in the place of those before; may be repeated.
    #[arg(long = "window", value_name = "WINDOW", required_unless_present = "any_time")]
    pub windows: Vec<UpdateWindow>,
    /// Remove the windows: releases may be offered at any time.
    #[arg(long, conflicts_with = "windows")]
    pub any_time: bool,
    #[command(flatten)]
    pub assume_yes: AssumeYes,
}

/// One change of a label, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelTerm {
    Set(LabelKey, LabelValue),
    Remove(LabelKey),
}

impl FromStr for LabelTerm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix('-').filter(|key| !key.contains('=')) {
            Some(key) => Ok(Self::Remove(LabelKey::try_from(key.to_owned())?)),
            None => label(text)
                .map(|(key, value)| Self::Set(key, value))
                .map_err(|error| format!("{error}; KEY=VALUE sets a label, and KEY- removes it")),
        }
    }
}

/// Of `holdfast host pin`.
#[derive(Debug, ClapArgs)]
pub struct PinArgs {
    /// The host's name or id.
    pub host: String,
    /// What `agentd status` shows on the host itself.
    #[arg(long, value_name = "FINGERPRINT")]
    pub fingerprint: Option<HostFingerprint>,
}

/// Of `holdfast host withdraw`.
#[derive(Debug, ClapArgs)]
pub struct WithdrawArgs {
    /// The host's name or id.
    pub host: String,
    /// The order's hash, as `holdfast host restore` printed it; by default the only order at the hub.
    #[arg(long, value_name = "SHA256", value_parser = sha256)]
    pub order: Option<Sha256Text>,
    #[command(flatten)]
    pub key: KeyArgs,
    /// The reason; it is sent with the order and kept in the host's audit.
    #[arg(long, value_name = "TEXT", value_parser = job_reason)]
    pub reason: JobReason,
}

fn sha256(text: &str) -> Result<Sha256Text, &'static str> {
    text.to_owned().try_into()
}

/// Of `holdfast host restore`.
#[derive(Debug, ClapArgs)]
pub struct RestoreArgs {
    /// The lost host's name or id.
    pub host: String,
    /// The new host's key, as `agentd enroll --show-key` prints it there.
    #[arg(long, value_name = "PIN")]
    pub new_key: Pin,
    #[command(flatten)]
    pub key: KeyArgs,
    /// The reason; it is sent with the order and kept in the audit of the old host.
    #[arg(long, value_name = "TEXT", value_parser = job_reason)]
    pub reason: JobReason,
}

/// Of `holdfast host approve`.
#[derive(Debug, ClapArgs)]
pub struct ApproveArgs {
    /// The request's id.
    pub request: EnrollmentRequestId,
    /// The name for the host.
    pub name: HostName,
    /// The fingerprint, read on the host itself.
    #[arg(long, value_name = "PIN")]
    pub fingerprint: Pin,
    /// Readmit this revoked host, with its id, name and history. Only the fingerprint that you compare proves that the
    /// request comes from that machine.
    #[arg(long, value_name = "HOST_ID")]
    pub returns: Option<HostId>,
    /// Hand over the token of this tunnel, by its name in root's settings there; repeat for each. It is read from a prompt
    /// or from standard input, one line each, and sealed so that only this host can read it.
    #[arg(long, value_name = "TUNNEL", requires_all = ["key", "reason"], help_heading = "Tokens of tunnels")]
    pub tunnel_token: Vec<TunnelName>,
    /// For --tunnel-token: age recipients who can carry the token over to another host, one a line; by default the file
    /// `token-recipients` next to the login.
    #[arg(long, value_name = "FILE", requires = "tunnel_token", help_heading = "Tokens of tunnels")]
    pub copy_for: Option<PathBuf>,
    /// For --tunnel-token: your SSH key, as for `holdfast sign`.
    #[arg(long, short, value_name = "FILE", env = "HOLDFAST_KEY", help_heading = "Tokens of tunnels")]
    pub key: Option<PathBuf>,
    /// For --tunnel-token: the name to confirm, instead of the prompt.
    #[arg(long, value_name = "NAME", requires = "tunnel_token", help_heading = "Tokens of tunnels")]
    pub confirm: Option<String>,
    /// For --tunnel-token: the reason; it is sent with the job and kept in the host's audit.
    #[arg(long, value_name = "TEXT", value_parser = job_reason, requires = "tunnel_token", help_heading = "Tokens of tunnels")]
    pub reason: Option<JobReason>,
    /// For --tunnel-token: within how many hours the agent must be started.
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=24), help_heading = "Tokens of tunnels")]
    pub hours: u32,
}
