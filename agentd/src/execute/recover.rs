//! Recovery at start: adopted tasks and parked operations.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;

use super::Ports;
use super::context::Context;
use super::lost_reply;
use super::run::{Run, Stopped};
use super::trouble::StepError;
use crate::operation::log::{Event, Status};
use crate::operation::progress::OperationState;
use crate::plan::recovery::{Recover, RecoveryPlan, Task, TaskNameSource};

/// Searches for the tasks of steps that were under way and whose reply was lost.
pub async fn lost_tasks(ports: &Ports, open: &[OperationState]) -> BTreeMap<OperationId, Task> {
    let mut tasks = BTreeMap::new();
    for progress in open {
        let Status::During(place) = progress.status() else { continue };
        let Some(step) = progress.step(place) else { continue };
        if progress.upid(place).is_some() {
            continue;
        }
        let Some(ports) = ports.of(&progress.operation) else { continue };
        let task = match lost_reply::find(&Context { ports: &ports, progress, place, step }).await {
            Ok(Some(upid)) => Task::Found(upid.as_str().to_owned()),
            Ok(None) => Task::None,
            Err(trouble) => Task::Unknown(trouble.problem.message),
        };
        tasks.insert(progress.id, task);
    }
    tasks
}

/// Writes what the plan decided into the journals.
///
/// # Errors
/// [`Stopped`] when a journal cannot be written: its operation keeps its state.
pub async fn settle(ports: &Ports, open: Vec<OperationState>, plan: &RecoveryPlan) -> Result<(), Stopped> {
    for progress in open {
        let line = plan.lines.iter().find(|line| line.id == progress.id);
        let Some(recover) = line.map(|line| &line.recover) else { continue };
        let status = progress.status();
        let mut run = Run { ports, progress, place: None };
        match (recover, status) {
            (Recover::Adopt { upid, known: TaskNameSource::LostReply }, Status::During(step)) => {
                run.write(Event::Posted { step, upid: upid.clone() }).await?;
            }
            (Recover::Park { reason, remedy }, _) => {
                run.park(StepError::park(ErrorCode::ForeignGuest, reason.clone(), remedy.clone())).await?;
            }
            _ => {}
        }
    }
    Ok(())
}
