//! One try of one step: probe, effect, task, probe.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;

use super::context::{Checked, Context, Entry, Started, StepOutput};
use super::failpoint::Moment;
use super::registry::Check;
use super::run::{Run, Stopped};
use super::trouble::{StepError, StepRecovery};
use super::{failed_task, lost_reply, registry, step_roll_back, step_update, step_window};
use crate::operation::log::Event;
use crate::operation::step::{Follows, Step};
use crate::port::pve::Upid;
use crate::port::pve::backup_errors::BackupLog;
use crate::port::pve::restore_errors::RestoreLog;
use crate::port::pve::task::{Patience, TaskOutcome};

/// After a request that may have arrived, the state is observed for this long: Proxmox gives up its own calls after 30
/// s.
const SETTLE: Duration = Duration::from_secs(35);

/// How long to wait for a guest or storage that another process holds. A backup of a large guest takes hours, but the
/// plan comes back to it later anyway.
const BUSY_MAX: Duration = Duration::from_secs(900);

async fn check(context: &Context<'_>) -> Result<Checked, StepError> {
    if let Some(skipped) = step_update::skipped(context) {
        // An earlier agent may have set its tag, and died before it wrote that.
        if context.step == Step::ArmRollBack
            && let Checked::Happened(armed) = step_roll_back::is_armed(context).await?
        {
            return Ok(Checked::Happened(armed));
        }
        return Ok(Checked::Happened(skipped));
    }
    match registry::actions(context.step).check {
        Check::Always => Ok(Checked::Not),
        Check::By(check) => check(context).await,
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    (registry::actions(context.step).run)(context).await
}

/// How far a try is.
struct Try {
    /// The effect was sent, in this run or an earlier one, so it must not be sent again.
    acted: bool,
    /// Why the world may not show it.
    trouble: Option<StepError>,
    /// Until when a request that may have arrived is watched for.
    settle_until: Option<Duration>,
    busy_until: Duration,
    pauses: u32,
}

impl Run<'_> {
    /// One try. The outer error stops the operation at its current step; the inner one is the try's.
    pub(super) async fn attempt(
        &mut self,
        place: u16,
        step: Step,
        entry: Entry,
    ) -> Result<Result<StepOutput, StepError>, Stopped> {
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

    /// One check of the actual state and, when nothing was done yet, the effect. `None` means: check again.
    async fn look_or_act(
        &mut self,
        place: u16,
        step: Step,
        state: &mut Try,
    ) -> Result<Result<Option<StepOutput>, StepError>, Stopped> {
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        match check(&context).await {
            Ok(Checked::Happened(learnt)) => return Ok(Ok(Some(learnt))),
            Ok(Checked::Not) if state.acted => return Ok(Err(self.unseen(step, state))),
            Ok(Checked::Not) => {}
            Err(trouble) => return Ok(Err(trouble)),
        }
        self.reach(step.name(), super::failpoint::Side::Before, Moment::Effect)?;
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        let acted = act(&context).await;
        self.reach(step.name(), super::failpoint::Side::After, Moment::Effect)?;
        match acted {
            Ok(Started::Learnt(learnt)) => return Ok(Ok(Some(learnt))),
            Ok(Started::Done) => state.acted = true,
            Ok(Started::Task(upid)) => {
                state.acted = true;
                self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
            }
            Err(trouble) if trouble.next == StepRecovery::Look => {
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
    fn unseen(&self, step: Step, state: &Try) -> StepError {
        let settling = state.settle_until.is_some_and(|until| self.ports.clock.monotonic() < until);
        match &state.trouble {
            Some(trouble) if settling => StepError { next: StepRecovery::Look, ..trouble.clone() },
            Some(trouble) if trouble.next == StepRecovery::Look => {
                StepError { next: StepRecovery::Again, ..trouble.clone() }
            }
            Some(trouble) => trouble.clone(),
            None => StepError::again(
                ErrorCode::Unavailable,
                format!("{} was done by Proxmox's word, but the guest does not show it", step.name()),
            ),
        }
    }

    /// Waits when that may help; returns the trouble when it ends the try.
    async fn wait(
        &mut self,
        place: u16,
        step: Step,
        state: &mut Try,
        trouble: StepError,
    ) -> Result<Option<StepError>, Stopped> {
        let busy_over = self.ports.clock.monotonic() >= state.busy_until;
        match trouble.next {
            StepRecovery::Again | StepRecovery::GiveUp | StepRecovery::Park(_) => return Ok(Some(trouble)),
            StepRecovery::Busy if busy_over => {
                return Ok(Some(StepError { next: StepRecovery::GiveUp, ..trouble }));
            }
            StepRecovery::Away | StepRecovery::Busy | StepRecovery::Look => {}
        }
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        context.say(format!("waits: {}", trouble.problem.message));
        // 0.5 s, doubled up to half a minute.
        let pause =
            Duration::from_millis(500).saturating_mul(1 << state.pauses.min(6)).min(Duration::from_secs(30));
        state.pauses += 1;
        self.ports.clock.sleep(pause).await;
        if trouble.next == StepRecovery::Look
            && let Err(trouble) = self.adopt(place, step).await?
        {
            state.trouble = Some(trouble);
        }
        Ok(None)
    }

    /// Searches for a task of ours that does this step, when the journal names none.
    async fn adopt(&mut self, place: u16, step: Step) -> Result<Result<(), StepError>, Stopped> {
        if self.progress.upid(place).is_some() {
            return Ok(Ok(()));
        }
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        match lost_reply::find(&context).await {
            Ok(Some(upid)) => {
                tracing::info!(operation = %self.progress.id, step = step.name(), %upid, "a task whose reply was lost was found");
                self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(trouble) => Ok(Err(trouble)),
        }
    }

    /// Follows a task to its end. The answer is the reason why the step may not show, if there is one.
    pub(super) async fn follow(
        &self,
        place: u16,
        step: Step,
        upid: &str,
    ) -> Result<Option<StepError>, StepError> {
        let context = Context { ports: self.ports, progress: &self.progress, place, step };
        let named: Upid = upid
            .parse()
            .map_err(|_| StepError::fault(format!("the journal names a task {upid:?} that is none")))?;
        let patience = match step.bound().follows {
            Follows::WithinItsBound => Patience::up_to(Duration::from_secs(step.bound().seconds)),
            Follows::ToItsEnd => Patience::to_its_end(),
        };
        let (mut backup, mut reported) = (BackupLog::default(), RestoreLog::default());
        let mut on_line = |line: &str| {
            backup.hear(line);
            reported.hear(line);
            context.say(line);
        };
        let outcome = step_window::follow(&context, &named, patience, &mut on_line).await?;
        Ok(match outcome {
            TaskOutcome::Ok | TaskOutcome::Warnings(_) => None,
            TaskOutcome::Failed(text) => {
                let why = backup.why().filter(|_| text == "job errors");
                Some(match why {
                    Some((code, why)) => failed_task::no_backup(code, &why),
                    None => failed_task::trouble(&context, &text, &reported).await,
                })
            }
            TaskOutcome::Unknown(unclear) => {
                let message = format!("nobody knows how the task of {} ended: {unclear}", step.name());
                let problem = ErrorBody::new(ErrorCode::Unavailable, message).with("upid", upid);
                Some(StepError { problem, next: StepRecovery::Again })
            }
        })
    }
}
