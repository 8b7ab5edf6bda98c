//! Time-outs and attempts of each step.
//!
//! What copies or frees whole guests has no time that fits all: a terabyte over a thin line is a day. Its task is followed
//! for as long as Proxmox says that it runs: while it does, the guest is its, and what would be cleared away is the work
//! itself. That it takes long is told (`plan::report`), and a person may end it in Proxmox.

use super::Step;
use crate::model::limits;
use crate::model::policy::QuiesceBound;

/// How long and how often a step may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Seconds for one try; where its task is followed to its end, seconds that are ordinary.
    pub seconds: u64,
    pub tries: u32,
}

/// How far a task is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// For the seconds of its bound; then the world is asked.
    WithinItsBound,
    /// To its end.
    ToItsEnd,
}

impl Step {
    /// How far its task is followed.
    #[must_use]
    pub const fn follows(self) -> Follows {
        match self {
            Self::Restore
            | Self::FirstBackup
            | Self::TakeBackup
            | Self::RollBack
            | Self::DestroyGuest
            | Self::DestroyScratch => Follows::ToItsEnd,
            Self::ChooseVmid
            | Self::CheckArchive
            | Self::Mark
            | Self::GrowRootfs
            | Self::AttachVolume(_)
            | Self::Protect
            | Self::SetBootstrapToken
            | Self::FirstStart
            | Self::AwaitHello
            | Self::AwaitController
            | Self::DropClaim
            | Self::ReadBack
            | Self::Start
            | Self::ConfirmRunning
            | Self::ShutDown
            | Self::ConfirmStopped
            | Self::Configure
            | Self::GrowDisk
            | Self::LiftProtection
            | Self::AddVolume
            | Self::ProtectAgain
            | Self::GrantWindow
            | Self::AwaitQuiesced
            | Self::AwaitReleased
            | Self::CheckRoom
            | Self::TakeSnapshot
            | Self::RemoveSnapshot
            | Self::VerifySnapshot
            | Self::ArmRollBack
            | Self::Renew
            | Self::StartAgain
            | Self::ConfirmAgain
            | Self::RemoveBackup
            | Self::VerifyTarget
            | Self::ConfirmGone
            | Self::TagCopy
            | Self::VerifyBoth
            | Self::LiftOther
            | Self::ReassignVolumeTo
            | Self::ProtectOther
            | Self::ConfirmReassigned
            | Self::VerifyUnmanaged
            | Self::TagGuest
            | Self::ConfirmTagged
            | Self::ConfirmIsolated
            | Self::ObserveBoot
            | Self::AwaitReport
            | Self::StopScratch
            | Self::ConfirmScratchGone
            | Self::VerifySwap
            | Self::StopOriginal
            | Self::DemoteOriginal
            | Self::PromoteCopy
            | Self::StartPlaced
            | Self::ConfirmPlaced => Follows::WithinItsBound,
        }
    }

    /// How long and how often it may try.
    #[must_use]
    pub const fn bound(self) -> Bound {
        let (seconds, tries) = match self {
            // A second restore after a failed one only hides why the first failed.
            Self::Restore | Self::FirstBackup | Self::TakeBackup => (limits::LONG_S, 1),
            Self::AwaitHello => (limits::HELLO_WAIT_S, 1),
            // The turn has a bound of its own, by the pace of the guest's hellos; this is the longest.
            Self::AwaitController => (limits::UPDATE_TURN_MAX_S, 1),
            // The window has a bound of its own, which is no longer than this.
            Self::AwaitQuiesced | Self::AwaitReleased => (QuiesceBound::MAX_S as u64, 1),
            Self::CheckArchive => (limits::JUDGE_MAX_S, 1),
            Self::FirstStart | Self::Start | Self::StartAgain | Self::StartPlaced => {
                (limits::SHORT_TASK_MAX_S, 2)
            }
            Self::TakeSnapshot | Self::RemoveSnapshot | Self::RemoveBackup => (limits::SHORT_TASK_MAX_S, 2),
            // On a storage that copies, a rollback writes the whole disk. The tag proves that a lost one never began.
            Self::RollBack => (limits::LONG_S, 2),
            Self::ShutDown | Self::StopOriginal => (limits::SHORT_TASK_MAX_S, 2),
            Self::GrowRootfs | Self::GrowDisk => (limits::SHORT_TASK_MAX_S, 2),
            // A second one frees what the first, cut short, did not.
            Self::DestroyGuest => (limits::DESTROY_MAX_S, 2),
            Self::ConfirmGone | Self::ConfirmIsolated | Self::ConfirmScratchGone => (60, limits::STEP_TRIES),
            Self::ObserveBoot => (limits::TEST_BOOT_S, 1),
            Self::AwaitReport => (limits::TEST_REPORT_S, 1),
            Self::StopScratch => (limits::SHORT_TASK_MAX_S, limits::STEP_TRIES),
            Self::DestroyScratch => (limits::DESTROY_MAX_S, 2),
            Self::VerifyTarget
            | Self::VerifyBoth
            | Self::LiftOther
            | Self::ProtectOther
            | Self::ConfirmReassigned
            | Self::VerifyUnmanaged
            | Self::TagGuest
            | Self::ConfirmTagged
            | Self::VerifySwap
            | Self::DemoteOriginal
            | Self::PromoteCopy
            | Self::ConfirmPlaced => (60, limits::STEP_TRIES),
            // A rename; a second one may find the storage in a better mood.
            Self::ReassignVolumeTo => (limits::SHORT_TASK_MAX_S, 2),
            Self::ConfirmRunning | Self::ConfirmStopped | Self::ConfirmAgain => (30, 1),
            Self::ChooseVmid
            | Self::Mark
            | Self::AttachVolume(_)
            | Self::Protect
            | Self::SetBootstrapToken
            | Self::DropClaim
            | Self::ReadBack
            | Self::Configure
            | Self::CheckRoom
            | Self::GrantWindow
            | Self::VerifySnapshot
            | Self::ArmRollBack
            | Self::Renew
            | Self::LiftProtection
            | Self::ProtectAgain
            | Self::TagCopy => (60, limits::STEP_TRIES),
            // What kept it once keeps it again: the plan comes back to it later.
            Self::AddVolume => (60, 2),
        };
        Bound { seconds, tries }
    }
}
