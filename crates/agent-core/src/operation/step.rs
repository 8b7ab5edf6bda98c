//! One step: name, bound, check and undo.
//!
//! *Do* is the executor's `match` over this enum, one call to a port each. The probe is asked of the world, never of
//! memory, and it is asked before every try: after a crash and on the first run alike, so there is one road.
//!
//! | module | what |
//! | --- | --- |
//! | [`undo`] | how it is taken back |
//! | [`probe`] | how one tells whether it has happened |
//! | [`bound`] | how long, and how often |
//! | [`list`] | the steps of one operation, by name |

pub mod bound;
pub mod list;
pub mod probe;
pub mod undo;

use holdfast_protocol::id::Vmid;

pub use bound::{Bound, Follows};
pub use list::StepList;
pub use probe::Probe;
pub use undo::Undo;

/// One step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Picks a free VMID and reserves it for this guest.
    ChooseVmid,
    /// Holds the golden archive to its digest and its configuration to the law of archives.
    CheckArchive,
    /// Restores the archive to the fresh VMID.
    Restore,
    /// Sets the identity mark.
    Mark,
    /// Grows the root disk to its size.
    GrowRootfs,
    /// Makes and mounts a volume of the document, by its index there.
    AttachVolume(u8),
    /// Switches protection on.
    Protect,
    /// Mints the claim, keeps its hash, and puts the ticket into the guest's environment.
    SetBootstrapToken,
    /// Starts the guest for the first time.
    FirstStart,
    /// Waits for the controller's hello.
    AwaitHello,
    /// Waits until a guest has exchanged its controller, or shows that it did not.
    AwaitController,
    /// Takes the ticket out of the environment.
    DropClaim,
    /// Takes the first backup.
    FirstBackup,
    /// Reads the whole guest again and holds it to the document.
    ReadBack,
    /// Starts a guest that was made.
    Start,
    /// Sees that the guest stays up.
    ConfirmRunning,
    /// Asks the guest to go down, and pulls the plug when it does not.
    ShutDown,
    /// Sees that the guest stands still.
    ConfirmStopped,
    Configure,
    /// Grows one disk.
    GrowDisk,
    /// Takes protection off, for a volume that is attached or a destroy that was signed.
    LiftProtection,
    /// Makes a volume and mounts it in a guest that was made.
    AddVolume,
    /// Puts back the protection that was taken off.
    ProtectAgain,
    /// Sees that the guest runs and nobody holds it, and grants the quiesce window.
    GrantWindow,
    /// Waits until the controller says that everything stands still, not longer than the window's bound.
    AwaitQuiesced,
    /// Waits until the controller says that everything runs again, not longer than the window's bound.
    AwaitReleased,
    /// Sees that a snapshot is possible, allowed and safe.
    CheckRoom,
    /// Takes a snapshot.
    TakeSnapshot,
    /// Removes a snapshot of ours.
    RemoveSnapshot,
    /// Sees that the snapshot is ours, whole, and holds the guest as it is made up now; and whether the guest runs.
    VerifySnapshot,
    /// Sets the tag that the rollback will take away.
    ArmRollBack,
    /// Rolls the guest back.
    RollBack,
    /// Takes out an old ticket, and sets mark and protection again.
    Renew,
    /// Starts a guest that ran before.
    StartAgain,
    /// Sees that a guest that ran before stays up.
    ConfirmAgain,
    /// Takes a backup.
    TakeBackup,
    /// Removes a backup that is not kept any longer.
    RemoveBackup,
    /// Compares the guest with what an operator signed for.
    VerifyTarget,
    /// Destroys the guest that an operator signed for.
    DestroyGuest,
    /// Sees that the guest is gone, and every one of its volumes.
    ConfirmGone,
    /// Gives a copy its own mark, takes the ticket out, and switches protection on.
    TagCopy,
    /// Compares both guests with what an operator signed for, and sees that they stand still.
    VerifyBoth,
    /// Takes protection off the guest that takes a volume.
    LiftOther,
    /// Hands the volume over.
    ReassignVolumeTo,
    /// Puts protection back on the guest that took it.
    ProtectOther,
    /// Reads both guests again.
    ConfirmReassigned,
    /// Compares a guest that is not ours yet with what an operator signed for, and looks for what no signature allows.
    VerifyUnmanaged,
    /// Sets our mark on it.
    TagGuest,
    /// Reads it again.
    ConfirmTagged,
    /// Sees that a scratch guest has no way out, before it is started.
    ConfirmIsolated,
    /// Sees how a scratch guest comes up.
    ObserveBoot,
    /// Waits for what a scratch guest's own controller reports.
    AwaitReport,
    /// Stops the scratch guest.
    StopScratch,
    /// Destroys the scratch guest that this operation made.
    DestroyScratch,
    /// Sees that it is gone, and every one of its volumes.
    ConfirmScratchGone,
    /// Compares a guest and its copy with what an operator signed for, and sees that the one can take the place of the other.
    VerifySwap,
    /// Asks the guest to go down that a copy takes the place of, and pulls the plug when it does not.
    StopOriginal,
    /// Gives the guest the mark of what stands beside it, and unplugs it.
    DemoteOriginal,
    /// Gives the copy the mark of its guest, its name and its networks.
    PromoteCopy,
    /// Starts the copy in the place of its guest.
    StartPlaced,
    /// Reads both again.
    ConfirmPlaced,
}

