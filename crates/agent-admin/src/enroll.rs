//! `agentd enroll`: enrollment at a hub.
//!
//! By an invite, by an enrollment request that an operator approves, or as the successor of a lost host.
//!
//! The key is on the disk before the hub hears of it, so a command that was cut off is simply run again: the hub knows
//! the key and answers the same.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_protocol::enrol::{
    Enrolled, EnrollmentAnswer, EnrollmentRequest, INVITE_CHARS_MAX, Invite, InviteError, InviteRedemption,
    SealingIdentity, request_fingerprint,
};
use holdfast_protocol::id::HostName;
use holdfast_protocol::job::HostFingerprint;
use holdfast_protocol::json::chain;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::secret::Secret;
use serde::Serialize;
use zeroize::Zeroizing;

use super::Output;
use super::drop_privileges::{self, StepDownError};
use crate::gate::restore::NoOrder;
use crate::port::admin_socket::StatusError;
use crate::port::backoff::{Backoff, spread};
use crate::port::clock::{Clock, RealClock};
use crate::port::host_key::{self, HostKeyError};
use crate::port::host_replacement::{HandOverError, HandOverFolder};
use crate::port::hub::{Hub, HubError, Remedy};
use crate::port::identity::{Identity, IdentityError, IdentityFolder, PendingKey, Purpose};
use crate::port::store::{OpenError, Store, StoreError};
use crate::port::trust_files::TrustFileError;
use crate::settings::{ConfigPath, Settings, SettingsError};

mod restore;

/// Six tries take about half a minute, which outlasts a restart of the hub.
const TRIES_MAX: u32 = 6;
const PACE: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(15) };

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
An invite is the line `hf1_…` that `holdfast host invite NAME` prints. It works once, for an hour. On the command \
line, every user of this host can see it while the command runs, and the shell's history keeps it; `-` (standard \
input) and --invite-file keep it secret.

Before this host takes a lost host's place, print this host's key with `--show-key`: the operators' order names it, \
and no other host can follow that order.

Without an invite the agent can send an enrollment request: an operator compares its fingerprint and approves or \
refuses it. The fingerprint covers the key that secrets for this host are sealed to, so the operator may hand over the \
token of a tunnel in the same step.

Run as root, the command continues as the owner of the state folder.")]
pub struct EnrollArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The invite, or `-` to read it from standard input, which is also the default.
    #[arg(value_parser = secret, conflicts_with_all = ["invite_file", "request"])]
    invite: Option<Secret>,
    /// The invite is a restore invite (`holdfast host restore`): this host takes the place of a lost one.
    #[arg(long, conflicts_with_all = ["request", "take_up"])]
    restore: bool,
    /// Print this host's key, which is created if there is none yet, and do nothing else.
    /// `holdfast host restore --new-key` binds the order to it.
    #[arg(long, conflicts_with_all = ["invite", "invite_file", "request", "restore", "take_up"])]
    show_key: bool,
    /// Take up the guests of the host that this one replaced: they are restored from their off-site backups, and
    /// documents are accepted again. Run it again with --without to give up a guest that was to be restored.
    #[arg(long, conflicts_with_all = ["invite", "invite_file", "request"])]
    take_up: bool,
    /// A guest of the lost host that is not restored; the document may create it anew, empty.
    #[arg(long, value_name = "GUEST", requires = "take_up")]
    without: Vec<String>,
    /// A file that holds the invite.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    invite_file: Option<PathBuf>,
    /// Send an enrollment request to the hub at this URL, without an invite.
    #[arg(long, value_name = "URL", requires = "ca_pin")]
    request: Option<String>,
    /// The pin of that hub's CA, `leaf/sha256:…`, as `hubd serve` prints it.
    #[arg(long, value_name = "PIN", requires = "request")]
    ca_pin: Option<Pin>,
    /// Table for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a parser of this form")]
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

