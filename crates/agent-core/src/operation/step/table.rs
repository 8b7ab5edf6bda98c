//! All steps, one row each.

use super::{Bound, Exhausted, StepFacts, Undo, Weight};
use crate::model::limits;
use crate::model::policy::QuiesceBound;

/// A few calls.
const MINUTE: Bound = Bound::within(60, limits::STEP_TRIES);
/// One task of Proxmox that copies nothing.
const SHORT_TASK: Bound = Bound::within(limits::SHORT_TASK_MAX_S, 2);
/// The guest is checked until it is so.
const GLANCE: Bound = Bound::within(30, 1);

const LOOKS: &str = "it only looks";
const GOES_WITH_GUEST: &str = "it goes with the guest";
const STAYS_RESERVED: &str = "the number stays reserved for this guest, which may try again";
const STAYS_STOPPED: &str = "a guest that did not start stands as it stood";
const HARMLESS: &str = "a backup more harms nobody";
const BELONGS_ON: &str = "protection belongs on";
const NOT_NEEDED: &str = "nobody needs it any more";

/// The steps and what is known of each. A step that is about one of several things has its index.
macro_rules! steps {
    ($(
        $(#[$doc:meta])*
        $step:ident $(($index:ty))? = $name:literal, $weight:ident, $bound:expr, $check:literal, $undo:expr, $exhausted:ident;
    )*) => {
        /// One step of an operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Step {
            $($(#[$doc])* $step $(($index))?,)*
        }

        impl Step {
            /// Every step, with one volume for all.
            pub const ALL: &'static [Self] = &[$(Self::$step $((<$index>::MIN))?),*];

            /// What is known of it.
            #[must_use]
            pub const fn facts(self) -> StepFacts {
                match self {
                    $(Self::$step { .. } => StepFacts {
                        name: $name,
                        weight: Weight::$weight,
                        bound: $bound,
                        check: $check,
                        undo: $undo,
                        exhausted: Exhausted::$exhausted,
                    },)*
                }
            }
        }
    };
}

// The name in the journal, how much of the host it takes, how long and how often it may try, what is checked on the
// host before each try, how it is taken back, and what follows when no try is left.
steps! {
    /// Picks a free VMID and reserves it for this guest.
    ChooseVmid = "choose_vmid", Light, MINUTE, "the VMID is reserved in our records",
        Undo::Nothing(STAYS_RESERVED), Undo;
    /// Holds the golden archive to its digest and its configuration to the rules of archives.
    CheckArchive = "judge_archive", Heavy, Bound::within(limits::JUDGE_MAX_S, 1), "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Restores the archive to the fresh VMID.
    // A second restore after a failed one only hides why the first failed.
    Restore = "restore", Heavy, Bound::to_its_end(limits::LONG_S, 1), "the guest is there, and our task made it",
        Undo::DestroyGuest, Undo;
    /// Sets the identity mark.
    Mark = "mark", Light, MINUTE, "the mark is set",
        Undo::Nothing(GOES_WITH_GUEST), Undo;
    /// Grows the root disk to its size.
    GrowRootfs = "grow_rootfs", Light, SHORT_TASK, "the disk has its size",
        Undo::Nothing(GOES_WITH_GUEST), Undo;
    /// Makes and mounts a volume of the document, by its index there.
    AttachVolume(u8) = "attach_volume", Light, MINUTE, "something is mounted there",
        Undo::Nothing(GOES_WITH_GUEST), Undo;
    /// Switches protection on.
    Protect = "protect", Light, MINUTE, "protection is on",
        Undo::Unprotect, Undo;
    /// Mints the claim, keeps its hash, and puts the bootstrap token into the guest's environment.
    SetBootstrapToken = "set_bootstrap_token", Light, MINUTE, "the claim is kept, and the guest has its bootstrap token",
        Undo::ForgetClaim, Undo;
    /// Starts the guest for the first time.
    FirstStart = "first_start", Light, SHORT_TASK, "the guest runs",
        Undo::StopGuest, Undo;
    /// Waits for the controller's hello.
    AwaitHello = "await_hello", Light, Bound::within(limits::HELLO_WAIT_S, 1), "a hello was heard",
        Undo::Nothing(LOOKS), Undo;
    /// Waits until a guest has exchanged its controller, or shows that it did not.
    // The slot has a bound of its own, by the pace of the guest's hellos; this is the longest.
    AwaitController = "await_controller", Light, Bound::within(limits::UPDATE_TURN_MAX_S, 1), "a hello was heard",
        Undo::Nothing(LOOKS), Undo;
    /// Takes the bootstrap token out of the environment.
    DropClaim = "drop_claim", Light, MINUTE, "the bootstrap token is gone",
        Undo::Nothing("a used bootstrap token is worth nothing"), Park;
    /// Takes the first backup.
    FirstBackup = "first_backup", Backup, Bound::to_its_end(limits::LONG_S, 1), "the archive is listed",
        Undo::Nothing(HARMLESS), Continue;
    /// Reads the whole guest again and holds it to the document.
    ReadBack = "read_back", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Park;
    /// Starts a guest that was made.
    Start = "start", Light, SHORT_TASK, "the guest runs",
        Undo::Nothing(STAYS_STOPPED), Undo;
    /// Sees that the guest stays up.
    ConfirmRunning = "confirm_running", Light, GLANCE, "the guest runs",
        Undo::Nothing(LOOKS), Undo;
    /// Asks the guest to shut down, and stops it hard when it does not.
    ShutDown = "shut_down", Light, SHORT_TASK, "the guest stands still",
        Undo::Nothing("the plan starts it again if it should run"), Undo;
    /// Checks that the guest is stopped.
    ConfirmStopped = "confirm_stopped", Light, GLANCE, "the guest stands still",
        Undo::Nothing(LOOKS), Undo;
    /// Sets cores, memory and swap, or what else is configured.
    Configure = "configure", Light, MINUTE, "the configuration is as wanted",
        Undo::Nothing("one call: it happened whole or not at all"), Undo;
    /// Grows one disk.
    GrowDisk = "grow_disk", Light, SHORT_TASK, "the disk has its size",
        Undo::Nothing("a disk cannot shrink, and a larger one serves"), Undo;
    /// Takes protection off, for a volume that is attached or a destroy that was signed.
    LiftProtection = "lift_protection", Light, MINUTE, "protection is off",
        Undo::ProtectAgain, Undo;
    /// Makes a volume and mounts it in a guest that was made.
    // What kept it once keeps it again: the plan comes back to it later.
    AddVolume = "add_volume", Light, Bound::within(60, 2), "something is mounted there",
        Undo::WithdrawRequest, Undo;
    /// Puts back the protection that was taken off.
    ProtectAgain = "protect_again", Light, MINUTE, "protection is on",
        Undo::Nothing(BELONGS_ON), Park;
    /// Sees that the guest runs and is not locked, and grants the quiesce window.
    // The slot is taken before anything is stopped, and kept for the backup.
    GrantWindow = "grant_window", Backup, MINUTE, "the window is in our records",
        Undo::Nothing("the end of its operation closes it"), Undo;
    /// Waits until the controller says that everything stands still, not longer than the window's bound.
    // The window has a bound of its own, which is no longer than this.
    AwaitQuiesced = "await_quiesced", Backup, Bound::within(QuiesceBound::MAX_S as u64, 1), "programs are reported as stopped",
        Undo::Nothing(LOOKS), Undo;
    /// Waits until the controller says that everything runs again, not longer than the window's bound.
    AwaitReleased = "await_released", Light, Bound::within(QuiesceBound::MAX_S as u64, 1), "programs are reported as running",
        Undo::Nothing(LOOKS), Continue;
    /// Sees that a snapshot is possible, allowed and safe.
    CheckRoom = "check_room", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Takes a snapshot.
    TakeSnapshot = "take_snapshot", Light, SHORT_TASK, "the snapshot is listed",
        Undo::RemoveSnapshot, Undo;
    /// Removes a snapshot of ours.
    RemoveSnapshot = "remove_snapshot", Light, SHORT_TASK, "the snapshot is listed no more",
        Undo::Nothing("its time was over, and what it held is gone"), Undo;
    /// Sees that the snapshot is ours, whole, and holds the guest as it is made up now; and whether the guest runs.
    VerifySnapshot = "verify_snapshot", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Sets the tag that the rollback will take away.
    ArmRollBack = "arm_roll_back", Light, MINUTE, "the tag of the rollback is on",
        Undo::Disarm, Undo;
    /// Rolls the guest back.
    // On a storage that copies, a rollback writes the whole disk. The tag proves that a lost one never began.
    RollBack = "roll_back", Light, Bound::to_its_end(limits::LONG_S, 2), "the tag of the rollback is off",
        Undo::Nothing("what was written since the snapshot is gone"), Undo;
    /// Takes out an old bootstrap token, and sets mark and protection again.
    // The rollback has happened and cannot be taken back.
    Renew = "renew", Light, MINUTE, "no bootstrap token is left, mark and protection are set",
        Undo::Nothing("an old bootstrap token must not come back"), Park;
    /// Starts a guest that ran before.
    StartAgain = "start_again", Light, SHORT_TASK, "the guest runs",
        Undo::Nothing(STAYS_STOPPED), Park;
    /// Sees that a guest that ran before stays up.
    ConfirmAgain = "confirm_again", Light, GLANCE, "the guest runs",
        Undo::Nothing(LOOKS), Park;
    /// Takes a backup.
    TakeBackup = "take_backup", Backup, Bound::to_its_end(limits::LONG_S, 1), "the archive is listed",
        Undo::Nothing(HARMLESS), Undo;
    /// Removes a backup that is not kept any longer.
    RemoveBackup = "remove_backup", Light, SHORT_TASK, "the archive is listed no more",
        Undo::Nothing("it was not kept any longer, and what it held is gone"), Undo;
    /// Compares the guest with what an operator signed for.
    VerifyTarget = "verify_target", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Destroys the guest that an operator signed for.
    // Taken back only when nothing was destroyed; half a destroy is left for a person.
    DestroyGuest = "destroy_guest", Light, Bound::to_its_end(limits::DESTROY_MAX_S, 2), "nobody has the VMID",
        Undo::Nothing("what was destroyed is in no hand of ours; a backup can be restored"), Undo;
    /// Sees that the guest is gone, and every one of its volumes.
    ConfirmGone = "confirm_gone", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Park;
    /// Gives a copy its own mark, takes the bootstrap token out, and switches protection on.
    TagCopy = "tag_copy", Light, MINUTE, "the copy has its mark and protection",
        Undo::Nothing(GOES_WITH_GUEST), Undo;
    /// Compares both guests with what an operator signed for, and checks that they are stopped.
    VerifyBoth = "verify_both", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Takes protection off the guest that takes a volume.
    LiftOther = "lift_other", Light, MINUTE, "protection is off",
        Undo::ProtectOther, Undo;
    /// Hands the volume over.
    // A rename; a second one may find the storage in a better mood.
    ReassignVolumeTo = "reassign_volume_to", Light, SHORT_TASK, "the other guest has the volume",
        Undo::ReassignBack, Undo;
    /// Puts protection back on the guest that took it.
    ProtectOther = "protect_other", Light, MINUTE, "protection is on",
        Undo::Nothing(BELONGS_ON), Park;
    /// Reads both guests again.
    ConfirmReassigned = "confirm_reassigned", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Compares a guest that is not ours yet with what an operator signed for, and looks for what no signature allows.
    VerifyUnmanaged = "verify_unmanaged", Light, MINUTE, "it is looked at again",
        Undo::Nothing(STAYS_RESERVED), Undo;
    /// Sets our mark on it.
    TagGuest = "tag_guest", Light, MINUTE, "the mark is set",
        Undo::RestoreTags, Undo;
    /// Reads it again.
    ConfirmTagged = "confirm_tagged", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Sees that a scratch guest has no way out, before it is started.
    ConfirmIsolated = "confirm_isolated", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Sees how a scratch guest comes up.
    ObserveBoot = "observe_boot", Light, Bound::within(limits::TEST_BOOT_S, 1), "the guest runs",
        Undo::Nothing(LOOKS), Undo;
    /// Waits for what a scratch guest's own controller reports.
    AwaitReport = "await_report", Light, Bound::within(limits::TEST_REPORT_S, 1), "a report was heard",
        Undo::Nothing(LOOKS), Undo;
    /// Stops the scratch guest.
    // The result of the test is kept; what is left of the test is for a person.
    StopScratch = "stop_scratch", Light, Bound::within(limits::SHORT_TASK_MAX_S, limits::STEP_TRIES), "the guest stands still",
        Undo::Nothing(NOT_NEEDED), Park;
    /// Destroys the scratch guest that this operation made.
    // A second one frees what the first, cut short, did not.
    DestroyScratch = "destroy_scratch", Light, Bound::to_its_end(limits::DESTROY_MAX_S, 2), "nobody has the VMID",
        Undo::Nothing(NOT_NEEDED), Park;
    /// Sees that it is gone, and every one of its volumes.
    ConfirmScratchGone = "confirm_scratch_gone", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Park;
    /// Compares a guest and its copy with what an operator signed for, and sees that the one can take the place of the other.
    VerifySwap = "verify_swap", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Asks the guest that a copy replaces to shut down, and stops it hard when it does not.
    StopOriginal = "stop_original", Light, SHORT_TASK, "the guest stands still",
        Undo::StartOriginal, Undo;
    /// Gives the guest the mark of a copy, and unplugs it.
    DemoteOriginal = "demote_original", Light, MINUTE, "the original is marked as set aside and unplugged",
        Undo::RestoreOriginal, Undo;
    /// Gives the copy the mark of its guest, its name and its networks.
    PromoteCopy = "promote_copy", Light, MINUTE, "the copy has its guest's mark, name and networks",
        Undo::DemoteCopy, Undo;
    /// Starts the copy in the place of its guest.
    StartPlaced = "start_placed", Light, SHORT_TASK, "the guest runs",
        Undo::StopPlaced, Undo;
    /// Compares a guest with what an operator signed for, and sees that the container of the newer image can take its place.
    VerifyRebase = "verify_rebase", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
    /// Hands a volume of the guest to the container that takes its place, by its index among them.
    // A rename; a second one may find the storage in a better mood.
    MoveVolume(u8) = "move_volume", Light, SHORT_TASK, "the other container has the volume",
        Undo::MoveBack, Undo;
    /// Reads both again.
    ConfirmPlaced = "confirm_placed", Light, MINUTE, "it is looked at again",
        Undo::Nothing(LOOKS), Undo;
}
