//! The undo of each step.

use super::Step;

/// How a step is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// There is nothing to take back, and why.
    Nothing(&'static str),
    /// Forgets the claim.
    ForgetClaim,
    /// Stops the guest that this operation started.
    StopGuest,
    /// Takes off the protection that this operation set.
    Unprotect,
    /// Destroys the guest that this operation made, and nothing else.
    DestroyGuest,
    /// Puts back the protection that this operation took off.
    ProtectAgain,
    /// Withdraws a mount that was asked for and could not be made.
    WithdrawRequest,
    /// Removes the snapshot that this operation made, and no other.
    RemoveSnapshot,
    /// Takes off the tag that this operation set.
    Disarm,
    /// Puts back the protection of the other guest.
    ProtectOther,
    /// Hands the volume back.
    HandBack,
    /// Puts back the tags and the description that were found.
    GiveBack,
    /// Starts the guest again that was asked to go down for its copy.
    StartFormer,
    /// Puts back what the guest was known by.
    TakeUpAgain,
    /// Puts back what the copy was known by.
    GiveUpPlace,
    /// Stops the copy that was started in its guest's place.
    StopPlaced,
}

impl Step {
    /// How it is taken back.
    #[must_use]
    pub const fn undo(self) -> Undo {
        match self {
            Self::ChooseVmid => {
                Undo::Nothing("the number stays reserved for this guest, which may try again")
            }
            Self::CheckArchive
            | Self::AwaitHello
            | Self::AwaitController
            | Self::AwaitQuiesced
            | Self::AwaitReleased
            | Self::ReadBack
            | Self::ConfirmRunning
            | Self::ConfirmStopped
            | Self::CheckRoom
            | Self::VerifySnapshot
            | Self::ConfirmAgain
            | Self::VerifyTarget
            | Self::ConfirmGone
            | Self::VerifyBoth
            | Self::ConfirmReassigned
            | Self::ConfirmTagged
            | Self::ConfirmIsolated
            | Self::ObserveBoot
            | Self::AwaitReport
            | Self::ConfirmScratchGone
            | Self::VerifySwap
            | Self::ConfirmPlaced => Undo::Nothing("it only looks"),
            Self::StopOriginal => Undo::StartFormer,
            Self::DemoteOriginal => Undo::TakeUpAgain,
            Self::PromoteCopy => Undo::GiveUpPlace,
            Self::StartPlaced => Undo::StopPlaced,
            Self::StopScratch | Self::DestroyScratch => Undo::Nothing("nobody needs it any more"),
            Self::VerifyUnmanaged => {
                Undo::Nothing("the number stays reserved for this guest, which may try again")
            }
            Self::TagGuest => Undo::GiveBack,
            Self::LiftOther => Undo::ProtectOther,
            Self::ReassignVolumeTo => Undo::HandBack,
            Self::TakeSnapshot => Undo::RemoveSnapshot,
            Self::RemoveSnapshot => Undo::Nothing("its time was over, and what it held is gone"),
            Self::ArmRollBack => Undo::Disarm,
            Self::RollBack => Undo::Nothing("what was written since the snapshot is gone"),
            Self::Renew => Undo::Nothing("an old ticket must not come back"),
            Self::StartAgain => Undo::Nothing("a guest that did not start stands as it stood"),
            Self::TakeBackup => Undo::Nothing("a backup more harms nobody"),
            Self::GrantWindow => Undo::Nothing("the end of its operation closes it"),
            Self::RemoveBackup => Undo::Nothing("it was not kept any longer, and what it held is gone"),
            Self::Restore => Undo::DestroyGuest,
            Self::Mark | Self::GrowRootfs | Self::AttachVolume(_) | Self::TagCopy => {
                Undo::Nothing("it goes with the guest")
            }
            Self::Protect => Undo::Unprotect,
            Self::SetBootstrapToken => Undo::ForgetClaim,
            Self::FirstStart => Undo::StopGuest,
            Self::Start => Undo::Nothing("a guest that did not start stands as it stood"),
            Self::DropClaim => Undo::Nothing("a used ticket is worth nothing"),
            Self::FirstBackup => Undo::Nothing("a backup more harms nobody"),
            Self::ShutDown => Undo::Nothing("the plan starts it again if it should run"),
            Self::Configure => Undo::Nothing("one call: it happened whole or not at all"),
            Self::GrowDisk => Undo::Nothing("a disk cannot shrink, and a larger one serves"),
            Self::LiftProtection => Undo::ProtectAgain,
            Self::AddVolume => Undo::WithdrawRequest,
            Self::ProtectAgain | Self::ProtectOther => Undo::Nothing("protection belongs on"),
            // It is taken back only when nothing was destroyed; half a destroy is left for a person.
            Self::DestroyGuest => {
                Undo::Nothing("what was destroyed is in no hand of ours; a backup can be restored")
            }
        }
    }
}