/// How much of the host a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A few calls.
    Light,
    /// Reads or writes a whole archive.
    Heavy,
    /// The same by Proxmox's backup job, of which a node runs one at a time.
    Backup,
}

/// What follows when a step has no tries left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The operation takes back what it made.
    Undo,
    /// The operation goes on, and says what is missing.
    Note,
    /// The guest serves already: it is left as it is, for a person.
    Park,
}

impl Step {
    /// Every step, with one volume for all.
    pub const ALL: &'static [Self] = &[
        Self::ChooseVmid,
        Self::CheckArchive,
        Self::Restore,
        Self::Mark,
        Self::GrowRootfs,
        Self::AttachVolume(0),
        Self::Protect,
        Self::SetBootstrapToken,
        Self::FirstStart,
        Self::AwaitHello,
        Self::AwaitController,
        Self::DropClaim,
        Self::FirstBackup,
        Self::ReadBack,
        Self::Start,
        Self::ConfirmRunning,
        Self::ShutDown,
        Self::ConfirmStopped,
        Self::Configure,
        Self::GrowDisk,
        Self::LiftProtection,
        Self::AddVolume,
        Self::ProtectAgain,
        Self::GrantWindow,
        Self::AwaitQuiesced,
        Self::AwaitReleased,
        Self::CheckRoom,
        Self::TakeSnapshot,
        Self::RemoveSnapshot,
        Self::VerifySnapshot,
        Self::ArmRollBack,
        Self::RollBack,
        Self::Renew,
        Self::StartAgain,
        Self::ConfirmAgain,
        Self::TakeBackup,
        Self::RemoveBackup,
        Self::VerifyTarget,
        Self::DestroyGuest,
        Self::ConfirmGone,
        Self::TagCopy,
        Self::VerifyBoth,
        Self::LiftOther,
        Self::ReassignVolumeTo,
        Self::ProtectOther,
        Self::ConfirmReassigned,
        Self::VerifyUnmanaged,
        Self::TagGuest,
        Self::ConfirmTagged,
        Self::ConfirmIsolated,
        Self::ObserveBoot,
        Self::AwaitReport,
        Self::StopScratch,
        Self::DestroyScratch,
        Self::ConfirmScratchGone,
        Self::VerifySwap,
        Self::StopOriginal,
        Self::DemoteOriginal,
        Self::PromoteCopy,
        Self::StartPlaced,
        Self::ConfirmPlaced,
    ];

    /// As the journal, the view and the audit name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChooseVmid => "choose_vmid",
            Self::CheckArchive => "judge_archive",
            Self::Restore => "restore",
            Self::Mark => "mark",
            Self::GrowRootfs => "grow_rootfs",
            Self::AttachVolume(_) => "attach_volume",
            Self::Protect => "protect",
            Self::SetBootstrapToken => "set_bootstrap_token",
            Self::FirstStart => "first_start",
            Self::Start => "start",
            Self::AwaitHello => "await_hello",
            Self::AwaitController => "await_controller",
            Self::DropClaim => "drop_claim",
            Self::FirstBackup => "first_backup",
            Self::ReadBack => "read_back",
            Self::ConfirmRunning => "confirm_running",
            Self::ShutDown => "shut_down",
            Self::ConfirmStopped => "confirm_stopped",
            Self::Configure => "configure",
            Self::GrowDisk => "grow_disk",
            Self::LiftProtection => "lift_protection",
            Self::AddVolume => "add_volume",
            Self::ProtectAgain => "protect_again",
            Self::GrantWindow => "grant_window",
            Self::AwaitQuiesced => "await_quiesced",
            Self::AwaitReleased => "await_released",
            Self::CheckRoom => "check_room",
            Self::TakeSnapshot => "take_snapshot",
            Self::RemoveSnapshot => "remove_snapshot",
            Self::VerifySnapshot => "verify_snapshot",
            Self::ArmRollBack => "arm_roll_back",
            Self::RollBack => "roll_back",
            Self::Renew => "renew",
            Self::StartAgain => "start_again",
            Self::ConfirmAgain => "confirm_again",
            Self::TakeBackup => "take_backup",
            Self::RemoveBackup => "remove_backup",
            Self::VerifyTarget => "verify_target",
            Self::DestroyGuest => "destroy_guest",
            Self::ConfirmGone => "confirm_gone",
            Self::TagCopy => "tag_copy",
            Self::VerifyBoth => "verify_both",
            Self::LiftOther => "lift_other",
            Self::ReassignVolumeTo => "reassign_volume_to",
            Self::ProtectOther => "protect_other",
            Self::ConfirmReassigned => "confirm_reassigned",
            Self::VerifyUnmanaged => "verify_unmanaged",
            Self::TagGuest => "tag_guest",
            Self::ConfirmTagged => "confirm_tagged",
            Self::ConfirmIsolated => "confirm_isolated",
            Self::ObserveBoot => "observe_boot",
            Self::AwaitReport => "await_report",
            Self::StopScratch => "stop_scratch",
            Self::DestroyScratch => "destroy_scratch",
            Self::ConfirmScratchGone => "confirm_scratch_gone",
            Self::VerifySwap => "verify_swap",
            Self::StopOriginal => "stop_original",
            Self::DemoteOriginal => "demote_original",
            Self::PromoteCopy => "promote_copy",
            Self::StartPlaced => "start_placed",
            Self::ConfirmPlaced => "confirm_placed",
        }
    }

    /// What follows when no try is left.
    #[must_use]
    pub const fn on_failure(self) -> OnFailure {
        match self {
            Self::FirstBackup | Self::AwaitReleased => OnFailure::Note,
            // The rollback has happened and cannot be taken back.
            Self::Renew | Self::StartAgain | Self::ConfirmAgain | Self::ProtectOther => OnFailure::Park,
            Self::DropClaim | Self::ReadBack | Self::ProtectAgain | Self::ConfirmGone => OnFailure::Park,
            // What the test showed stands; what is left of it is a person's.
            Self::StopScratch | Self::DestroyScratch | Self::ConfirmScratchGone => OnFailure::Park,
            Self::ChooseVmid
            | Self::CheckArchive
            | Self::Restore
            | Self::Mark
            | Self::GrowRootfs
            | Self::AttachVolume(_)
            | Self::Protect
            | Self::SetBootstrapToken
            | Self::FirstStart
            | Self::AwaitHello
            | Self::AwaitController
            | Self::Start
            | Self::ConfirmRunning
            | Self::ShutDown
            | Self::ConfirmStopped
            | Self::Configure
            | Self::GrowDisk
            | Self::LiftProtection
            | Self::AddVolume
            | Self::GrantWindow
            | Self::AwaitQuiesced
            | Self::CheckRoom
            | Self::TakeSnapshot
            | Self::RemoveSnapshot
            | Self::VerifySnapshot
            | Self::ArmRollBack
            | Self::RollBack
            | Self::TakeBackup
            | Self::RemoveBackup
            | Self::VerifyTarget
            | Self::DestroyGuest
            | Self::TagCopy
            | Self::VerifyBoth
            | Self::LiftOther
            | Self::ReassignVolumeTo
            | Self::ConfirmReassigned
            | Self::VerifyUnmanaged
            | Self::TagGuest
            | Self::ConfirmTagged
            | Self::ConfirmIsolated
            | Self::ObserveBoot
            | Self::AwaitReport
            | Self::VerifySwap
            | Self::StopOriginal
            | Self::DemoteOriginal
            | Self::PromoteCopy
            | Self::StartPlaced
            | Self::ConfirmPlaced => OnFailure::Undo,
        }
    }

    /// What a person should run or look at when it was left for one.
    #[must_use]
    pub fn remedy(self, vmid: Option<Vmid>) -> String {
        match (self, vmid) {
            (Self::ProtectAgain | Self::LiftProtection, Some(vmid)) => {
                format!("pct set {vmid} --protection 1")
            }
            (Self::StopScratch | Self::DestroyScratch | Self::ConfirmScratchGone, Some(vmid)) => {
                format!("pct stop {vmid}; pct destroy {vmid}")
            }
            _ => "look at the guest on the node, and correct what the message names".to_owned(),
        }
    }

    /// How much of the host it takes.
    #[must_use]
    pub const fn weight(self) -> Weight {
        match self {
            Self::Restore | Self::CheckArchive => Weight::Heavy,
            Self::FirstBackup | Self::TakeBackup => Weight::Backup,
            // The place is taken before anything is stopped, and kept for the backup.
            Self::GrantWindow | Self::AwaitQuiesced => Weight::Backup,
            Self::ChooseVmid
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
            | Self::AwaitReleased
            | Self::CheckRoom
            | Self::TakeSnapshot
            | Self::RemoveSnapshot
            | Self::VerifySnapshot
            | Self::ArmRollBack
            | Self::RollBack
            | Self::Renew
            | Self::StartAgain
            | Self::ConfirmAgain
            | Self::RemoveBackup
            | Self::VerifyTarget
            | Self::DestroyGuest
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
            | Self::DestroyScratch
            | Self::ConfirmScratchGone
            | Self::VerifySwap
            | Self::StopOriginal
            | Self::DemoteOriginal
            | Self::PromoteCopy
            | Self::StartPlaced
            | Self::ConfirmPlaced => Weight::Light,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_each_and_every_step_is_bounded() {
        let names: std::collections::BTreeSet<_> = Step::ALL.iter().map(|step| step.name()).collect();
        assert_eq!(names.len(), Step::ALL.len());
        for step in Step::ALL {
            let bound = step.bound();
            assert!(bound.tries >= 1 && bound.seconds >= 10, "{}", step.name());
        }
    }
}
