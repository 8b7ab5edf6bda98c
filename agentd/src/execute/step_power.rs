//! Steps that start and stop a guest.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{own_config, vmid};
use super::trouble::StepError;
use super::{recheck_missing, step_claim};
use crate::model::limits;
use crate::operation::log::PowerFound;
use crate::operation::step::Step;
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

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    if let Some(stood) = stood_before(context) {
        return Ok(Checked::Happened(stood));
    }
    let wanted = !matches!(context.step, Step::ShutDown | Step::StopOriginal);
    let happened = runs(context).await? == wanted;
    Ok(if happened { Checked::Happened(StepOutput::nothing()) } else { Checked::Not })
}

/// A guest that stood still when the operation came is left so.
fn stood_before(context: &Context<'_>) -> Option<StepOutput> {
    let again = matches!(context.step, Step::StartAgain | Step::ConfirmAgain);
    let stood = context.progress.found() == Some(PowerFound::Stopped);
    (again && stood).then(|| StepOutput::note("it stood still before"))
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    own_config(context).await?;
    let (pve, vmid) = (&context.ports.pve, vmid(context)?);
    let upid = match context.step {
        Step::ShutDown | Step::StopOriginal if context.progress.tries(context.place) > 1 => {
            context.say("it did not go down when asked: stopping it");
            pve.stop(vmid).await?
        }
        Step::ShutDown | Step::StopOriginal => pve.shutdown(vmid, limits::SHUTDOWN_S).await?,
        Step::FirstStart => {
            // A guest that is made again from its backup has its token still, if that was ours.
            let claims = match &context.progress.operation {
                Operation::Provision(made) => match made.lost() {
                    Some(lost) => {
                        recheck_missing::still_gone(context, made.guest.uid, lost).await?;
                        lost.whence == Whence::LostBox
                    }
                    None => true,
                },
                Operation::RestoreTest(test) => test.place.speech.is_some(),
                _ => false,
            };
            if claims {
                step_claim::renew_when_old(context).await?;
            }
            pve.start(vmid).await?
        }
        _ => pve.start(vmid).await?,
    };
    Ok(Started::Task(upid))
}

/// Whether it still runs a moment later, where nobody in it will say so.
pub(super) async fn stays_up(context: &Context<'_>, note: &'static str) -> Result<Started, StepError> {
    context.ports.clock.sleep(STAYS_UP).await;
    if runs(context).await? {
        return Ok(Started::Learnt(StepOutput::note(note)));
    }
    Err(StepError::give_up(ErrorCode::Unavailable, FELL_OVER))
}

/// Whether it is still so a moment later.
pub(super) async fn confirm(context: &Context<'_>) -> Result<Started, StepError> {
    if let Some(stood) = stood_before(context) {
        return Ok(Started::Learnt(stood));
    }
    let wanted = context.step != Step::ConfirmStopped;
    if wanted {
        context.ports.clock.sleep(STAYS_UP).await;
    }
    if runs(context).await? == wanted {
        return Ok(Started::Learnt(StepOutput::nothing()));
    }
    let text =
        if wanted { FELL_OVER } else { "the guest was stopped and runs again: somebody else starts it" };
    Err(StepError::give_up(ErrorCode::Unavailable, text))
}
