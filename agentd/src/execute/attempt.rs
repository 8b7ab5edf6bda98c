//! One try of one step: probe, effect, task, probe.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;

use super::Ports;
use super::failpoint::Moment;
use super::run::{Run, Stopped};
use super::trouble::{Next, Trouble};
use super::{
    failed_task, lost, step_adopt, step_archive, step_backup, step_beside, step_claim, step_config,
    step_destroy, step_disk, step_hand_over, step_hello, step_power, step_protection, step_prune,
    step_read_back, step_renew, step_report, step_restore, step_roll_back, step_room, step_snapshot,
    step_swap, step_test, step_update, step_vmid, step_volume, step_window,
};
use crate::model::planted::{Bug, planted};
use crate::model::view::ProgressLine;
use crate::operation::log::{Event, Fact};
use crate::operation::progress::Progress;
use crate::operation::step::{Follows, Step};
use crate::port::pve::Upid;
use crate::port::pve::backup_errors::BackupLog;
use crate::port::pve::task::{Patience, TaskOutcome};
use crate::port::pve::unpack::Told;

/// After a request that may have arrived the world is watched this long: Proxmox gives up on its own calls after 30 s.
const SETTLE: Duration = Duration::from_secs(35);

/// A guest or storage that somebody else holds is waited for this long: a backup of a large guest takes hours, but then
/// the plan comes back to it anyway.
const BUSY_MAX: Duration = Duration::from_secs(900);

/// What a step learnt when it had happened.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    pub facts: Vec<Fact>,
    pub note: Option<String>,
}

impl Learnt {
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    pub(super) fn note(text: impl Into<String>) -> Self {
        Self { facts: Vec::new(), note: Some(text.into()) }
    }

    pub(super) fn fact(fact: Fact) -> Self {
        Self { facts: vec![fact], note: None }
    }
}

/// What the world says of a step.
#[derive(Debug)]
pub(super) enum Probed {
    /// It has happened.
    Happened(Learnt),
    /// It has not.
    Not,
}

/// What an effect began.
#[derive(Debug)]
pub(super) enum Acted {
    /// It is done; the world is asked next.
    Done,
    /// Proxmox works on it.
    Task(Upid),
    /// Looking was the step, and this is what was seen.
    Learnt(Learnt),
}

/// How a step is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Its intent was just written.
    Fresh,
    /// Its intent was found in the journal: an earlier run may have acted.
    Resumed,
}

/// What a step needs to see of its operation.
pub(super) struct Context<'a> {
    pub ports: &'a Ports,
    pub progress: &'a Progress,
    pub place: u16,
    pub step: Step,
}

impl Context<'_> {
    /// Tells people who watch.
    pub(super) fn say(&self, line: impl Into<String>) {
        let line = ProgressLine { step: self.step.name(), line: line.into() };
        self.ports.lines.send_modify(|lines| {
            lines.insert(self.progress.id, line);
        });
    }
}

