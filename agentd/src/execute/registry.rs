//! The functions of each step: act, check, find again, undo.
//!
//! One row for each step and one for each undo; what else is known of a step is a row of `operation::step::table`. A
//! new step is a row there, a row here, and its functions.

use std::pin::Pin;

use super::context::{Checked, Context, Started, UndoState};
use super::trouble::StepError;
use super::{
    step_adopt, step_archive, step_backup, step_claim, step_config, step_destroy, step_disk, step_hello,
    step_move_volume, step_power, step_protection, step_prune, step_read_back, step_reassign_volume,
    step_rebase, step_renew, step_report, step_restore, step_restore_copy, step_roll_back, step_room,
    step_snapshot, step_swap, step_swap_back, step_test, step_update, step_vmid, step_volume, step_window,
    undo_making,
};
use crate::operation::step::{Step, Undo};
use crate::port::pve::Role;
use crate::port::pve::task::TaskKind;

type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, StepError>> + Send + 'a>>;

/// Something that is done with one step.
pub(super) type Do<T> = for<'a> fn(&'a Context<'a>) -> Work<'a, T>;

/// How to determine whether a step has happened.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// Looking is the step itself.
    Always,
    /// The actual state is checked.
    By(Do<Checked>),
}

/// The task of Proxmox that a step starts: of these kinds, and by which token.
pub(super) type StepTask = Option<(&'static [TaskKind], Role)>;

/// How a step is done.
#[derive(Clone, Copy)]
pub(super) struct StepActions {
    pub check: Check,
    pub run: Do<Started>,
    /// How a lost reply is found again.
    pub task: StepTask,
}

/// How a step is taken back.
#[derive(Clone, Copy)]
pub(super) enum UndoActions {
    /// It is not, and why.
    Nothing(&'static str),
    /// By calls that answer at once.
    Calls(Do<UndoState>),
    /// By a task of this kind, which is looked for after a lost reply.
    Task { run: Do<UndoState>, kind: TaskKind, lookup: TaskLookup },
}

/// How the task of an undo is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskLookup {
    /// The newest on the guest that the operation is about, by the token of this role.
    Newest(Role),
    /// The newest on the guest that took the volume: that guest gives it back.
    OfTaker,
    /// A task that still runs, on the VMID that the guest had before. An ended task shows in the guest, which runs or
    /// does not. Tasks are listed by the second, so an ended task may be from before this undo.
    RunningOfOriginal,
}

/// A function of a step as a row has it.
macro_rules! by {
    ($($path:ident)::+) => {
        |context| Box::pin($($path)::+(context))
    };
}

/// The same, of an undo that is over when it answers, with a note.
macro_rules! noted {
    ($($path:ident)::+) => {
        |context| Box::pin(async move { $($path)::+(context).await.map(UndoState::Nothing) })
    };
}

const fn looks(run: Do<Started>) -> StepActions {
    StepActions { check: Check::Always, run, task: None }
}

const fn calls(check: Do<Checked>, run: Do<Started>) -> StepActions {
    StepActions { check: Check::By(check), run, task: None }
}

const fn starts(kinds: &'static [TaskKind], role: Role, check: Do<Checked>, run: Do<Started>) -> StepActions {
    StepActions { check: Check::By(check), run, task: Some((kinds, role)) }
}

/// How a step is done.
#[rustfmt::skip]
pub(super) const fn actions(step: Step) -> StepActions {
    use Role::{Allocate, Operate};
    match step {
        Step::ChooseVmid => looks(by!(step_vmid::act)),
        Step::CheckArchive => looks(by!(step_archive::act)),
        Step::Restore => starts(&[TaskKind::Restore], Allocate, by!(step_restore::probe), by!(step_restore::act)),
        Step::Mark => calls(by!(step_config::is_marked), by!(step_config::set_mark)),
        Step::Protect => calls(by!(step_config::is_protected), by!(step_config::protect)),
        Step::Configure => calls(by!(step_config::is_configured), by!(step_config::configure)),
        Step::GrowRootfs | Step::GrowDisk => starts(&[TaskKind::Resize], Operate, by!(step_disk::is_grown), by!(step_disk::grow)),
        Step::AttachVolume(_) => calls(by!(step_disk::is_attached), by!(step_disk::attach)),
        Step::SetBootstrapToken => calls(by!(step_claim::is_set), by!(step_claim::set)),
        Step::DropClaim => calls(by!(step_claim::is_dropped), by!(step_claim::drop_claim)),
        Step::FirstStart => starts(&[TaskKind::Start], Operate, by!(step_power::is_up), by!(step_power::first_start)),
        Step::Start => starts(&[TaskKind::Start], Operate, by!(step_power::is_up), by!(step_power::start)),
        Step::StartAgain => starts(&[TaskKind::Start], Operate, by!(step_power::is_up_again), by!(step_power::start)),
        Step::StopOriginal => starts(&[TaskKind::Stop, TaskKind::Shutdown], Operate, by!(step_swap::original_is_down), by!(step_swap::stop_original)),
        Step::ShutDown => starts(&[TaskKind::Stop, TaskKind::Shutdown], Operate, by!(step_power::is_down), by!(step_power::shut_down)),
        Step::ConfirmRunning => looks(by!(step_power::confirm_up)),
        Step::ConfirmStopped => looks(by!(step_power::confirm_down)),
        Step::ConfirmAgain => looks(by!(step_power::confirm_up_again)),
        Step::AwaitHello => looks(by!(step_hello::act)),
        Step::AwaitController => looks(by!(step_update::act)),
        Step::FirstBackup | Step::TakeBackup => starts(&[TaskKind::Backup], Operate, by!(step_backup::probe), by!(step_backup::act)),
        Step::RemoveBackup => starts(&[TaskKind::RemoveBackup], Operate, by!(step_prune::probe), by!(step_prune::act)),
        Step::ReadBack => looks(by!(step_read_back::act)),
        Step::LiftProtection => calls(by!(step_protection::is_off), by!(step_protection::lift)),
        Step::ProtectAgain => calls(by!(step_protection::is_on_again), by!(step_protection::protect_again)),
        Step::AddVolume => calls(by!(step_volume::probe), by!(step_volume::act)),
        // The steps themselves check our own records.
        Step::GrantWindow => looks(by!(step_window::grant)),
        Step::AwaitQuiesced => looks(by!(step_window::await_quiesced)),
        Step::AwaitReleased => looks(by!(step_window::await_released)),
        Step::CheckRoom => looks(by!(step_room::act)),
        Step::TakeSnapshot => starts(&[TaskKind::Snapshot], Operate, by!(step_snapshot::is_taken), by!(step_snapshot::take)),
        Step::RemoveSnapshot => starts(&[TaskKind::RemoveSnapshot], Operate, by!(step_snapshot::is_removed), by!(step_snapshot::remove)),
        Step::VerifySnapshot => looks(by!(step_roll_back::prove)),
        Step::ArmRollBack => calls(by!(step_roll_back::is_armed), by!(step_roll_back::arm)),
        Step::RollBack => starts(&[TaskKind::RollBack], Operate, by!(step_roll_back::is_rolled_back), by!(step_roll_back::roll_back)),
        Step::Renew => calls(by!(step_renew::probe), by!(step_renew::act)),
        Step::VerifyTarget => looks(by!(step_destroy::prove)),
        Step::DestroyGuest => starts(&[TaskKind::Destroy], Allocate, by!(step_destroy::probe), by!(step_destroy::act)),
        Step::ConfirmGone => looks(by!(step_destroy::confirm)),
        Step::TagCopy => calls(by!(step_restore_copy::probe), by!(step_restore_copy::tag_copy)),
        Step::VerifyBoth => looks(by!(step_reassign_volume::prove)),
        Step::LiftOther => calls(by!(step_reassign_volume::other_is_off), by!(step_reassign_volume::lift_other)),
        Step::ProtectOther => calls(by!(step_reassign_volume::other_is_on), by!(step_reassign_volume::protect_other)),
        Step::ReassignVolumeTo => starts(&[TaskKind::MoveVolume], Operate, by!(step_reassign_volume::is_reassigned), by!(step_reassign_volume::reassign)),
        Step::ConfirmReassigned => looks(by!(step_reassign_volume::confirm)),
        Step::VerifyUnmanaged => looks(by!(step_adopt::prove)),
        Step::TagGuest => calls(by!(step_adopt::probe), by!(step_adopt::act)),
        Step::ConfirmTagged => looks(by!(step_adopt::confirm)),
        Step::ConfirmIsolated => looks(by!(step_test::isolated)),
        Step::ObserveBoot => looks(by!(step_test::observe)),
        Step::AwaitReport => looks(by!(step_report::act)),
        Step::StopScratch => starts(&[TaskKind::Stop], Operate, by!(step_test::is_stopped), by!(step_test::stop)),
        Step::DestroyScratch => starts(&[TaskKind::Destroy], Allocate, by!(step_test::is_destroyed), by!(step_test::destroy)),
        Step::ConfirmScratchGone => looks(by!(step_test::reaped)),
        Step::VerifySwap => looks(by!(step_swap::prove)),
        Step::DemoteOriginal => calls(by!(step_swap::original_is_demoted), by!(step_swap::demote_original)),
        Step::PromoteCopy => calls(by!(step_swap::copy_is_promoted), by!(step_swap::promote_copy)),
        Step::StartPlaced => starts(&[TaskKind::Start], Operate, by!(step_swap::copy_runs), by!(step_swap::start_copy)),
        Step::VerifyRebase => looks(by!(step_rebase::prove)),
        Step::MoveVolume(_) => starts(&[TaskKind::MoveVolume], Operate, by!(step_move_volume::is_moved), by!(step_move_volume::act)),
        Step::ConfirmPlaced => looks(by!(step_swap::confirm)),
    }
}

const fn task(kind: TaskKind, lookup: TaskLookup, run: Do<UndoState>) -> UndoActions {
    UndoActions::Task { run, kind, lookup }
}

/// How a step is taken back.
#[rustfmt::skip]
pub(super) const fn undo_actions(undo: Undo) -> UndoActions {
    use Role::{Allocate, Operate};
    use TaskLookup::{Newest, OfTaker, RunningOfOriginal};
    match undo {
        Undo::Nothing(why) => UndoActions::Nothing(why),
        Undo::ForgetClaim => UndoActions::Calls(by!(undo_making::forget_claim)),
        Undo::StopGuest => task(TaskKind::Stop, Newest(Operate), by!(undo_making::stop)),
        Undo::Unprotect => UndoActions::Calls(by!(undo_making::unprotect)),
        Undo::DestroyGuest => task(TaskKind::Destroy, Newest(Allocate), by!(undo_making::destroy)),
        Undo::ProtectAgain => UndoActions::Calls(noted!(step_protection::put_back)),
        Undo::WithdrawRequest => UndoActions::Calls(noted!(step_volume::withdraw)),
        Undo::RemoveSnapshot => task(TaskKind::RemoveSnapshot, Newest(Operate), by!(step_snapshot::take_back)),
        Undo::Disarm => UndoActions::Calls(by!(step_roll_back::disarm)),
        Undo::ProtectOther => UndoActions::Calls(noted!(step_reassign_volume::protect_again)),
        Undo::ReassignBack => task(TaskKind::MoveVolume, OfTaker, by!(step_reassign_volume::hand_back)),
        Undo::MoveBack => task(TaskKind::MoveVolume, OfTaker, by!(step_move_volume::move_back)),
        Undo::RestoreTags => UndoActions::Calls(noted!(step_adopt::give_back)),
        Undo::StartOriginal => task(TaskKind::Start, RunningOfOriginal, by!(step_swap_back::start_former)),
        Undo::RestoreOriginal => UndoActions::Calls(by!(step_swap_back::take_up_again)),
        Undo::DemoteCopy => UndoActions::Calls(by!(step_swap_back::give_up_place)),
        Undo::StopPlaced => task(TaskKind::Stop, Newest(Operate), by!(step_swap_back::stop_placed)),
    }
}
