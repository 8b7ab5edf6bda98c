//! Arguments of `holdfast sign`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use holdfast_protocol::break_glass::{OpenMinutes, WayName};
use holdfast_protocol::id::{GoldenVersion, SnapshotName, TunnelName};
use holdfast_protocol::job::act::{ArchiveText, BackupLoss, Sha256Text, VolumeText};
use holdfast_protocol::job::stamp::Reason as JobReason;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::storage::HostRecipient;

use super::{archive, job_reason, volume};

/// Of `holdfast sign`.
#[derive(Debug, ClapArgs)]
pub struct SignArgs {
    /// The host's name or id.
    #[arg(required_unless_present = "all_hosts")]
    pub host: Option<String>,
    /// The entry: its number in the host's list, its verb, its storage's name, or its guest's name, uid or VMID. Not
    /// needed when only one entry waits.
    #[arg(conflicts_with_all = ["also", "policy", "draft"])]
    pub what: Option<String>,
    /// Add your signature to a job that is already signed.
    #[arg(long, value_name = "FILE", group = "image", conflicts_with_all = ["reason", "hours", "out", "policy", "draft", "act"], help_heading = "Instead of what waits")]
    pub also: Option<PathBuf>,
    /// Take a backup of the guest now.
    #[arg(long, groups = ["act", "tiered"], requires = "what", help_heading = "Instead of what waits")]
    pub backup_now: bool,
    /// Run a restore test now: restore a backup into a scratch guest and check it.
    #[arg(long, groups = ["act", "tiered"], requires = "what", help_heading = "Instead of what waits")]
    pub restore_test: bool,
    /// For --backup-now and --restore-test: the tier of the guest's policy.
    #[arg(
        long,
        value_enum,
        value_name = "TIER",
        requires = "tiered",
        help_heading = "Instead of what waits"
    )]
    pub tier: Option<BackupTier>,
    /// Roll the guest back to this snapshot: later writes are lost.
    #[arg(
        long,
        group = "act",
        requires = "what",
        value_name = "SNAPSHOT",
        help_heading = "Instead of what waits"
    )]
    pub roll_back: Option<SnapshotName>,
    /// Restore this archive (storage:backup/file) as a copy of the guest.
    #[arg(long, group = "act", requires = "what", value_name = "ARCHIVE", value_parser = archive, help_heading = "Instead of what waits")]
    pub restore: Option<ArchiveText>,
    /// Delete this backup (storage:backup/file) of the guest permanently; another backup of the guest stays on the
    /// storage.
    #[arg(long, group = "act", requires = "what", value_name = "ARCHIVE", value_parser = archive, help_heading = "Instead of what waits")]
    pub delete_backup: Option<ArchiveText>,
    /// For --delete-backup: what is lost with it because the guest has no second one; repeat for each.
    #[arg(
        long,
        value_enum,
        requires = "delete_backup",
        conflicts_with_all = ["backup_now", "move_volume", "restore", "rebase", "restore_test", "roll_back", "swap"],
        value_name = "WHAT",
        help_heading = "Instead of what waits"
    )]
    pub loses: Vec<LossArg>,
    /// Move this volume to another guest of the same customer; both guests are stopped for it.
    #[arg(long, num_args = 2, value_names = ["VOLUME", "GUEST"], group = "act", requires = "what", help_heading = "Instead of what waits")]
    pub move_volume: Option<Vec<String>>,
    /// Swap the guest with this restored copy, by name or VMID; the original is set aside and kept.
    #[arg(
        long,
        group = "act",
        requires = "what",
        value_name = "COPY",
        help_heading = "Instead of what waits"
    )]
    pub swap: Option<String>,
    /// A volume that the copy lacks and that stays with the set-aside guest; repeat for each.
    #[arg(
        long,
        requires = "swap",
        conflicts_with_all = ["backup_now", "delete_backup", "discard", "move_volume", "rebase", "restore", "restore_test", "roll_back"],
        value_name = "VOLUME",
        value_parser = volume,
        help_heading = "Instead of what waits"
    )]
    pub leave: Vec<VolumeText>,
    /// Put the guest on this newer golden image: its volumes move to a new container, its root disk stays behind with the
    /// original, which is set aside and kept.
    #[arg(
        long,
        group = "act",
        requires = "what",
        value_name = "VERSION",
        help_heading = "Instead of what waits"
    )]
    pub rebase: Option<GoldenVersion>,
    /// Destroy this copy of the guest, by name or VMID: a restored one, or what the guest was before a swap or a newer image.
    #[arg(
        long,
        group = "act",
        requires = "what",
        value_name = "COPY",
        help_heading = "Instead of what waits"
    )]
    pub discard: Option<String>,
    /// For --rebase: data on the root disk outside of volumes stays behind, as it is shown, or although it is unknown.
    #[arg(
        long,
        requires = "rebase",
        conflicts_with_all = ["backup_now", "delete_backup", "discard", "move_volume", "restore", "restore_test", "roll_back", "swap"],
        help_heading = "Instead of what waits"
    )]
    pub leave_behind: bool,
    /// Replace the operators file and the policy of the host with these two files. If only one operator signs where two
    /// could, the job waits for a day.
    #[arg(long, num_args = 2, value_names = ["OPERATORS", "POLICY"], help_heading = "Instead of what waits")]
    pub policy: Option<Vec<PathBuf>>,
    /// Sign the job draft in this file, as the host wrote it (`agentd golden approve-request`).
    #[arg(long, value_name = "FILE", conflicts_with = "policy", help_heading = "Instead of what waits")]
    pub draft: Option<PathBuf>,
    /// Approve a golden image although builders made different images of the same inputs.
    #[arg(long, help_heading = "Instead of what waits")]
    pub although_builds_differ: bool,
    /// Approve a golden image once for all hosts, those that are enrolled until its end included.
    #[arg(long, requires = "image", conflicts_with_all = ["host", "what", "policy", "draft", "act", "break_glass", "tunnel_token", "hours"], help_heading = "For all hosts")]
    pub all_hosts: bool,
    /// For --all-hosts: the image, as hosts report it.
    #[arg(
        long,
        value_name = "VERSION",
        group = "image",
        requires = "all_hosts",
        conflicts_with = "host",
        help_heading = "For all hosts"
    )]
    pub golden: Option<GoldenVersion>,
    /// For --golden: the digest of its archive, where hosts report several or none.
    #[arg(long, value_name = "SHA256", value_parser = sha256, requires = "golden", help_heading = "For all hosts")]
    pub sha256: Option<Sha256Text>,
    /// For --golden: for how many days hosts may admit it.
    #[arg(long, value_name = "DAYS", default_value_t = 14, requires = "golden", value_parser = clap::value_parser!(u32).range(1..=31), help_heading = "For all hosts")]
    pub days: u32,
    /// Open this way into the host for a person, for a bounded time: by its name in root's settings there.
    #[arg(long, value_name = "WAY", value_parser = way, conflicts_with_all = ["what", "also", "policy", "draft", "act"], help_heading = "Instead of what waits")]
    pub break_glass: Option<WayName>,
    /// For --break-glass: for how many minutes, 1 to 480.
    #[arg(long, value_name = "MINUTES", value_parser = minutes, requires = "break_glass", default_value = "60", help_heading = "Instead of what waits")]
    pub minutes: OpenMinutes,
    /// For --break-glass: the file of the public SSH key that is let in; without it the way has a key of its own.
    #[arg(long, value_name = "FILE", requires = "break_glass", help_heading = "Instead of what waits")]
    pub let_in: Option<PathBuf>,
    /// Give this tunnel of the host a token, by its name in root's settings there. The token is read from a prompt or
    /// from standard input, and sealed so that only this host can read it.
    #[arg(long, value_name = "TUNNEL", conflicts_with_all = ["what", "also", "policy", "draft", "act", "break_glass"], help_heading = "Instead of what waits")]
    pub tunnel_token: Option<TunnelName>,
    /// For --tunnel-token: the host's key, as `agentd storage key` prints it there; without it you compare the one that
    /// the hub shows.
    #[arg(long, value_name = "KEY", requires = "tunnel_token", help_heading = "Instead of what waits")]
    pub recipient: Option<HostRecipient>,
    /// For --tunnel-token: age recipients who can carry the token over to another host, one a line; by default the file
    /// `token-recipients` next to the login.
    #[arg(long, value_name = "FILE", requires = "tunnel_token", help_heading = "Instead of what waits")]
    pub copy_for: Option<PathBuf>,
    /// For --tunnel-token, on a host that replaced a lost one: take the token from the newest order that the hub kept,
    /// opened with the age identity in this file.
    #[arg(long, value_name = "IDENTITY", requires_all = ["tunnel_token", "operators"], help_heading = "Instead of what waits")]
    pub carry_over: Option<PathBuf>,
    /// For --carry-over: the operators file, in which who signed that order must be.
    #[arg(long, value_name = "FILE", requires = "carry_over", help_heading = "Instead of what waits")]
    pub operators: Option<PathBuf>,
    #[command(flatten)]
    pub key: KeyArgs,
    /// The reason; it is sent with the job and kept in the host's audit.
    #[arg(long, value_name = "TEXT", value_parser = job_reason, required_unless_present = "also", help_heading = "The job")]
    pub reason: Option<JobReason>,
    /// For how many hours the job may be started.
    #[arg(long, value_name = "HOURS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=24), help_heading = "The job")]
    pub hours: u32,
    /// Write the signed job to this file; by default holdfast-JOB.json in the current folder.
    #[arg(long, value_name = "FILE", help_heading = "The job")]
    pub out: Option<PathBuf>,
    /// Submit the signed job to the host at once.
    #[arg(long, help_heading = "The job")]
    pub submit: bool,
}

