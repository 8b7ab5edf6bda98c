//! One step: what it is called, how it is undone, how one tells whether it happened, and its bound.
//!
//! *Do* is the executor's `match` over this enum, one call to a port each. The probe is asked of the world, never of
//! memory, and it is asked before every try: after a crash and on the first run alike, so there is one road.

use holdfast_protocol::id::Vmid;

use crate::model::limits;
use crate::model::policy::QuiesceBound;

/// One step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Picks a free VMID and reserves it for this guest.
    ChooseVmid,
    /// Holds the golden archive to its digest and its configuration to the law of archives.
    JudgeArchive,
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
    HandOverClaim,
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
    /// Changes sizes.
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
    ProveSnapshot,
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
    ProveTarget,
    /// Destroys the guest that an operator signed for.
    DestroyGuest,
    /// Sees that the guest is gone, and every one of its volumes.
    ConfirmGone,
    /// Gives a copy its own mark, takes the ticket out, and switches protection on.
    SetAside,
    /// Compares both guests with what an operator signed for, and sees that they stand still.
    ProveBoth,
    /// Takes protection off the guest that takes a volume.
    LiftOther,
    /// Hands the volume over.
    HandVolume,
    /// Puts protection back on the guest that took it.
    ProtectOther,
    /// Reads both guests again.
    ConfirmHandedOver,
    /// Compares a guest that is not ours yet with what an operator signed for, and looks for what no signature allows.
    ProveStranger,
    /// Sets our mark on it.
    TakeOver,
    /// Reads it again.
    ConfirmTakenOver,
    /// Sees that a throwaway guest has no way out, before it is started.
    ConfirmIsolated,
    /// Sees how a throwaway guest comes up.
    ObserveBoot,
    /// Waits for what a throwaway guest's own controller reports.
    AwaitReport,
    /// Stops the throwaway guest.
    StopScratch,
    /// Destroys the throwaway guest that this operation made.
    ReapScratch,
    /// Sees that it is gone, and every one of its volumes.
    ConfirmReaped,
}

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
}

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
    /// The one guest has lost the mount, and the other has it.
    MountHandedOver,
}

/// How long and how often a step may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Seconds for one try.
    pub seconds: u64,
    /// Tries.
    pub tries: u32,
}

