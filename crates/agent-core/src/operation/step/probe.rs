//! The check of each step: whether it has happened.

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
    BootstrapTokenGone,
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
    CopyTagged,
    /// The guest has the mark of what stands beside it, its own name, and no plugged network.
    Demoted,
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
            Self::CheckArchive | Self::ReadBack | Self::VerifyTarget | Self::ConfirmGone => Probe::LookAgain,
            Self::DestroyGuest => Probe::GuestGone,
            Self::VerifyBoth | Self::ConfirmReassigned => Probe::LookAgain,
            Self::VerifyUnmanaged | Self::ConfirmTagged => Probe::LookAgain,
            Self::LiftOther => Probe::ProtectionOff,
            Self::ProtectOther => Probe::ProtectionOn,
            Self::ReassignVolumeTo => Probe::MountHandedOver,
            Self::Restore => Probe::OwnRestore,
            Self::Mark | Self::TagGuest => Probe::MarkSet,
            Self::TagCopy => Probe::CopyTagged,
            Self::GrowRootfs | Self::GrowDisk => Probe::DiskSize,
            Self::AttachVolume(_) | Self::AddVolume => Probe::VolumeMounted,
            Self::Protect | Self::ProtectAgain => Probe::ProtectionOn,
            Self::LiftProtection => Probe::ProtectionOff,
            Self::SetBootstrapToken => Probe::ClaimSet,
            Self::FirstStart | Self::Start | Self::ConfirmRunning => Probe::GuestRuns,
            Self::AwaitHello | Self::AwaitController => Probe::HelloHeard,
            Self::DropClaim => Probe::BootstrapTokenGone,
            Self::FirstBackup => Probe::ArchiveListed,
            Self::ShutDown | Self::ConfirmStopped => Probe::GuestStands,
            Self::Configure => Probe::SizesSet,
            Self::CheckRoom | Self::VerifySnapshot => Probe::LookAgain,
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
            Self::ConfirmIsolated | Self::ConfirmScratchGone => Probe::LookAgain,
            Self::ObserveBoot => Probe::GuestRuns,
            Self::AwaitReport => Probe::ReportHeard,
            Self::StopScratch => Probe::GuestStands,
            Self::DestroyScratch => Probe::GuestGone,
            Self::RemoveBackup => Probe::ArchiveGone,
            Self::VerifySwap | Self::ConfirmPlaced => Probe::LookAgain,
            Self::StopOriginal => Probe::GuestStands,
            Self::DemoteOriginal => Probe::Demoted,
            Self::PromoteCopy => Probe::InPlace,
            Self::StartPlaced => Probe::GuestRuns,
        }
    }
}