fn way(text: &str) -> Result<WayName, &'static str> {
    WayName::try_from(text.to_owned())
}

fn sha256(text: &str) -> Result<Sha256Text, &'static str> {
    Sha256Text::try_from(text.to_owned())
}

fn minutes(text: &str) -> Result<OpenMinutes, &'static str> {
    text.parse::<u16>().map_err(|_| "a way is open for 1 to 480 minutes")?.try_into()
}

/// What is lost with a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LossArg {
    /// The guest's newest backup.
    Newest,
    /// Its newest backup that was restored and checked.
    NewestProved,
    /// The only backup that holds one of its volumes.
    OnlyHolder,
}

impl LossArg {
    /// As the job says it.
    #[must_use]
    pub const fn loss(self) -> BackupLoss {
        match self {
            Self::Newest => BackupLoss::Newest,
            Self::NewestProved => BackupLoss::NewestProved,
            Self::OnlyHolder => BackupLoss::OnlyHolder,
        }
    }
}

/// A tier that has backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackupTier {
    /// On another storage of the host or its site.
    Local,
    /// In another place, encrypted.
    OffSite,
}

impl BackupTier {
    /// As a job says it.
    pub const fn tier(self) -> Tier {
        match self {
            Self::Local => Tier::Local,
            Self::OffSite => Tier::OffSite,
        }
    }
}

/// With what and how to sign.
#[derive(Debug, ClapArgs)]
pub struct KeyArgs {
    /// Your SSH key: a private key's file, or a public key's file whose private half is in ssh-agent or in a token.
    #[arg(long, short, value_name = "FILE", env = "HOLDFAST_KEY", help_heading = "Your key")]
    pub key: PathBuf,
    /// The name to confirm, instead of the prompt.
    #[arg(long, value_name = "NAME", help_heading = "Your key")]
    pub confirm: Option<String>,
}
