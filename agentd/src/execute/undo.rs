//! The undo of an operation, from its own journal.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{OperationId, Vmid};

use super::context::{Context, StepOutput, UndoState};
use super::lost_reply;
use super::registry::{self, UndoActions};
use super::run::{Run, Stopped};
use super::trouble::{StepError, StepRecovery};
use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::operation::log::{Event, Finding};
use crate::operation::step::Step;
use crate::port::pve::Upid;

impl Run<'_> {
    /// Takes one step back. The inner error is why it could not be.
    pub(super) async fn take_back(
        &mut self,
        place: u16,
        step: Step,
    ) -> Result<Result<StepOutput, StepError>, Stopped> {
        if let Err(trouble) = self.adopt_undo(place, step).await? {
            return Ok(Err(trouble));
        }
        // Two rounds at most: one task, and a check of what it left.
        for _ in 0..4 {
            if let Some(upid) = self.progress.upid(place).map(str::to_owned)
                && self.undo_task(step, &upid)
            {
                match self.follow(place, step, &upid).await {
                    Ok(_) => {}
                    Err(trouble) => return Ok(Err(trouble)),
                }
            }
            let left = {
                let context = Context { ports: self.ports, progress: &self.progress, place, step };
                undo(&context).await
            };
            match left {
                Ok(UndoState::Nothing(note)) => return Ok(Ok(StepOutput { facts: Vec::new(), note })),
                Ok(UndoState::Back(volume)) => {
                    let note = Some(format!("{volume} is back"));
                    return Ok(Ok(StepOutput { facts: vec![Finding::Volume(volume)], note }));
                }
                Ok(UndoState::MovedBack { was, volume }) => {
                    let note = Some(format!("{volume} is back"));
                    return Ok(Ok(StepOutput { facts: vec![Finding::MovedBack { was, volume }], note }));
                }
                Ok(UndoState::Task(upid)) => {
                    self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                }
                Err(trouble) => return Ok(Err(trouble)),
            }
        }
        let text =
            format!("the undo of {} was done by Proxmox's word, but the world does not show it", step.name());
        Ok(Err(StepError::again(ErrorCode::Unavailable, text)))
    }

    /// A guest that is being destroyed leaves its pool first, and then no token of ours sees it. Without its task it
    /// would be taken for another owner's guest.
    async fn adopt_undo(&mut self, place: u16, step: Step) -> Result<Result<(), StepError>, Stopped> {
        if self.progress.upid(place).is_some() {
            return Ok(Ok(()));
        }
        let found = {
            let context = Context { ports: self.ports, progress: &self.progress, place, step };
            lost_reply::find_undo(&context).await
        };
        match found {
            Ok(Some(upid)) => {
                self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(trouble) => Ok(Err(trouble)),
        }
    }

    /// Whether a task in the journal belongs to the undo rather than to the step itself.
    fn undo_task(&self, step: Step, upid: &str) -> bool {
        match registry::undo_actions(step.undo()) {
            UndoActions::Nothing(_) | UndoActions::Calls(_) => false,
            UndoActions::Task { kind, .. } => {
                upid.parse::<Upid>().is_ok_and(|upid| upid.kind() == kind.text())
            }
        }
    }
}

async fn undo(context: &Context<'_>) -> Result<UndoState, StepError> {
    let run = match registry::undo_actions(context.step.undo()) {
        UndoActions::Nothing(why) => return Ok(UndoState::Nothing(Some(why.to_owned()))),
        UndoActions::Calls(run) | UndoActions::Task { run, .. } => run,
    };
    permitted(context.progress.id)?;
    run(context).await
}

/// The gate is called here as well: an undo is an effect like any other.
fn permitted(undoing: OperationId) -> Result<(), StepError> {
    match gate(&Effect::UndoOwnMaking { undoing }, Provenance::Journal(undoing), &Approved::default()) {
        Verdict::Free => Ok(()),
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => Err(StepError::fault(why)),
    }
}

/// What follows an undo that could not be done.
pub(super) fn after(step: Step, vmid: Option<Vmid>, trouble: &StepError) -> Option<String> {
    match &trouble.next {
        StepRecovery::Park(remedy) => Some(remedy.clone()),
        StepRecovery::GiveUp => Some(step.remedy(vmid)),
        StepRecovery::Look | StepRecovery::Again | StepRecovery::Away | StepRecovery::Busy => None,
    }
}
