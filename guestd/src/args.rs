//! Command line arguments and exit codes.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use holdfast_protocol::id::{SnapshotName, StackName};
use holdfast_protocol::protection::Tier;

use crate::stacks::Class;

/// All is well.
pub const EXIT_DONE: u8 = 0;
/// It failed.
pub const EXIT_FAILED: u8 = 1;
/// Set-up mode: there is no agent to speak to yet.
pub const EXIT_SET_UP: u8 = 4;
/// Another `guestd` runs here.
pub const EXIT_LOCKED: u8 = 5;
/// The command of `guestd try` failed, or stacks were not well after it: the guest is rolled back to its snapshot.
pub const EXIT_ROLLED_BACK: u8 = 10;
/// The same, and the rollback was refused: the guest is as the command left it.
pub const EXIT_NOT_ROLLED_BACK: u8 = 11;
/// `guestd try` was signalled to end; the controller continues its work.
pub const EXIT_LET_GO: u8 = 12;
/// The agent does not answer.
pub const EXIT_UNAVAILABLE: u8 = 69;
/// The agent has as much waiting as it takes: try later.
pub const EXIT_BUSY: u8 = 75;
/// The files belong to another user.
pub const EXIT_NO_PERMISSION: u8 = 77;

const CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 4 set-up mode (no agent yet), 5 another guestd runs, \
                     10 try failed and rolled back, 11 try failed and not rolled back, \
                     12 try was terminated (the guest agent continues), 69 the agent does not answer, \
                     75 it is busy, try later, 77 no permission.";

/// The guest agent.
#[derive(Debug, Parser)]
#[command(name = "guestd", version, about, after_help = CODES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the guest agent.
    Run(RunArgs),
    /// Show this guest, its controller and its agent.
    Status(StatusArgs),
    /// Take a snapshot of this guest, or list its snapshots.
    Snapshot(SnapshotArgs),
    /// Roll this guest back to a snapshot. Later writes are lost, and the guest restarts.
    Rollback(RollBackArgs),
    /// Take a backup of this guest, or list its backups.
    Backup(BackupArgs),
    /// Take a snapshot, run a command, and roll back when it fails or stacks are unhealthy afterwards.
    Try(TryArgs),
    /// Show this guest's volumes, by class, and whether they are mounted.
    Volumes(VolumesArgs),
    /// Take a snapshot before packages change. apt calls this.
    AptHook(AptHookArgs),
    /// Wait for apt, then check the stacks that were healthy before. The hook starts this.
    AptJudge(AptJudgeArgs),
    /// Upgrade packages from Debian's security archive. A timer calls this.
    Upgrade(UpgradeArgs),
    /// Show what a backup would stop, and stop nothing.
    Quiesce(QuiesceArgs),
    /// Start stacks that were stopped for a backup.
    Resume(ResumeArgs),
    /// Put the previous guest agent back, when the agent did not confirm the new one. A timer calls this.
    TakeBack(TakeBackArgs),
    /// Show the audit records of this guest, verified by hash.
    Audit(AuditArgs),
}

