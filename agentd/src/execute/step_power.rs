//! Steps that start and stop a guest.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{own_config, vmid};
use super::trouble::StepError;
use super::{recheck_missing, step_claim};
use crate::model::limits;
use crate::operation::log::PowerFound;
use crate::operation::{Operation, Whence};
use crate::port::pve::read::Power;

/// A guest that falls over does so in its first seconds.
const STAYS_UP: Duration = Duration::from_secs(3);

const FELL_OVER: &str = "the guest was started and fell over within seconds: look at its console and its log";

pub(super) async fn runs(context: &Context<'_>) -> Result<bool, StepError> {
    let status = context.ports.pve.guest_status(vmid(context)?).await?;
    match status.power {
        Power::Running => Ok(true),
        Power::Stopped => Ok(false),
        Power::Unknown(text) => {
            let message = format!("Proxmox does not know whether the guest runs ({text})");
            Err(StepError {
                next: super::trouble::StepRecovery::Busy,
                ..StepError::again(ErrorCode::Unavailable, message)
            })
        }
    }
}

pub(super) async fn is_up(context: &Context<'_>) -> Result<Checked, StepError> {
    Ok(runs(context).await?.then(StepOutput::nothing).into())
}

pub(super) async fn is_up_again(context: &Context<'_>) -> Result<Checked, StepError> {
    match stood_before(context) {
        Some(stood) => Ok(Checked::Happened(stood)),
        None => is_up(context).await,
    }
}

pub(super) async fn is_down(context: &Context<'_>) -> Result<Checked, StepError> {
    Ok((!runs(context).await?).then(StepOutput::nothing).into())
}

/// A guest that was stopped before the operation is left stopped.
fn stood_before(context: &Context<'_>) -> Option<StepOutput> {
    let stood = context.progress.found() == Some(PowerFound::Stopped);
    stood.then(|| StepOutput::note("it stood still before"))
}

pub(super) async fn start(context: &Context<'_>) -> Result<Started, StepError> {
    own_config(context).await?;
    Ok(Started::Task(context.ports.pve.start(vmid(context)?).await?))
}

/// The first start of a guest that was made. A guest made again from its backup still has its token, if that was ours.
pub(super) async fn first_start(context: &Context<'_>) -> Result<Started, StepError> {
    own_config(context).await?;
    let claims = match &context.progress.operation {
        Operation::Provision(made) => match made.lost() {
            Some(lost) => {
                recheck_missing::still_gone(context, made.guest.uid, lost).await?;
                lost.whence == Whence::LostBox
            }
            None => true,
        },
        Operation::RestoreTest(test) => test.place.speech.is_some(),
        other => return Err(StepError::fault(format!("a {} starts no new guest", other.kind().as_str()))),
    };
    if claims {
        step_claim::renew_when_old(context).await?;
    }
    Ok(Started::Task(context.ports.pve.start(vmid(context)?).await?))
}

/// Requests a shutdown; in a further try it is stopped.
pub(super) async fn shut_down(context: &Context<'_>) -> Result<Started, StepError> {
    own_config(context).await?;
    let (pve, vmid) = (&context.ports.pve, vmid(context)?);
    if context.progress.tries(context.place) > 1 {
        context.say("it did not go down when asked: stopping it");
        return Ok(Started::Task(pve.stop(vmid).await?));
    }
    Ok(Started::Task(pve.shutdown(vmid, limits::SHUTDOWN_S).await?))
}

/// Whether it still runs a moment later, for a guest without a controller that would say so.
pub(super) async fn stays_up(context: &Context<'_>, note: &'static str) -> Result<Started, StepError> {
    context.ports.clock.sleep(STAYS_UP).await;
    if runs(context).await? {
        return Ok(Started::Learnt(StepOutput::note(note)));
    }
    Err(StepError::give_up(ErrorCode::Unavailable, FELL_OVER))
}

/// Whether it still runs a moment later.
pub(super) async fn confirm_up(context: &Context<'_>) -> Result<Started, StepError> {
    context.ports.clock.sleep(STAYS_UP).await;
    if runs(context).await? {
        return Ok(Started::Learnt(StepOutput::nothing()));
    }
    Err(StepError::give_up(ErrorCode::Unavailable, FELL_OVER))
}

/// The same of a guest that ran before.
pub(super) async fn confirm_up_again(context: &Context<'_>) -> Result<Started, StepError> {
    match stood_before(context) {
        Some(stood) => Ok(Started::Learnt(stood)),
        None => confirm_up(context).await,
    }
}

/// Whether it is stopped.
pub(super) async fn confirm_down(context: &Context<'_>) -> Result<Started, StepError> {
    if !runs(context).await? {
        return Ok(Started::Learnt(StepOutput::nothing()));
    }
    let text = "the guest was stopped and runs again: somebody else starts it";
    Err(StepError::give_up(ErrorCode::Unavailable, text))
}