async fn probe(context: &Context<'_>) -> Result<Probed, Trouble> {
    if let Some(skipped) = step_update::skipped(context) {
        return Ok(Probed::Happened(skipped));
    }
    match context.step {
        Step::ChooseVmid | Step::JudgeArchive | Step::AwaitHello | Step::AwaitController | Step::ReadBack => {
            Ok(Probed::Not)
        }
        Step::Restore => step_restore::probe(context).await,
        Step::Mark | Step::Protect | Step::Configure => step_config::probe(context).await,
        Step::GrowRootfs | Step::GrowDisk | Step::AttachVolume(_) => step_disk::probe(context).await,
        Step::HandOverClaim | Step::DropClaim => step_claim::probe(context).await,
        Step::FirstStart | Step::Start | Step::StartAgain | Step::ShutDown | Step::StandDown => {
            step_power::probe(context).await
        }
        Step::ConfirmRunning | Step::ConfirmStopped | Step::ConfirmAgain => Ok(Probed::Not),
        Step::LiftProtection | Step::ProtectAgain => step_protection::probe(context).await,
        Step::AddVolume => step_volume::probe(context).await,
        Step::FirstBackup | Step::TakeBackup => step_backup::probe(context).await,
        Step::RemoveBackup => step_prune::probe(context).await,
        Step::CheckRoom | Step::ProveSnapshot => Ok(Probed::Not),
        // Our own records are asked by the steps themselves.
        Step::GrantWindow | Step::AwaitQuiesced | Step::AwaitReleased => Ok(Probed::Not),
        Step::TakeSnapshot | Step::RemoveSnapshot => step_snapshot::probe(context).await,
        Step::ArmRollBack | Step::RollBack => step_roll_back::probe(context).await,
        Step::Renew => step_renew::probe(context).await,
        Step::ProveTarget | Step::ConfirmGone => Ok(Probed::Not),
        Step::DestroyGuest => step_destroy::probe(context).await,
        Step::SetAside => step_beside::probe(context).await,
        Step::ProveBoth | Step::ConfirmHandedOver => Ok(Probed::Not),
        Step::LiftOther | Step::ProtectOther | Step::HandVolume => step_hand_over::probe(context).await,
        Step::ProveStranger | Step::ConfirmTakenOver => Ok(Probed::Not),
        Step::TakeOver => step_adopt::probe(context).await,
        Step::ConfirmIsolated | Step::ObserveBoot | Step::AwaitReport | Step::ConfirmReaped => {
            Ok(Probed::Not)
        }
        Step::StopScratch | Step::ReapScratch => step_test::probe(context).await,
        Step::ProveSwap | Step::ConfirmPlaced => Ok(Probed::Not),
        Step::LayAside | Step::TakePlace | Step::StartPlaced => step_swap::probe(context).await,
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    match context.step {
        Step::ChooseVmid => step_vmid::act(context).await,
        Step::JudgeArchive => step_archive::act(context).await,
        Step::Restore => step_restore::act(context).await,
        Step::Mark | Step::Protect | Step::Configure => step_config::act(context).await,
        Step::GrowRootfs | Step::GrowDisk | Step::AttachVolume(_) => step_disk::act(context).await,
        Step::HandOverClaim | Step::DropClaim => step_claim::act(context).await,
        Step::FirstStart | Step::Start | Step::StartAgain | Step::ShutDown | Step::StandDown => {
            step_power::act(context).await
        }
        Step::ConfirmRunning | Step::ConfirmStopped | Step::ConfirmAgain => {
            step_power::confirm(context).await
        }
        Step::LiftProtection | Step::ProtectAgain => step_protection::act(context).await,
        Step::AddVolume => step_volume::act(context).await,
        Step::ProveTarget => step_destroy::prove(context).await,
        Step::DestroyGuest => step_destroy::act(context).await,
        Step::ConfirmGone => step_destroy::confirm(context).await,
        Step::SetAside => step_beside::set_aside(context).await,
        Step::ProveBoth => step_hand_over::prove(context).await,
        Step::LiftOther | Step::ProtectOther | Step::HandVolume => step_hand_over::act(context).await,
        Step::ConfirmHandedOver => step_hand_over::confirm(context).await,
        Step::ProveStranger => step_adopt::prove(context).await,
        Step::TakeOver => step_adopt::act(context).await,
        Step::ConfirmTakenOver => step_adopt::confirm(context).await,
        Step::ConfirmIsolated => step_test::isolated(context).await,
        Step::ObserveBoot => step_test::observe(context).await,
        Step::AwaitReport => step_report::act(context).await,
        Step::StopScratch | Step::ReapScratch => step_test::reap(context).await,
        Step::ConfirmReaped => step_test::reaped(context).await,
        Step::ProveSwap => step_swap::prove(context).await,
        Step::LayAside | Step::TakePlace | Step::StartPlaced => step_swap::act(context).await,
        Step::ConfirmPlaced => step_swap::confirm(context).await,
        Step::AwaitHello => step_hello::act(context).await,
        Step::AwaitController => step_update::act(context).await,
        Step::FirstBackup | Step::TakeBackup => step_backup::act(context).await,
        Step::GrantWindow => step_window::grant(context).await,
        Step::AwaitQuiesced => step_window::await_quiesced(context).await,
        Step::AwaitReleased => step_window::await_released(context).await,
        Step::RemoveBackup => step_prune::act(context).await,
        Step::CheckRoom => step_room::act(context).await,
        Step::TakeSnapshot | Step::RemoveSnapshot => step_snapshot::act(context).await,
        Step::ProveSnapshot => step_roll_back::prove(context).await,
        Step::ArmRollBack | Step::RollBack => step_roll_back::act(context).await,
        Step::Renew => step_renew::act(context).await,
        Step::ReadBack => step_read_back::act(context).await,
    }
}

/// How far a try is.
struct Try {
    /// The effect was sent, in this run or an earlier one, so a second one is out of the question.
    acted: bool,
    /// Why the world may not show it.
    trouble: Option<Trouble>,
    /// Until when a request that may have arrived is watched for.
    settle_until: Option<Duration>,
    busy_until: Duration,
    pauses: u32,
}

impl Run<'_> {
    /// One try. The outer error stops the operation where it stands; the inner one is the try's.
    pub(super) async fn attempt(
        &mut self,
        place: u16,
        step: Step,
        entry: Entry,
    ) -> Result<Result<Learnt, Trouble>, Stopped> {
        let now = self.ports.clock.monotonic();
        let mut state =
            Try { acted: false, trouble: None, settle_until: None, busy_until: now + BUSY_MAX, pauses: 0 };
        // Until it is known whether an earlier run's task exists, nothing is sent.
        while entry == Entry::Resumed
            && let Err(trouble) = self.adopt(place, step).await?
        {
            if let Some(end) = self.wait(place, step, &mut state, trouble).await? {
                return Ok(Err(end));
            }
        }
        let mut followed: Option<String> = None;
        loop {
            let posted = self.progress.upid(place).map(str::to_owned);
            let outcome = match posted.filter(|upid| followed.as_ref() != Some(upid)) {
                Some(upid) => match self.follow(place, step, &upid).await {
                    Ok(None) if planted(Bug::TrustTaskOk) => return Ok(Ok(Learnt::nothing())),
                    Ok(trouble) => {
                        state.acted = true;
                        state.trouble = trouble;
                        followed = Some(upid);
                        continue;
                    }
                    Err(trouble) => Err(trouble),
                },
                None => self.look_or_act(place, step, &mut state).await?,
            };
            match outcome {
                Ok(Some(learnt)) => return Ok(Ok(learnt)),
                Ok(None) => {}
                Err(trouble) => {
                    if let Some(end) = self.wait(place, step, &mut state, trouble).await? {
                        return Ok(Err(end));
                    }
                }
            }
        }
    }

    /// One look at the world and, when nothing was done yet, the effect. None means: look again.
    async fn look_or_act(
        &mut self,
        place: u16,
        step: Step,
        state: &mut Try,
    ) -> Result<Result<Option<Learnt>, Trouble>, Stopped> {
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        match probe(&context).await {
            Ok(Probed::Happened(learnt)) => return Ok(Ok(Some(learnt))),
            Ok(Probed::Not) if state.acted => return Ok(Err(self.unseen(step, state))),
            Ok(Probed::Not) => {}
            Err(trouble) => return Ok(Err(trouble)),
        }
        self.reach(step.name(), super::failpoint::Side::Before, Moment::Effect)?;
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        let acted = act(&context).await;
        self.reach(step.name(), super::failpoint::Side::After, Moment::Effect)?;
        match acted {
            Ok(Acted::Learnt(learnt)) => return Ok(Ok(Some(learnt))),
            Ok(Acted::Done) => state.acted = true,
            Ok(Acted::Task(upid)) => {
                state.acted = true;
                self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
            }
            Err(trouble) if trouble.next == Next::Look && !planted(Bug::RepostBlindly) => {
                state.acted = true;
                state.settle_until = Some(self.ports.clock.monotonic() + SETTLE);
                state.trouble = Some(trouble);
                if let Err(trouble) = self.adopt(place, step).await? {
                    return Ok(Err(trouble));
                }
            }
            Err(trouble) => return Ok(Err(trouble)),
        }
        Ok(Ok(None))
    }

    /// The effect was sent and the world does not show it.
    fn unseen(&self, step: Step, state: &Try) -> Trouble {
        let settling = state.settle_until.is_some_and(|until| self.ports.clock.monotonic() < until);
        match &state.trouble {
            Some(trouble) if settling => Trouble { next: Next::Look, ..trouble.clone() },
            Some(trouble) if trouble.next == Next::Look => Trouble { next: Next::Again, ..trouble.clone() },
            Some(trouble) => trouble.clone(),
            None => Trouble::again(
                ErrorCode::Unavailable,
                format!("{} was done by Proxmox's word, but the guest does not show it", step.name()),
            ),
        }
    }

    /// Waits when that may help; gives the trouble back when it is the try's end.
    async fn wait(
        &mut self,
        place: u16,
        step: Step,
        state: &mut Try,
        trouble: Trouble,
    ) -> Result<Option<Trouble>, Stopped> {
        let busy_over = self.ports.clock.monotonic() >= state.busy_until;
        match trouble.next {
            Next::Again | Next::GiveUp | Next::Park(_) => return Ok(Some(trouble)),
            Next::Busy if busy_over => return Ok(Some(Trouble { next: Next::GiveUp, ..trouble })),
            Next::Away | Next::Busy | Next::Look => {}
        }
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        context.say(format!("waits: {}", trouble.problem.message));
        // 0.5 s, doubled up to half a minute.
        let pause =
            Duration::from_millis(500).saturating_mul(1 << state.pauses.min(6)).min(Duration::from_secs(30));
        state.pauses += 1;
        self.ports.clock.sleep(pause).await;
        if trouble.next == Next::Look
            && let Err(trouble) = self.adopt(place, step).await?
        {
            state.trouble = Some(trouble);
        }
        Ok(None)
    }

    /// Looks for a task of ours that does this step, when the journal names none.
    async fn adopt(&mut self, place: u16, step: Step) -> Result<Result<(), Trouble>, Stopped> {
        if self.progress.upid(place).is_some() || planted(Bug::RepostBlindly) {
            return Ok(Ok(()));
        }
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        match lost::find(&context).await {
            Ok(Some(upid)) => {
                tracing::info!(operation = %self.progress.id, step = step.name(), %upid, "a task whose reply was lost was found");
                self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(trouble) => Ok(Err(trouble)),
        }
    }

    /// Follows a task to its end. The answer is why the world may not show the step, if so.
    pub(super) async fn follow(
        &self,
        place: u16,
        step: Step,
        upid: &str,
    ) -> Result<Option<Trouble>, Trouble> {
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        let named: Upid = upid
            .parse()
            .map_err(|_| Trouble::fault(format!("the journal names a task {upid:?} that is none")))?;
        let patience = match step.follows() {
            Follows::WithinItsBound => Patience::up_to(Duration::from_secs(step.bound().seconds)),
            Follows::ToItsEnd => Patience::to_its_end(),
        };
        let (mut backup, mut told) = (BackupLog::default(), Told::default());
        let mut on_line = |line: &str| {
            backup.hear(line);
            told.hear(line);
            context.say(line);
        };
        let outcome = step_window::follow(&context, &named, patience, &mut on_line).await?;
        Ok(match outcome {
            TaskOutcome::Warnings(_) if planted(Bug::WarningsAreFailed) => {
                return Err(Trouble::give_up(ErrorCode::Unavailable, "planted"));
            }
            TaskOutcome::Unknown(_) if planted(Bug::UnknownIsFailed) => {
                return Err(Trouble::give_up(ErrorCode::Unavailable, "planted"));
            }
            TaskOutcome::Ok | TaskOutcome::Warnings(_) => None,
            TaskOutcome::Failed(text) => {
                let why = backup.why().filter(|_| text == "job errors");
                Some(match why {
                    Some((code, why)) => failed_task::no_backup(code, &why),
                    None => failed_task::trouble(&context, &text, &told).await,
                })
            }
            TaskOutcome::Unknown(unclear) => {
                let message = format!("nobody knows how the task of {} ended: {unclear}", step.name());
                let problem = Problem::new(ErrorCode::Unavailable, message).with("upid", upid);
                Some(Trouble { problem, next: Next::Again })
            }
        })
    }
}
