//! How one tells of each step whether it has happened: by the world, or by our own records; never by memory.

use super::Step;

/// How one tells whether a step has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The reservation stands in our own records.
    Reservation,
    /// Looking again is the step itself.
    LookAgain,
    /// The guest is there, and one of our own tasks made it.
    OwnRestore,
    /// Tags and description are as wanted.
    MarkSet,
    /// The disk is at least as large as wanted.
    DiskSize,
    /// Something is mounted there.
    VolumeMounted,
    /// Protection is on.
    ProtectionOn,
    /// Protection is off.
    ProtectionOff,
    /// A fresh claim stands in our records and a ticket in the environment. When in doubt it is minted anew: an earlier
    /// one is worthless then.
    ClaimSet,
    /// The guest runs.
    GuestRuns,
    /// The guest stands still.
    GuestStands,
    /// A hello later than the operation stands in our records.
    HelloHeard,
    /// A report of this very operation's guest stands in our records.
    ReportHeard,
    /// The window stands in our records.
    WindowGranted,
    /// Our records say that everything stands still, or the bound passed.
    QuiescedSaid,
    /// Our records say that everything runs again, or the bound passed.
    ReleasedSaid,
    /// No ticket stands in the environment.
    TicketGone,
    /// An archive later than the intent is listed.
    ArchiveListed,
    /// The archive is not listed any more, and a newer one is.
    ArchiveGone,
    /// Sizes are as wanted.
    SizesSet,
    /// A whole snapshot with the line of this operation is listed.
    SnapshotListed,
    /// No snapshot with the line of its maker is listed.
    SnapshotGone,
    /// The tag is on.
    Armed,
    /// The tag is off, and the snapshot is the guest's parent.
    RolledBack,
    /// No ticket, whole mark, protection on.
    Fresh,
    /// Nobody has the number any more.
    GuestGone,
    /// The copy has its own mark, no ticket, and protection.
    Aside,
    /// The guest has the mark of what stands beside it, its own name, and no plugged network.
    LaidAside,
    /// The copy has its guest's mark, name and networks.
    InPlace,
    /// The one guest has lost the mount, and the other has it.
    MountHandedOver,
}

impl Step {
    /// How one tells whether it happened.
    #[must_use]
    pub const fn probe(self) -> Probe {
        match self {
            Self::ChooseVmid => Probe::Reservation,
            Self::JudgeArchive | Self::ReadBack | Self::ProveTarget | Self::ConfirmGone => Probe::LookAgain,
            Self::DestroyGuest => Probe::GuestGone,
            Self::ProveBoth | Self::ConfirmHandedOver => Probe::LookAgain,
            Self::ProveStranger | Self::ConfirmTakenOver => Probe::LookAgain,
            Self::LiftOther => Probe::ProtectionOff,
            Self::ProtectOther => Probe::ProtectionOn,
            Self::HandVolume => Probe::MountHandedOver,
            Self::Restore => Probe::OwnRestore,
            Self::Mark | Self::TakeOver => Probe::MarkSet,
            Self::SetAside => Probe::Aside,
            Self::GrowRootfs | Self::GrowDisk => Probe::DiskSize,
            Self::AttachVolume(_) | Self::AddVolume => Probe::VolumeMounted,
            Self::Protect | Self::ProtectAgain => Probe::ProtectionOn,
            Self::LiftProtection => Probe::ProtectionOff,
            Self::HandOverClaim => Probe::ClaimSet,
            Self::FirstStart | Self::Start | Self::ConfirmRunning => Probe::GuestRuns,
            Self::AwaitHello | Self::AwaitController => Probe::HelloHeard,
            Self::DropClaim => Probe::TicketGone,
            Self::FirstBackup => Probe::ArchiveListed,
            Self::ShutDown | Self::ConfirmStopped => Probe::GuestStands,
            Self::Configure => Probe::SizesSet,
            Self::CheckRoom | Self::ProveSnapshot => Probe::LookAgain,
            Self::GrantWindow => Probe::WindowGranted,
            Self::AwaitQuiesced => Probe::QuiescedSaid,
            Self::AwaitReleased => Probe::ReleasedSaid,
            Self::TakeSnapshot => Probe::SnapshotListed,
            Self::RemoveSnapshot => Probe::SnapshotGone,
            Self::ArmRollBack => Probe::Armed,
            Self::RollBack => Probe::RolledBack,
            Self::Renew => Probe::Fresh,
            Self::StartAgain | Self::ConfirmAgain => Probe::GuestRuns,
            Self::TakeBackup => Probe::ArchiveListed,
            Self::ConfirmIsolated | Self::ConfirmReaped => Probe::LookAgain,
            Self::ObserveBoot => Probe::GuestRuns,
            Self::AwaitReport => Probe::ReportHeard,
            Self::StopScratch => Probe::GuestStands,
            Self::ReapScratch => Probe::GuestGone,
            Self::RemoveBackup => Probe::ArchiveGone,
            Self::ProveSwap | Self::ConfirmPlaced => Probe::LookAgain,
            Self::StandDown => Probe::GuestStands,
            Self::LayAside => Probe::LaidAside,
            Self::TakePlace => Probe::InPlace,
            Self::StartPlaced => Probe::GuestRuns,
        }
    }
}