/// Of `guestd snapshot`.
#[derive(Debug, ClapArgs)]
pub struct SnapshotArgs {
    /// The snapshot's name; by default the agent makes one.
    #[arg(conflicts_with = "list")]
    pub name: Option<SnapshotName>,
    /// How long to keep the snapshot, in hours; by default a day.
    #[arg(long, value_name = "HOURS", conflicts_with = "list")]
    pub keep_hours: Option<u32>,
    /// Show the snapshots instead of taking one.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Of `guestd rollback`.
#[derive(Debug, ClapArgs)]
pub struct RollBackArgs {
    /// The snapshot to roll back to.
    pub snapshot: SnapshotName,
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Of `guestd backup`.
#[derive(Debug, ClapArgs)]
pub struct BackupArgs {
    /// Show the backups instead of taking one.
    #[arg(long)]
    pub list: bool,
    /// Stop no stack: the backup is crash-consistent.
    #[arg(long, conflicts_with = "list")]
    pub crash_consistent: bool,
    /// The tier of this guest's policy; by default the one that is due, else the local one.
    #[arg(long, value_enum, conflicts_with = "list")]
    pub tier: Option<BackupTier>,
    #[command(flatten)]
    pub work: WorkArgs,
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
    /// The tier, as it is sent to the agent.
    pub const fn tier(self) -> Tier {
        match self {
            Self::Local => Tier::Local,
            Self::OffSite => Tier::OffSite,
        }
    }
}

/// Of `guestd try`.
#[derive(Debug, ClapArgs)]
pub struct TryArgs {
    /// How long to keep the snapshot when all is well, in hours; by default a day.
    #[arg(long, value_name = "HOURS")]
    pub keep_hours: Option<u32>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// The command and its arguments; they are not passed to a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Of `guestd volumes`.
#[derive(Debug, ClapArgs)]
pub struct VolumesArgs {
    /// Show only volumes of this class.
    #[arg(long, value_enum)]
    pub class: Option<Class>,
    /// Show the variables of this stack instead, one per line, as in an environment file.
    #[arg(long, value_name = "STACK", conflicts_with_all = ["class", "output"])]
    pub stack: Option<StackName>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Table, or JSON.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// This text is also in the man page of `guestd apt-hook`.
const APT: &str = "\
[apt] of /etc/holdfast/stacks.toml says what is done when packages change; without it, nothing is done.
  snapshot    before packages change: off, try (packages change even without a snapshot) or must
  after       when apt is done, and a stack that was well before is not well: off (no check), report (it is shown in \
`guestd status` and in the journal; this is the default where snapshots are taken) or roll_back (the guest goes back \
to that snapshot)
  keep_hours  how long the snapshot is kept; by default a day

A rollback loses ALL that was written since the snapshot, in this guest's databases too, and restarts the guest. The \
same packages come again with the next upgrade, unless they are held (apt-mark hold). There is no rollback when \
another snapshot was taken since, when other work on this guest is under way, or after a restart; nor is there one for \
packages that dpkg left half done, which is reported. Before you remove what a stack needs, take the stack out of \
stacks.toml.

One snapshot is for all steps of a run of apt, within half an hour. What `guestd try` runs is judged by `guestd try` \
alone.";

/// Of `guestd apt-hook`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = APT)]
pub struct AptHookArgs {
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Of `guestd apt-judge`.
#[derive(Debug, ClapArgs)]
pub struct AptJudgeArgs {
    #[command(flatten)]
    pub paths: PathArgs,
}

/// This text is also in the man page of `guestd upgrade`.
const UPGRADES: &str = "\
[upgrades] of /etc/holdfast/stacks.toml:
  security    on (the default) or off

Installed packages are upgraded to what Debian's security archive has, with the packages that these upgrades need, and \
to nothing else. Settings that were changed in the guest stay. A snapshot is taken before the upgrade, and the stacks \
that were well are checked after it, as [apt] says. Where [apt] says nothing, the guest goes back to the snapshot when \
one of them is no longer well, or when dpkg left packages half done. THAT LOSES ALL THAT WAS WRITTEN SINCE. What was \
rolled back is not tried again for a week. The snapshot is kept until the next upgrade, for a week at most.

`guestd status` shows the result, and whether programs still run from files that were replaced; both are reported to \
the agent. holdfast-upgrade.timer calls this with --in-window every half hour: then it upgrades once in each \
maintenance window, and restarts the guest once where programs wait for that. The desired document names the windows \
of a guest (maintenance). Without any, the window is each night between 02:00 and 05:00 UTC, and nothing is \
restarted.";

/// Of `guestd upgrade`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = UPGRADES)]
pub struct UpgradeArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Do only what is due in the maintenance window that the agent names, once. For the timer.
    #[arg(long)]
    pub in_window: bool,
}

/// This text is also in the man page of `guestd quiesce`.
const STACKS: &str = "\
STACKS: /etc/holdfast/stacks.toml names them; without it nothing is stopped. \
/usr/share/doc/holdfast-guest/examples/stacks.toml shows every key.
  [stack.NAME]           driver = \"compose\" with directory (file, project), or driver = \"systemd\" with units
    after                starts after these stacks, and stops before them
    wanted               running or stopped: the default state
    on_failure           report or restart: when a part of it ends by itself, and neither systemd nor Docker starts it \
again
    restore_test         check or leave
    stop_timeout_s, start_timeout_s, health_timeout_s
  [stack.NAME.hooks]     pre_quiesce, post_resume, health: a program by its absolute path and its arguments; timeout_s
  [stack.NAME.volumes]   key = { class = \"hot\" or \"bulk\", volume = \"NAME\" }: HOLDFAST_VOLUME_KEY names its \
mount, and without the mount the stack is not started
  bound_max_s            stacks are never stopped for longer
  [apt]                  snapshot = \"off\", \"try\" or \"must\"; after = \"off\", \"report\" or \"roll_back\"; \
keep_hours: guestd-apt-hook(8)
  [upgrades]             security = \"on\" or \"off\": guestd-upgrade(8)

/var/lib/holdfast/quiesce.json lists what is stopped, and a systemd timer starts it again at the bound, no matter \
which program dies. What a person stopped before stays stopped.

\
Stacks that should run are checked every minute (every quarter of an hour where a check takes long). What is not well \
at two checks in a row is shown in `guestd status` and reported to the agent. With on_failure = \"restart\", what \
ended by itself is started: at once, then after a minute, two, four, up to an hour. What systemd or Docker starts \
again is left to them; what a person stopped or removed is left alone.";

/// Of `guestd quiesce`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = STACKS)]
pub struct QuiesceArgs {
    /// Show what would stop, test marker and timer, and stop nothing. For a backup with stopped stacks, use
    /// `guestd backup`.
    #[arg(long, required = true)]
    pub dry_run: bool,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Table, or JSON.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Of `guestd resume`.
#[derive(Debug, ClapArgs)]
pub struct ResumeArgs {
    /// Start them only when the window has expired. The timer calls this.
    #[arg(long)]
    pub expired: bool,
    /// Forget parts that were removed while stopped, and start the others.
    #[arg(long, conflicts_with = "expired")]
    pub without_removed: bool,
    /// The calling timer: removed when there is nothing to resume.
    #[arg(long, value_name = "UNIT", hide = true)]
    pub timer: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Of `guestd take-back`.
#[derive(Debug, ClapArgs)]
pub struct TakeBackArgs {
    /// The guest's root directory.
    #[arg(long, default_value = "/", hide = true)]
    pub root: PathBuf,
}

/// Of `guestd audit`.
#[derive(Debug, ClapArgs)]
pub struct AuditArgs {
    /// Show only records after this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub after: i64,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Table, or JSON.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Of everything that asks for work.
#[derive(Debug, ClapArgs)]
pub struct WorkArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// End as soon as the agent has accepted the request.
    #[arg(long)]
    pub no_wait: bool,
    /// Table, or JSON.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Of `guestd run`.
#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Of `guestd status`.
#[derive(Debug, ClapArgs)]
pub struct StatusArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Table, or JSON.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Where the guest is.
#[derive(Clone, Debug, ClapArgs)]
pub struct PathArgs {
    /// The guest's root directory, for a guest that is a directory.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Connect to the agent from this address, for a guest that has no network of its own.
    #[arg(long, value_name = "ADDR")]
    pub source_address: Option<IpAddr>,
}

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table.
    Table,
    /// One JSON document.
    Json,
}
