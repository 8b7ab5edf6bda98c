//! The party that derives each condition code, and its source.

use holdfast_protocol::condition::ConditionCode;

/// Who derives a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deriver {
    /// This agent, from a source.
    Agent(Source),
    /// The hub.
    Hub,
}

/// What an agent derives a code from. While a source says nothing, its conditions stay as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The judgement of a guest, which an open operation or a lock suspends.
    Judgement,
    /// Whether a guest runs, which an open operation may change on purpose.
    Power,
    /// The observation of the host.
    Observation,
    /// The fill level of one storage, which a storage that does not answer has not.
    FillLevel,
    /// The poll of storage targets.
    Storage,
    /// The observation and the poll together.
    Both,
    /// The counts of errors of a disk, which are known to rest only after a day.
    DiskErrors,
    /// The last reading of a disk.
    Disk,
    /// The counts of errors of the memory, which are known to rest only after a day.
    MemoryErrors,
    /// The last reading of sensors, or of a disk.
    Temperature,
    /// The last reading of packages.
    Packages,
    /// The last simulated upgrade, which apt may have refused.
    PendingPackages,
    /// The last reading of a tunnel.
    Tunnel,
    /// Samples of use.
    Usage,
    /// A window of samples of use.
    Neighbours,
    /// What guests were given of the host, which is known while all storages answer.
    Assigned,
    /// The agent's own records and settings, which are always at hand.
    Own,
}

/// Who derives this code.
#[must_use]
pub const fn deriver(code: ConditionCode) -> Deriver {
    use ConditionCode as Code;
    match code {
        Code::ControllerUnapproved | Code::GuestBroken | Code::GuestMissing => {
            Deriver::Agent(Source::Judgement)
        }
        Code::GuestCrashed => Deriver::Agent(Source::Power),
        Code::BackupCrashConsistent
        | Code::BackupFailed
        | Code::BackupLate
        | Code::BackupMissed
        | Code::BackupMissing
        | Code::BackupUnsealed
        | Code::BulkChangeHeld
        | Code::ClockBehind
        | Code::ClockUnkept
        | Code::ControllerSilent
        | Code::GoldenOld
        | Code::GuestFrozen
        | Code::GuestParked
        | Code::PolicyUnmet
        | Code::RestoreTestFailed
        | Code::RestoreTestOverdue
        | Code::UpdateHeld
        | Code::UpdateRolledBack => Deriver::Agent(Source::Observation),
        Code::StorageFilling => Deriver::Agent(Source::FillLevel),
        Code::StorageGone | Code::StorageWrong => Deriver::Agent(Source::Storage),
        Code::MaintenanceIncomplete | Code::NeedsSignature => Deriver::Agent(Source::Both),
        Code::TunnelDegraded | Code::TunnelDown | Code::TunnelTokenMissing => Deriver::Agent(Source::Tunnel),
        Code::CpuHigh | Code::MemoryHigh | Code::RootDiskFull => Deriver::Agent(Source::Usage),
        Code::HostOvercommitted => Deriver::Agent(Source::Assigned),
        Code::NoisyNeighbour => Deriver::Agent(Source::Neighbours),
        Code::DiskFailing => Deriver::Agent(Source::DiskErrors),
        Code::DiskWorn => Deriver::Agent(Source::Disk),
        Code::MemoryErrors => Deriver::Agent(Source::MemoryErrors),
        Code::TemperatureHigh => Deriver::Agent(Source::Temperature),
        Code::HostRebootRequired | Code::PackageListsOld => Deriver::Agent(Source::Packages),
        Code::HostSecurityUpdates | Code::HostUpdatesPending => Deriver::Agent(Source::PendingPackages),
        Code::AgentUpdateFailed
        | Code::BreakGlassOpen
        | Code::CertificateExpiring
        | Code::DiskFull
        | Code::EscrowCopy
        | Code::EscrowDrill
        | Code::EscrowMissing
        | Code::JobStalled
        | Code::ProxmoxAway
        | Code::ProxmoxTokenOld
        | Code::RecordsBroken
        | Code::RecordsDamaged => Deriver::Agent(Source::Own),
        Code::AuditChainBroken
        | Code::GoldenDiffers
        | Code::HostFrozen
        | Code::HostLate
        | Code::HostNeverSeen
        | Code::HostOffline
        | Code::HubBackupOld
        | Code::HubDatabaseFailing
        | Code::HubDiskFull
        | Code::HubSettingsRefused
        | Code::ReceiverFailing
        | Code::RolloutHeld
        // Tokens of operators. Proxmox shows no token the end of one of its own user.
        | Code::TokenExpiring => Deriver::Hub,
    }
}
