//! The table of condition codes.
//!
//! One row holds everything that is known of a code. A new code is a new row, and a way to observe it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::{Cause, Inhibits};
use super::severity::{DataRisk, Severity};
use super::subject::SubjectKind;

/// What is known of a code.
#[derive(Clone, Copy, Debug)]
pub struct ConditionSpec {
    /// The code.
    pub code: ConditionCode,
    /// How urgent it is, where its reporter does not know better.
    pub severity: Severity,
    /// What it can be about.
    pub subjects: &'static [SubjectKind],
    /// How long it must last before it fires, in seconds.
    pub grace_s: u32,
    /// Whether data is at risk while it lasts.
    pub risk: DataRisk,
    /// What is behind it.
    pub cause: Cause,
    /// What it makes superfluous on the same host.
    pub inhibits: Inhibits,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// What an operator does, with the command to run. Words in capitals stand for names.
    pub remedy: &'static str,
}

macro_rules! conditions {
    ($($name:ident = $text:literal, $severity:ident, [$($subject:ident)+], $grace:literal s, $risk:ident, $cause:ident,
        $inhibits:expr, $meaning:literal, $remedy:literal;)*) => {
        /// What is wrong, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ConditionCode {
            $(#[doc = $meaning] #[serde(rename = $text)] $name,)*
        }

        impl ConditionCode {
            /// Every code, sorted by its text.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as written on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Its row of the table.
            #[must_use]
            pub const fn spec(self) -> ConditionSpec {
                match self {
                    $(Self::$name => ConditionSpec {
                        code: Self::$name,
                        severity: Severity::$severity,
                        subjects: &[$(SubjectKind::$subject,)+],
                        grace_s: $grace,
                        risk: DataRisk::$risk,
                        cause: Cause::$cause,
                        inhibits: $inhibits,
                        meaning: $meaning,
                        remedy: $remedy,
                    },)*
                }
            }
        }
    };
}

/// Without Proxmox nothing is known of guests, and no backup begins.
const PROXMOX_AWAY: Inhibits =
    Inhibits::Causes(&[Cause::Guest, Cause::Protection, Cause::Storage, Cause::Use]);
const NOTHING: Inhibits = Inhibits::Nothing;