/// Why the host was not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrollError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Root could not step down.
    #[error(transparent)]
    StepDown(#[from] StepDownError),
    /// The invite could not be read.
    #[error("the invite cannot be read from {from}")]
    Input {
        /// The file that it should have been read from.
        from: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not an invite.
    #[error(transparent)]
    Invite(#[from] InviteError),
    /// The host has an identity already.
    #[error(
        "this box is enrolled already, as {name} with {hub}: to enrol it anew, have the host revoked there, then remove {}",
        folder.display()
    )]
    Already {
        /// Its name.
        name: HostName,
        /// Its hub.
        hub: String,
        /// Where the identity is kept.
        folder: PathBuf,
    },
    /// Key, certificate or their files.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The host's own key.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// Its public half.
    #[error("the public half of this host's own key cannot be computed: this is a fault of this program")]
    Recipient(#[source] holdfast_seal::NoKey),
    /// The hub.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A node name that is no host name.
    #[error("the node {node} of the configuration has a name that cannot be announced")]
    Name {
        /// The node.
        node: String,
        /// Why.
        #[source]
        source: holdfast_protocol::id::IdError,
    },
    /// A restore invite without `--restore`.
    #[error("this is an invite to take the place of a lost box: say so with --restore")]
    IsRestore,
    /// `--restore` without a restore invite.
    #[error(
        "this is an ordinary invite: leave --restore away, or ask for one with `holdfast host restore HOST`"
    )]
    NotRestore,
    /// No operator could have ordered it.
    #[error(
        "nobody may sign on this box, and only operators can order it into a lost one's place: lay down their file first \
         (`agentd setup --operators FILE`); {} is not there",
        path.display()
    )]
    NoOperators {
        /// Where it should be.
        path: PathBuf,
    },
    /// The files of operators and policy.
    #[error(transparent)]
    TrustFile(#[from] TrustFileError),
    /// The operators file.
    #[error(transparent)]
    Operators(#[from] holdfast_trust::operators::OperatorsError),
    /// The policy.
    #[error(transparent)]
    Policy(#[from] holdfast_trust::policy::PolicyError),
    /// No order.
    #[error("this box does not take the lost one's place")]
    Order(#[from] NoOrder),
    /// The handed-over data.
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] StatusError),
    /// The agent's records.
    #[error("the records of this host cannot be opened")]
    Records(#[from] OpenError),
    #[error("the epoch of this host's records cannot be read")]
    Epoch(#[from] StoreError),
    /// No runtime.
    #[error("the program's runtime cannot be started")]
    Runtime(#[source] std::io::Error),
}

impl EnrollError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Name { .. } | Self::NoOperators { .. } | Self::TrustFile(_) => 78,
            Self::Operators(_) | Self::Policy(_) => 78,
            Self::IsRestore | Self::NotRestore => 64,
            Self::Order(_) => 65,
            Self::HandOver(_) => 74,
            Self::Agent(error) => error.exit_code(),
            Self::StepDown(_) => 77,
            Self::Input { .. } => 66,
            Self::Invite(_) | Self::Already { .. } => 65,
            Self::Identity(_) | Self::HostKey(_) | Self::Records(_) | Self::Epoch(_) => 74,
            Self::Recipient(_) => 70,
            Self::Hub(error) => match error.remedy() {
                Remedy::Wait => 75,
                Remedy::Operator => 69,
            },
            Self::Runtime(_) => 71,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`EnrollError`].
pub fn run(arguments: EnrollArguments) -> Result<(), EnrollError> {
    let settings = Settings::load(&arguments.config)?;
    match &arguments.invite_file {
        Some(file) => drop_privileges::to_owner_of_with(&settings.state.dir, "--invite-file", file)?,
        None => drop_privileges::to_owner_of(&settings.state.dir)?,
    }
    if arguments.take_up {
        return restore::take_up(&settings, &arguments.without);
    }
    let folder = IdentityFolder::open(&settings.state.dir)?;
    if let Some(identity) = folder.read()? {
        let folder = settings.state.dir.join("identity");
        return Err(EnrollError::Already { name: identity.enrolled.host_name, hub: identity.hub, folder });
    }
    if arguments.show_key {
        println!("{}", folder.pending(Purpose::Enrol)?.fingerprint());
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(EnrollError::Runtime)?;
    if arguments.restore {
        let roster = restore::roster(&settings.trust)?;
        let handed = HandOverFolder::of(&settings.state.dir);
        let invite = Invite::open(&read_invite(&arguments)?)?;
        let redeemed = restore::redeem(&folder, &handed, &roster, invite, RealClock::start().now());
        let (identity, handover) = runtime.block_on(redeemed)?;
        report(&identity, &settings.state.dir, arguments.output)?;
        eprint!("{}", restore::next_steps(&handover));
        return Ok(());
    }
    let identity = match (&arguments.request, arguments.ca_pin) {
        (Some(hub), Some(pin)) => {
            let node = settings.proxmox.node.to_string();
            let claimed_name = node.to_ascii_lowercase().parse();
            let claimed_name = claimed_name.map_err(|source| EnrollError::Name { node, source })?;
            let sealing = sealing(&settings.state.dir, &runtime);
            runtime.block_on(request_enrollment(&folder, hub, pin, claimed_name, sealing))?
        }
        _ => {
            let invite = Invite::open(&read_invite(&arguments)?)?;
            runtime.block_on(redeem(&folder, invite))?
        }
    };
    report(&identity, &settings.state.dir, arguments.output)
}

fn read_invite(arguments: &EnrollArguments) -> Result<Secret, EnrollError> {
    let (from, bytes) = match (&arguments.invite, &arguments.invite_file) {
        (Some(invite), _) if invite.expose() != "-" => return Ok(invite.clone()),
        (_, Some(path)) => (path.display().to_string(), std::fs::File::open(path).and_then(bounded)),
        _ => {
            if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
                eprintln!("Paste the invite (hf1_…) and press Enter, then Ctrl-D:");
            }
            ("standard input".to_owned(), bounded(std::io::stdin()))
        }
    };
    bytes.map(Secret::new).map_err(|source| EnrollError::Input { from, source })
}

/// One character more than an invite has, so that a longer text is refused and not cut.
fn bounded(from: impl Read) -> std::io::Result<String> {
    let mut text = Zeroizing::new(String::new());
    from.take(INVITE_CHARS_MAX as u64 + 64).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

async fn redeem(folder: &IdentityFolder, invite: Invite) -> Result<Identity, EnrollError> {
    if invite.order.is_some() {
        return Err(EnrollError::IsRestore);
    }
    let hub = Hub::first_contact(&invite.hub, invite.ca)?;
    let key = folder.pending(Purpose::Enrol)?;
    let request = InviteRedemption { secret: invite.secret, csr_pem: key.csr_pem()? };
    let mut failures = 0;
    let enrolled = loop {
        match hub.enroll(&request).await {
            Ok(enrolled) => break enrolled,
            Err(error) => {
                failures += 1;
                wait_or_give_up(error, failures).await?;
            }
        }
    };
    keep(folder, &key, &invite.hub, enrolled)
}

/// What an operator who approves the request may seal and sign an order for at once: key and epoch are made here, where
/// the agent has not made them yet. Without them the request is as good, and such orders follow later.
fn sealing(state: &Path, runtime: &tokio::runtime::Runtime) -> Option<SealingIdentity> {
    match sealing_identity(state, runtime) {
        Ok(sealing) => Some(sealing),
        Err(error) => {
            eprintln!("agentd: {error}");
            eprintln!(
                "The request is sent without it: tokens of tunnels are signed for after the enrolment."
            );
            None
        }
    }
}

fn sealing_identity(state: &Path, runtime: &tokio::runtime::Runtime) -> Result<SealingIdentity, EnrollError> {
    let recipient = host_key::open(state)?.recipient().map_err(EnrollError::Recipient)?;
    // Without a thread of its own, so that the folder is free again when this returns.
    let store = Store::open_on_callers_thread(state, RealClock::start().now())?;
    let epoch = runtime.block_on(store.trust_section())?.epoch;
    Ok(SealingIdentity { recipient, epoch })
}

async fn request_enrollment(
    folder: &IdentityFolder,
    base: &str,
    pin: Pin,
    claimed_name: HostName,
    sealing: Option<SealingIdentity>,
) -> Result<Identity, EnrollError> {
    let hub = Hub::first_contact(base, pin)?;
    let key = folder.pending(Purpose::Enrol)?;
    let fingerprint = request_fingerprint(key.fingerprint(), sealing.as_ref());
    let request = EnrollmentRequest { csr_pem: key.csr_pem()?, claimed_name, sealing };
    eprintln!("This box's fingerprint is {fingerprint}");
    eprintln!(
        "Compare it with `holdfast host requests` and approve it there. Ctrl-C stops the waiting; run the"
    );
    eprintln!("same command again to go on.");
    let mut failures = 0;
    let enrolled = loop {
        match hub.request_enrollment(&request).await {
            Ok(EnrollmentAnswer::Approved(enrolled)) => break *enrolled,
            Ok(EnrollmentAnswer::Pending { retry_after_s, .. }) => {
                failures = 0;
                // A hub cannot make us hammer it, nor sleep for a day.
                tokio::time::sleep(Duration::from_secs(u64::from(retry_after_s.clamp(1, 300)))).await;
            }
            Err(error) => {
                failures += 1;
                wait_or_give_up(error, failures).await?;
            }
        }
    };
    keep(folder, &key, base, enrolled)
}

async fn wait_or_give_up(error: HubError, failures: u32) -> Result<(), EnrollError> {
    if error.remedy() == Remedy::Operator || failures >= TRIES_MAX {
        return Err(error.into());
    }
    eprintln!("agentd: {}; trying again ({failures} of {})", chain(&error), TRIES_MAX - 1);
    tokio::time::sleep(PACE.after(failures, spread())).await;
    Ok(())
}

fn keep(
    folder: &IdentityFolder,
    key: &PendingKey,
    hub: &str,
    enrolled: Enrolled,
) -> Result<Identity, EnrollError> {
    Ok(folder.accept(key, hub.trim_end_matches('/'), enrolled)?)
}

#[derive(Serialize)]
struct Reported<'a> {
    host_id: holdfast_protocol::id::HostId,
    host_name: &'a HostName,
    fingerprint: &'a HostFingerprint,
    hub: &'a str,
    certificate_ends_at: jiff::Timestamp,
}

/// The key that makes the fingerprint is made here, where the agent has not made it yet.
fn report(identity: &Identity, state: &Path, output: Output) -> Result<(), EnrollError> {
    let enrolled = &identity.enrolled;
    let key = host_key::open(state)?.recipient().map_err(EnrollError::Recipient)?;
    let fingerprint = HostFingerprint::of(enrolled.host_id, &enrolled.host_name, &key);
    let reported = Reported {
        host_id: enrolled.host_id,
        host_name: &enrolled.host_name,
        fingerprint: &fingerprint,
        hub: &identity.hub,
        certificate_ends_at: enrolled.not_after,
    };
    match output {
        Output::Json => super::print_json(&reported),
        Output::Table => {
            println!("Enrolled as {} ({}) with {}", reported.host_name, reported.host_id, reported.hub);
            println!("Fingerprint {fingerprint}: `holdfast host pin {}` shows the same", reported.host_name);
            println!("Next: systemctl enable --now agentd");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