/// How much of the host a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A few calls.
    Light,
    /// Reads or writes a whole archive.
    Heavy,
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
        Self::JudgeArchive,
        Self::Restore,
        Self::Mark,
        Self::GrowRootfs,
        Self::AttachVolume(0),
        Self::Protect,
        Self::HandOverClaim,
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
        Self::ProveSnapshot,
        Self::ArmRollBack,
        Self::RollBack,
        Self::Renew,
        Self::StartAgain,
        Self::ConfirmAgain,
        Self::TakeBackup,
        Self::RemoveBackup,
        Self::ProveTarget,
        Self::DestroyGuest,
        Self::ConfirmGone,
        Self::SetAside,
        Self::ProveBoth,
        Self::LiftOther,
        Self::HandVolume,
        Self::ProtectOther,
        Self::ConfirmHandedOver,
        Self::ProveStranger,
        Self::TakeOver,
        Self::ConfirmTakenOver,
        Self::ConfirmIsolated,
        Self::ObserveBoot,
        Self::AwaitReport,
        Self::StopScratch,
        Self::ReapScratch,
        Self::ConfirmReaped,
    ];

    /// As the journal, the view and the audit name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChooseVmid => "choose_vmid",
            Self::JudgeArchive => "judge_archive",
            Self::Restore => "restore",
            Self::Mark => "mark",
            Self::GrowRootfs => "grow_rootfs",
            Self::AttachVolume(_) => "attach_volume",
            Self::Protect => "protect",
            Self::HandOverClaim => "hand_over_claim",
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
            Self::ProveSnapshot => "prove_snapshot",
            Self::ArmRollBack => "arm_roll_back",
            Self::RollBack => "roll_back",
            Self::Renew => "renew",
            Self::StartAgain => "start_again",
            Self::ConfirmAgain => "confirm_again",
            Self::TakeBackup => "take_backup",
            Self::RemoveBackup => "remove_backup",
            Self::ProveTarget => "prove_target",
            Self::DestroyGuest => "destroy_guest",
            Self::ConfirmGone => "confirm_gone",
            Self::SetAside => "set_aside",
            Self::ProveBoth => "prove_both",
            Self::LiftOther => "lift_other",
            Self::HandVolume => "hand_volume",
            Self::ProtectOther => "protect_other",
            Self::ConfirmHandedOver => "confirm_handed_over",
            Self::ProveStranger => "prove_stranger",
            Self::TakeOver => "take_over",
            Self::ConfirmTakenOver => "confirm_taken_over",
            Self::ConfirmIsolated => "confirm_isolated",
            Self::ObserveBoot => "observe_boot",
            Self::AwaitReport => "await_report",
            Self::StopScratch => "stop_scratch",
            Self::ReapScratch => "reap_scratch",
            Self::ConfirmReaped => "confirm_reaped",
        }
    }

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
            | Self::ConfirmReaped => Undo::Nothing("it only looks"),
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
        }
    }

    /// How long and how often it may try.
    #[must_use]
    pub const fn bound(self) -> Bound {
        let (seconds, tries) = match self {
            // A second restore after a failed one only hides why the first failed.
            Self::Restore => (limits::RESTORE_MAX_S, 1),
            Self::FirstBackup | Self::TakeBackup => (limits::BACKUP_MAX_S, 1),
            Self::AwaitHello => (limits::HELLO_WAIT_S, 1),
            // The turn has a bound of its own, by the pace of the guest's hellos; this is the longest.
            Self::AwaitController => (limits::UPDATE_TURN_MAX_S, 1),
            // The window has a bound of its own, which is no longer than this.
            Self::AwaitQuiesced | Self::AwaitReleased => (QuiesceBound::MAX_S as u64, 1),
            Self::JudgeArchive => (limits::RESTORE_MAX_S, 1),
            Self::FirstStart | Self::Start | Self::StartAgain => (limits::SHORT_TASK_MAX_S, 2),
            Self::TakeSnapshot | Self::RemoveSnapshot | Self::RemoveBackup => (limits::SHORT_TASK_MAX_S, 2),
            // On a storage that copies, a rollback writes the whole disk. The tag proves that a lost one never began.
            Self::RollBack => (limits::RESTORE_MAX_S, 2),
            Self::ShutDown => (limits::SHORT_TASK_MAX_S, 2),
            Self::GrowRootfs | Self::GrowDisk => (limits::SHORT_TASK_MAX_S, 2),
            // A second one frees what the first, cut short, did not.
            Self::DestroyGuest => (limits::DESTROY_MAX_S, 2),
            Self::ConfirmGone | Self::ConfirmIsolated | Self::ConfirmReaped => (60, limits::STEP_TRIES),
            Self::ObserveBoot => (limits::TEST_BOOT_S, 1),
            Self::AwaitReport => (limits::TEST_REPORT_S, 1),
            Self::StopScratch => (limits::SHORT_TASK_MAX_S, limits::STEP_TRIES),
            Self::ReapScratch => (limits::DESTROY_MAX_S, 2),
            Self::ProveTarget
            | Self::ProveBoth
            | Self::LiftOther
            | Self::ProtectOther
            | Self::ConfirmHandedOver
            | Self::ProveStranger
            | Self::TakeOver
            | Self::ConfirmTakenOver => (60, limits::STEP_TRIES),
            // A rename; a second one may find the storage in a better mood.
            Self::HandVolume => (limits::SHORT_TASK_MAX_S, 2),
            Self::ConfirmRunning | Self::ConfirmStopped | Self::ConfirmAgain => (30, 1),
            Self::ChooseVmid
            | Self::Mark
            | Self::AttachVolume(_)
            | Self::Protect
            | Self::HandOverClaim
            | Self::DropClaim
            | Self::ReadBack
            | Self::Configure
            | Self::CheckRoom
            | Self::GrantWindow
            | Self::ProveSnapshot
            | Self::ArmRollBack
            | Self::Renew
            | Self::LiftProtection
            | Self::ProtectAgain
            | Self::SetAside => (60, limits::STEP_TRIES),
            // What kept it once keeps it again: the plan comes back to it later.
            Self::AddVolume => (60, 2),
        };
        Bound { seconds, tries }
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
            Self::StopScratch | Self::ReapScratch | Self::ConfirmReaped => OnFailure::Park,
            _ => OnFailure::Undo,
        }
    }

    /// What a person should run or look at when it was left for one.
    #[must_use]
    pub fn remedy(self, vmid: Option<Vmid>) -> String {
        match (self, vmid) {
            (Self::ProtectAgain | Self::LiftProtection, Some(vmid)) => {
                format!("pct set {vmid} --protection 1")
            }
            (Self::StopScratch | Self::ReapScratch | Self::ConfirmReaped, Some(vmid)) => {
                format!("pct stop {vmid}; pct destroy {vmid}")
            }
            _ => "look at the guest on the node, and correct what the message names".to_owned(),
        }
    }

    /// How much of the host it takes.
    #[must_use]
    pub const fn weight(self) -> Weight {
        match self {
            Self::Restore | Self::FirstBackup | Self::TakeBackup | Self::JudgeArchive => Weight::Heavy,
            // The place is taken before anything is stopped, and kept for the backup.
            Self::GrantWindow | Self::AwaitQuiesced => Weight::Heavy,
            _ => Weight::Light,
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
