//! Waiting for the controller's hello, bounded, woken by the store.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;

use super::context::{Context, Started, StepOutput};
use super::identity::vmid;
use super::step_power;
use super::trouble::StepError;
use crate::model::records::Access;
use crate::operation::step::Step;
use crate::operation::{Makes, Operation, Whence};
use crate::port::pve::read::Power;

/// How often it is looked whether the guest still runs.
const LOOK: Duration = Duration::from_secs(5);

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let uid = context.progress.operation.uid();
    let mut changes = context.ports.store.changes();
    let deadline = context.ports.clock.monotonic() + Duration::from_secs(context.step.bound().seconds);
    // The guest that a copy takes the place of spoke until it went down.
    let since = context.progress.intended_at_of(Step::StartPlaced).unwrap_or(context.progress.opened_at);
    context.say("waiting for the controller's hello");
    loop {
        changes.mark_unchanged();
        let record = context.ports.store.guest(uid).await?;
        let record = record.ok_or_else(|| StepError::fault(format!("there is no record of guest {uid}")))?;
        if record.access == Access::Frozen {
            let text =
                "its claim was redeemed twice: two holders, one of them a stranger; its access is frozen";
            return Err(StepError::park(
                ErrorCode::ClaimTwice,
                text,
                format!("pct enter {}", vmid(context)?),
            ));
        }
        if brings_its_token(&context.progress.operation) && record.token_generation == 0 {
            return step_power::stays_up(
                context,
                "its guest never had a controller: nothing was heard of it",
            )
            .await;
        }
        // Minting the claim deleted every earlier hello; for a guest that was made again from its backup none was
        // minted.
        if let Some(hello) = record.hello.filter(|hello| hello.at >= since) {
            return Ok(Started::Learnt(StepOutput::note(format!("guestd {}", hello.version))));
        }
        if context.ports.clock.monotonic() >= deadline {
            let waited = format!("no hello came within {} s", context.step.bound().seconds);
            return Err(silent(context, &waited)?);
        }
        tokio::select! {
            biased;
            woken = changes.changed() => woken.map_err(|_| StepError::fault("the store is closed"))?,
            () = context.ports.clock.sleep(LOOK) => still_runs(context).await?,
        }
    }
}

async fn still_runs(context: &Context<'_>) -> Result<(), StepError> {
    // Whether it runs matters only when Proxmox answers; the deadline bounds the rest.
    let Ok(status) = context.ports.pve.guest_status(vmid(context)?).await else {
        return Ok(());
    };
    if status.power == Power::Stopped {
        return Err(silent(context, "the guest stopped before its controller said hello")?);
    }
    Ok(())
}

/// Whether the guest has the token that we know already, and no claim was handed over.
fn brings_its_token(operation: &Operation) -> bool {
    match operation {
        Operation::SwapGuest(_) => true,
        Operation::Provision(provision) => {
            provision.lost().is_some_and(|lost| lost.whence == Whence::ThisBox)
        }
        Operation::AdoptGuest(_)
        | Operation::AttachVolume(_)
        | Operation::Backup(_)
        | Operation::Destroy(_)
        | Operation::DiscardCopy(_)
        | Operation::ExpireSnapshot(_)
        | Operation::Grow(_)
        | Operation::ReassignVolume(_)
        | Operation::RebaseGuest(_)
        | Operation::QuiescedBackup(_)
        | Operation::PruneBackup(_)
        | Operation::Reconfigure(_)
        | Operation::RestoreCopy(_)
        | Operation::RestartGuest(_)
        | Operation::RestoreTest(_)
        | Operation::RollBack(_)
        | Operation::Snapshot(_)
        | Operation::Start(_)
        | Operation::Stop(_)
        | Operation::UpdateController(_) => false,
    }
}

/// The text that a person reads. A lost guest that came back is kept, and this is reported about it until its hello
/// arrives.
fn silent(context: &Context<'_>, why: &str) -> Result<StepError, StepError> {
    let lost = match context.progress.operation.makes() {
        Makes::Guest(provision) => provision.lost(),
        Makes::Adopted(_) | Makes::Copy(_) | Makes::Successor(_) | Makes::Scratch(_) | Makes::Nothing => None,
    };
    let Some(lost) = lost else {
        let text = format!("{why}: look at its console, and at the controller of its image");
        return Ok(StepError::give_up(ErrorCode::Unavailable, text));
    };
    let vmid = vmid(context)?;
    let mut text = format!(
        "it came back from {} as guest {vmid}, and {why}: it is kept as it is, for it holds newer data than its backup from its \
         start on; look at its console, and at the controller in it (`pct enter {vmid}`)",
        lost.backup
    );
    if lost.whence == Whence::LostBox {
        text.push_str(
            "; the token in it is the lost box's, its claim ends soon, and no other is handed out: without one it is run and backed \
             up as any guest, but nothing that its controller asks for is heard",
        );
    }
    Ok(StepError::give_up(ErrorCode::ControllerSilent, text))
}
