//! How each step is taken back. What made nothing says why there is nothing to take back.

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
    WithdrawWish,
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
            Self::JudgeArchive
            | Self::AwaitHello
            | Self::AwaitController
            | Self::AwaitQuiesced
            | Self::AwaitReleased
            | Self::ReadBack
            | Self::ConfirmRunning
            | Self::ConfirmStopped
            | Self::CheckRoom
            | Self::ProveSnapshot
            | Self::ConfirmAgain
            | Self::ProveTarget
            | Self::ConfirmGone
            | Self::ProveBoth
            | Self::ConfirmHandedOver
            | Self::ConfirmTakenOver
            | Self::ConfirmIsolated
            | Self::ObserveBoot
            | Self::AwaitReport
            | Self::ConfirmReaped
            | Self::ProveSwap
            | Self::ConfirmPlaced => Undo::Nothing("it only looks"),
            Self::StandDown => Undo::StartFormer,
            Self::LayAside => Undo::TakeUpAgain,
            Self::TakePlace => Undo::GiveUpPlace,
            Self::StartPlaced => Undo::StopPlaced,
            Self::StopScratch | Self::ReapScratch => Undo::Nothing("nobody needs it any more"),
            Self::ProveStranger => {
                Undo::Nothing("the number stays reserved for this guest, which may try again")
            }
            Self::TakeOver => Undo::GiveBack,
            Self::LiftOther => Undo::ProtectOther,
            Self::HandVolume => Undo::HandBack,
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
            Self::Mark | Self::GrowRootfs | Self::AttachVolume(_) | Self::SetAside => {
                Undo::Nothing("it goes with the guest")
            }
            Self::Protect => Undo::Unprotect,
            Self::HandOverClaim => Undo::ForgetClaim,
            Self::FirstStart => Undo::StopGuest,
            Self::Start => Undo::Nothing("a guest that did not start stands as it stood"),
            Self::DropClaim => Undo::Nothing("a used ticket is worth nothing"),
            Self::FirstBackup => Undo::Nothing("a backup more harms nobody"),
            Self::ShutDown => Undo::Nothing("the plan starts it again if it should run"),
            Self::Configure => Undo::Nothing("one call: it happened whole or not at all"),
            Self::GrowDisk => Undo::Nothing("a disk cannot shrink, and a larger one serves"),
            Self::LiftProtection => Undo::ProtectAgain,
            Self::AddVolume => Undo::WithdrawWish,
            Self::ProtectAgain | Self::ProtectOther => Undo::Nothing("protection belongs on"),
            // It is taken back only when nothing was destroyed; half a destroy is left for a person.
            Self::DestroyGuest => {
                Undo::Nothing("what was destroyed is in no hand of ours; a backup can be restored")
            }
        }
    }
}