#[rustfmt::skip]
conditions! {
    AgentUpdateFailed = "AGENT_UPDATE_FAILED", Warning, [Host], 0 s, Safe, Hub, NOTHING,
        "A release of the agent was refused on the host, or failed its trial and was taken back.",
        "See why with `holdfast host show HOST`, or `/usr/lib/holdfast/holdfast-agent-gate status` on the host; then release a newer version, or sign a new manifest.";
    AuditChainBroken = "AUDIT_CHAIN_BROKEN", Critical, [Host], 0 s, Endangered, Tampering, NOTHING,
        "The audit of the host no longer continues from what the hub has seen of it.",
        "Keep the host as it is, and compare: `agentd audit verify` there, then `holdfast audit verify FILE`. If its records were replaced on purpose, revoke the host and admit it again.";
    BackupCrashConsistent = "BACKUP_CRASH_CONSISTENT", Warning, [Tier], 0 s, Endangered, Protection, NOTHING,
        "The newest backup was taken of running programs, although its policy promises stopped ones.",
        "See why the guest agent did not stop them: `systemctl status guestd` in the guest.";
    BackupFailed = "BACKUP_FAILED", Warning, [Tier], 0 s, Endangered, Protection, NOTHING,
        "The last attempt to take a backup failed.",
        "See the cause with `holdfast guest show GUEST`, and the task's log in Proxmox.";
    BackupLate = "BACKUP_LATE", Critical, [Tier], 0 s, Endangered, Protection, NOTHING,
        "The newest backup is older than its policy promises.",
        "See what keeps the next one from beginning: `agentd status` on the host.";
    BackupMissed = "BACKUP_MISSED", Warning, [Tier], 0 s, Endangered, Protection, NOTHING,
        "A backup could not begin in its window.",
        "See what kept it from beginning: `agentd status` on the host.";
    BackupMissing = "BACKUP_MISSING", Critical, [Tier], 300 s, Endangered, Protection, NOTHING,
        "A backup on record is not listed by its storage any more.",
        "Look for it on its storage: `agentd storage list` on the host.";
    BackupUnsealed = "BACKUP_UNSEALED", Critical, [Tier], 0 s, Endangered, Protection, NOTHING,
        "An off-site backup is not encrypted with the promised key.",
        "Compare the key of the storage entry with the document: `agentd doctor` on the host.";
    BreakGlassOpen = "BREAK_GLASS_OPEN", Warning, [Host Guest], 0 s, Safe, Trust, NOTHING,
        "A signed order opened a way into the host for a person, for a bounded time.",
        "See who opened it and until when with `holdfast host show HOST`; root closes it early with `/usr/lib/holdfast/holdfast-break-glass close`.";
    BulkChangeHeld = "BULK_CHANGE_HELD", Warning, [Host Guest], 60 s, Safe, Trust, NOTHING,
        "More guests would stop, restart or be resized at once than the change brake allows.",
        "See what is held with `holdfast host show HOST`; release it with `holdfast sign HOST`, or correct the document.";
    CertificateExpiring = "CERTIFICATE_EXPIRING", Warning, [Certificate], 3600 s, Safe, Trust, NOTHING,
        "A certificate ends soon and was not renewed in time.",
        "See why it was not renewed: `agentd doctor` on the host, or the log of the hub.";
    ClockBehind = "CLOCK_BEHIND", Warning, [Host], 300 s, Safe, Clock, NOTHING,
        "The host's clock is behind a time that was already seen, so signed jobs and deadlines wait.",
        "Compare its clock with `timedatectl`, and correct its time service.";
    ClockUnkept = "CLOCK_UNKEPT", Warning, [Host], 900 s, Safe, Clock, NOTHING,
        "No time service keeps the host's clock right, so no backup is removed.",
        "Switch a time service on: `timedatectl set-ntp true`.";
    ControllerSilent = "CONTROLLER_SILENT", Warning, [Guest], 60 s, Safe, Guest, NOTHING,
        "The guest runs and its guest agent is not heard.",
        "Look at it in the guest: `systemctl status guestd`.";
    ControllerUnapproved = "CONTROLLER_UNAPPROVED", Warning, [Guest], 0 s, Safe, Trust, NOTHING,
        "No operator approved the release of the guest agent that runs in the guest.",
        "Approve the release with `holdfast sign HOST`, or put the approved one back.";
    CpuHigh = "CPU_HIGH", Warning, [Host Guest], 3600 s, Safe, Use, NOTHING,
        "Nearly all CPU time that it may use is in use.",
        "See its use over time (`holdfast guest show GUEST --span 7d`); give it more cores, or find what computes.";
    DiskFailing = "DISK_FAILING", Critical, [Disk], 0 s, Endangered, Hardware, NOTHING,
        "A disk reports that it is failing, or counts new errors.",
        "Replace the disk; see its report with `smartctl -a DEVICE`.";
    DiskFull = "DISK_FULL", Critical, [Host], 60 s, Endangered, Records, NOTHING,
        "The disk under the agent's records is full, so nothing new is begun.",
        "Free room: `df -h /var/lib/holdfast` shows the disk.";
    DiskWorn = "DISK_WORN", Warning, [Disk], 0 s, Endangered, Hardware, NOTHING,
        "A disk has used up most of the writes that it is made for.",
        "Plan its replacement; see its report with `smartctl -a DEVICE`.";
    EscrowCopy = "ESCROW_COPY", Warning, [RecoveryCode], 3600 s, Endangered, Escrow, NOTHING,
        "A copy of a wrapped backup key is lost, or differs from the others.",
        "See which copy it is: `agentd escrow status` on the host.";
    EscrowDrill = "ESCROW_DRILL", Warning, [RecoveryCode], 0 s, Endangered, Escrow, NOTHING,
        "No one has typed this recovery code for too long.",
        "Type it from its sheet: `agentd escrow drill` on the host.";
    EscrowMissing = "ESCROW_MISSING", Critical, [StorageTarget], 3600 s, Endangered, Escrow, NOTHING,
        "No recovery code opens the key of these off-site backups, so they are lost with the host.",
        "Create one: `agentd escrow create` on the host.";
    GoldenDiffers = "GOLDEN_DIFFERS", Warning, [Hub], 0 s, Safe, Tampering, NOTHING,
        "Builders made different golden images of the same inputs, so one of them is not what it seems.",
        "See which hosts differ with `holdfast golden compare`; approve neither image before it is known why.";
    GoldenOld = "GOLDEN_OLD", Warning, [Host], 0 s, Safe, Update, NOTHING,
        "The newest golden image of the host is older than it should be.",
        "Build another: `agentd golden build` on the host.";
    GuestBroken = "GUEST_BROKEN", Critical, [Guest], 0 s, Safe, Guest, NOTHING,
        "The guest was started several times and did not stay up.",
        "See its log with `pct start VMID`, then run `agentd parked retry GUEST` on the host.";
    GuestCrashed = "GUEST_CRASHED", Warning, [Guest], 60 s, Safe, Guest, NOTHING,
        "The guest stopped although it should run.",
        "See what was done about it: `holdfast guest show GUEST`.";
    GuestFrozen = "GUEST_FROZEN", Critical, [Guest], 0 s, Endangered, Tampering, NOTHING,
        "Two used the identity of one guest, so its access to the agent is closed.",
        "Find the copy with `agentd audit show`, end it, then run `agentd thaw GUEST --reason WHY`.";
    GuestMissing = "GUEST_MISSING", Critical, [Guest], 60 s, Endangered, Guest, NOTHING,
        "A guest of ours is not seen on its host any more.",
        "See what is known of it with `holdfast guest show GUEST`; it is never recreated without a decision.";
    GuestParked = "GUEST_PARKED", Warning, [Guest], 0 s, Safe, Guest, NOTHING,
        "An operation on the guest stopped and waits for an operator.",
        "See it with `agentd parked list` on the host, then run `agentd parked retry GUEST`.";
    HostFrozen = "HOST_FROZEN", Critical, [Host], 0 s, Endangered, Tampering, NOTHING,
        "Two used the identity of one host, so the hub answers neither.",
        "Find the copy: `holdfast host show HOST`, then `holdfast events`.";
    HostLate = "HOST_LATE", Info, [Host], 0 s, Safe, HostSilence, NOTHING,
        "The host has missed a poll.",
        "Nothing yet: it is offline soon, or back.";
    HostNeverSeen = "HOST_NEVER_SEEN", Warning, [Host], 0 s, Safe, HostSilence, NOTHING,
        "The host was enrolled and never reported.",
        "See whether its agent runs: `systemctl status agentd` on the host.";
    HostOffline = "HOST_OFFLINE", Critical, [Host], 0 s, Endangered, HostSilence, Inhibits::Host,
        "The host is silent beyond its time, and nothing newer is known of its guests.",
        "Reach the host by another way; see `systemctl status agentd` there.";
    HostOvercommitted = "HOST_OVERCOMMITTED", Warning, [Host], 900 s, Safe, Use, NOTHING,
        "Guests were given more of the host than the document's ratio allows, so they cannot all use it at once.",
        "See what was given with `holdfast host show HOST`; make guests smaller, or raise `overcommit` in the document.";
    HostRebootRequired = "HOST_REBOOT_REQUIRED", Warning, [Host], 604800 s, Safe, Update, NOTHING,
        "The host runs an older kernel than the newest that is installed, or an upgraded package asks for a restart.",
        "Announce the work with `holdfast host maintenance HOST --for 1h`, restart the host, and see whether all came back: `holdfast host show HOST`.";
    HostSecurityUpdates = "HOST_SECURITY_UPDATES", Warning, [Host], 259200 s, Safe, Update, NOTHING,
        "Security upgrades of Debian wait on the host.",
        "See which: `holdfast host show HOST`. Install them on the host: `apt-get update && apt-get dist-upgrade`.";
    HostUpdatesPending = "HOST_UPDATES_PENDING", Info, [Host], 86400 s, Safe, Update, NOTHING,
        "Upgrades of Debian, Proxmox or others wait on the host.",
        "See which: `holdfast host show HOST`. Install them on the host: `apt-get update && apt-get dist-upgrade`.";
    HubBackupOld = "HUB_BACKUP_OLD", Critical, [Hub], 0 s, Endangered, Hub, NOTHING,
        "The newest backup of the hub is too old, or there is none.",
        "See why none was taken, in the place that `[backup]` in `hub.toml` names.";
    HubDatabaseFailing = "HUB_DATABASE_FAILING", Critical, [Hub], 60 s, Endangered, Hub, NOTHING,
        "The hub's database is damaged.",
        "Stop the hub, keep a copy of its folder, and put the newest backup in its place: `systemctl stop hubd`.";
    HubDiskFull = "HUB_DISK_FULL", Critical, [Hub], 60 s, Endangered, Hub, NOTHING,
        "The disk under the hub's database is nearly full.",
        "Free room on the hub: `df -h` shows the disk.";
    HubSettingsRefused = "HUB_SETTINGS_REFUSED", Warning, [Hub], 0 s, Safe, Hub, NOTHING,
        "The hub was asked to read its settings again and refused them, so the earlier ones are in force.",
        "Correct what the message names, then run `systemctl reload hubd`.";
    JobStalled = "JOB_STALLED", Warning, [Job], 0 s, Safe, Trust, NOTHING,
        "A signed job waits or is under way for far longer than usual.",
        "See what it waits for: `holdfast job show HOST JOB`.";
    MaintenanceIncomplete = "MAINTENANCE_INCOMPLETE", Warning, [Host], 600 s, Endangered, Guest, NOTHING,
        "After a maintenance of the host, guests that ran or storage targets that were in order before it did not come back.",
        "See which: `holdfast host show HOST`, and why: `agentd status` on the host.";
    MemoryErrors = "MEMORY_ERRORS", Warning, [Host], 0 s, Endangered, Hardware, NOTHING,
        "The memory of the machine counts errors that it corrects too often, or could not correct.",
        "Find the module with `journalctl -k --grep EDAC` on the host, and replace it.";
    MemoryHigh = "MEMORY_HIGH", Warning, [Host Guest], 900 s, Safe, Use, NOTHING,
        "Nearly all memory that it may use is in use.",
        "See its use over time (`holdfast guest show GUEST --span 7d`); give it more memory, or find what needs it.";
    NeedsSignature = "NEEDS_SIGNATURE", Warning, [Host Guest], 300 s, Safe, Trust, NOTHING,
        "A change waits for the signatures of operators.",
        "See what it would do and sign it: `holdfast sign HOST`.";
    NoisyNeighbour = "NOISY_NEIGHBOUR", Warning, [Guest], 600 s, Safe, Use, NOTHING,
        "The guest uses most of what is short on its host, so the other guests there have less.",
        "The message names the limit that bounds it, such as `limits.cpu` or `network.rate`; see its use with `holdfast guest show GUEST --span 2h`.";
    PackageListsOld = "PACKAGE_LISTS_OLD", Warning, [Host], 86400 s, Safe, Update, NOTHING,
        "The package lists of the host are old, or apt cannot use them, so it is unknown which upgrades wait.",
        "Fetch them on the host, and see what fails: `apt-get update`.";
    PolicyUnmet = "POLICY_UNMET", Warning, [Policy], 900 s, Endangered, Protection, NOTHING,
        "A backup policy names a tier for which no storage target is attached.",
        "See the targets with `holdfast storage list HOST`; attach one, or correct the document.";
    ProxmoxAway = "PROXMOX_AWAY", Critical, [Host], 120 s, Endangered, Proxmox, PROXMOX_AWAY,
        "Proxmox does not answer the agent, so guests are unknown and no backup begins.",
        "See what fails: `agentd doctor` on the host.";
    ProxmoxTokenOld = "PROXMOX_TOKEN_OLD", Warning, [Host], 3600 s, Safe, Trust, NOTHING,
        "A token of the agent for Proxmox was not renewed in time; it still works.",
        "See why on the host: `journalctl -u holdfast-proxmox-tokens`; renew it with `agentd renew-tokens`.";
    ReceiverFailing = "RECEIVER_FAILING", Warning, [Receiver], 600 s, Safe, Delivery, NOTHING,
        "A channel does not take alerts.",
        "See its last error with `holdfast alert receivers`, and try it with `holdfast alert test RECEIVER`.";
    RecordsBroken = "RECORDS_BROKEN", Critical, [Host], 0 s, Endangered, Records, NOTHING,
        "The agent's records take no writes until it is restarted.",
        "Look at the disk with `dmesg`, then run `systemctl restart agentd`.";
    RecordsDamaged = "RECORDS_DAMAGED", Critical, [Host], 0 s, Endangered, Records, NOTHING,
        "The agent's records were damaged, so it only observes.",
        "Stop the agent and put a good copy of `agent.db` back.";
    RestoreTestFailed = "RESTORE_TEST_FAILED", Critical, [Tier], 0 s, Endangered, Protection, NOTHING,
        "The last restore test failed, and none passed since.",
        "See what failed: `agentd restore-tests` on the host.";
    RestoreTestOverdue = "RESTORE_TEST_OVERDUE", Warning, [Tier], 3600 s, Endangered, Protection, NOTHING,
        "No backup was tried by restoring it for longer than the policy promises.",
        "See what keeps the test from running: `agentd restore-tests` on the host.";
    RolloutHeld = "ROLLOUT_HELD", Warning, [Hub], 0 s, Safe, Update, NOTHING,
        "A rollout is held, because more hosts failed than may: no host is offered its release.",
        "See which hosts failed and why with `holdfast rollout show ROLLOUT`; then `holdfast rollout resume ROLLOUT` accepts the failures, and `holdfast rollout abort ROLLOUT` ends it.";
    RootDiskFull = "ROOT_DISK_FULL", Warning, [Host Guest], 300 s, Safe, Use, NOTHING,
        "Its root disk is nearly full.",
        "Free room (`df -h /` there), or make the disk larger in the document.";
    StorageFilling = "STORAGE_FILLING", Warning, [Storage], 300 s, Endangered, Storage, NOTHING,
        "A storage will be full soon.",
        "Free room or make it larger; see its level with `holdfast host show HOST`.";
    StorageGone = "STORAGE_GONE", Critical, [StorageTarget], 60 s, Endangered, Storage, NOTHING,
        "A storage target was there and is gone, and its backups are out of reach.",
        "Plug it in or reach its server; see `agentd storage list` on the host.";
    StorageWrong = "STORAGE_WRONG", Critical, [StorageTarget], 0 s, Endangered, Storage, NOTHING,
        "Another disk, share or datastore is in the place of a storage target.",
        "Nothing is written to it; see `agentd storage list` on the host.";
    TemperatureHigh = "TEMPERATURE_HIGH", Warning, [Host Disk], 600 s, Safe, Hardware, NOTHING,
        "A part of the machine is near the temperature that its maker calls critical.",
        "Look at fans, dust and the room; see the values with `holdfast host show HOST`.";
    TokenExpiring = "TOKEN_EXPIRING", Warning, [Token], 0 s, Safe, Trust, NOTHING,
        "A token ends soon.",
        "Make another: `holdfast operator add NAME --role ROLE`, or `agentd setup` for one of Proxmox.";
    TunnelDegraded = "TUNNEL_DEGRADED", Warning, [Tunnel], 600 s, Safe, Tunnel, NOTHING,
        "A tunnel of the host works in part: it has fewer connections than it should, or one of its proofs fails.",
        "See which: `holdfast host show HOST`. On the host: `journalctl -u UNIT`.";
    TunnelDown = "TUNNEL_DOWN", Critical, [Tunnel], 120 s, Safe, Tunnel, NOTHING,
        "A tunnel of the host carries nothing, so what is reached through it is away.",
        "See why: `holdfast host show HOST`. On the host: `systemctl status UNIT`, `journalctl -u UNIT`.";
    TunnelTokenMissing = "TUNNEL_TOKEN_MISSING", Warning, [Tunnel], 0 s, Safe, Tunnel, NOTHING,
        "A tunnel waits for its token, which arrives by a signed job, as on a host that replaced a lost one.",
        "Seal and sign it: `holdfast sign HOST --tunnel-token TUNNEL`; on a host that replaced a lost one with `--carry-over`.";
    UpdateHeld = "UPDATE_HELD", Warning, [Host Guest], 3600 s, Safe, Update, NOTHING,
        "A wanted version is not installed, and waits.",
        "The message names the cause; see `holdfast host show HOST`.";
    UpdateRolledBack = "UPDATE_ROLLED_BACK", Warning, [Host Guest], 0 s, Safe, Update, NOTHING,
        "A new version did not come up, and the earlier one runs again.",
        "See why with `agentd release list` on the host; approve a corrected version.";
}

impl ConditionCode {
    /// The whole table, for documents and for the runbook.
    pub fn table() -> impl Iterator<Item = ConditionSpec> {
        Self::ALL.iter().map(|code| code.spec())
    }
}

impl fmt::Display for ConditionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Not a code of the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no code of a condition")]
pub struct UnknownCondition(String);

impl FromStr for ConditionCode {
    type Err = UnknownCondition;
    fn from_str(text: &str) -> Result<Self, UnknownCondition> {
        let named = Self::ALL.iter().find(|code| code.as_str() == text).copied();
        named.ok_or_else(|| UnknownCondition(text.chars().take(64).collect()))
    }
}
