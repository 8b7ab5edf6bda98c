//! The command line of `holdfast host`.

use clap::{Args as ClapArgs, Subcommand};
use holdfast_protocol::id::{HostId, HostName, KnockId};
use holdfast_protocol::job::HostFingerprint;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::stamp::Reason as JobReason;
use holdfast_protocol::pin::Pin;

use super::{KeyArgs, Sure, job_reason};

/// Of `holdfast host`.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Make an invitation: one line for `agentd enroll`, shown once.
    Invite {
        /// What the host will be called.
        name: HostName,
    },
    /// Let a new box take the place of a lost one: sign the order, and get one line for `agentd enroll --restore`.
    #[command(after_long_help = "\
The order is signed with your own key, and both boxes hold it to the operators file that root laid down on them: the new one \
becomes the host by it alone, and the lost one, should it come back, stands still by it alone. The hub hands over what it \
knows (document, guests, storage targets, the wrapped backup key, of which the customer is told) and can make no order.

Lay the operators file down on the new box first (`agentd setup --operators`). Where the policy asks for more than one \
signature on restore_host, this command cannot give them yet.

The order names the new box's key, so no other box can follow it. One that no box followed is over for every box after its \
time; `holdfast host show` lists it, `holdfast host withdraw` takes it back.")]
    Restore(RestoreArgs),
    /// Take back an order to restore a host, by another one signed with your key.
    #[command(after_long_help = "\
The hub keeps it beside the order and gives no box a place by it; a host that lives gets it as a job and remembers it. A host \
that sleeps hears of it from the hub alone: one that was stolen can keep it back, and that host then stands still when it \
wakes, though it loses nothing.")]
    Withdraw(WithdrawArgs),
    /// Know a host from now on as the hub shows it, after comparing its fingerprint with the box itself.
    #[command(after_long_help = "\
Whoever signs for a host knows it by name, id, key and the life of its records, noted at the first use in `hosts.json` beside \
the login. When the hub shows anything else, nothing is signed (HOST_KEY_CHANGED). The fingerprint stands in `agentd status` on \
the box; give it with --fingerprint, or compare it when asked.")]
    Pin(PinArgs),
    /// Show all hosts, those that need a person first.
    List {
        /// Show the hosts that ask to be let in instead: the same as `host knocks`.
        #[arg(long)]
        knocks: bool,
    },
    /// Show one host with its guests, storages and work.
    Show {
        /// Its name or id.
        host: String,
    },
    /// Show the hosts that ask to be let in without an invitation.
    Knocks,
    /// Let a host in that knocked.
    Approve {
        /// The knock's id.
        knock: KnockId,
        /// What the host will be called.
        name: HostName,
        /// The key's pin, read off the box itself.
        #[arg(long, value_name = "PIN")]
        fingerprint: Pin,
        /// The revoked host that it is: it comes back with that host's id and history, under the host's own name. Only the
        /// fingerprint that you compare says that it is that box.
        #[arg(long, value_name = "HOST_ID")]
        returns: Option<HostId>,
    },
    /// Refuse a host that knocked, for good.
    Refuse {
        /// The knock's id.
        knock: KnockId,
        #[command(flatten)]
        sure: Sure,
    },
    /// Let a host go: its certificate is worth nothing from now on. Its guests run on.
    Revoke {
        /// Its name or id.
        host: String,
        #[command(flatten)]
        sure: Sure,
    },
}

/// Of `holdfast host pin`.
#[derive(Debug, ClapArgs)]
pub struct PinArgs {
    /// The host's name or id.
    pub host: String,
    /// What `agentd status` shows on the box itself.
    #[arg(long, value_name = "FINGERPRINT")]
    pub fingerprint: Option<HostFingerprint>,
}

/// Of `holdfast host withdraw`.
#[derive(Debug, ClapArgs)]
pub struct WithdrawArgs {
    /// The host's name or id.
    pub host: String,
    /// The order's hash, as `holdfast host restore` printed it; without it the only one that lies at the hub.
    #[arg(long, value_name = "SHA256", value_parser = sha256)]
    pub order: Option<Sha256Text>,
    #[command(flatten)]
    pub key: KeyArgs,
    /// Why; it goes with the order and stays in the audit of the host.
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
    /// The new box's key, as `agentd enroll --show-key` prints it there.
    #[arg(long, value_name = "PIN")]
    pub new_key: Pin,
    #[command(flatten)]
    pub key: KeyArgs,
    /// Why; it goes with the order and stays in the audit of the old box.
    #[arg(long, value_name = "TEXT", value_parser = job_reason)]
    pub reason: JobReason,
}
