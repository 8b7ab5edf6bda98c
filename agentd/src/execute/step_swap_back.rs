//! The undo of a swap.
//!
//! The actual state shows how far the swap came. The copy may have been destroyed meanwhile, or given to another owner
//! while it is unplugged; neither blocks the way back. A plugged-in copy that is not ours, and a guest that is not
//! ours, are left to a person.

use holdfast_protocol::code::ErrorCode;

use super::context::{Context, UndoState};
use super::guest_identity;
use super::identity::look_at;
use super::step_swap::{copy, former, identities, pair, power, send};
use super::trouble::{StepError, StepRecovery};
use crate::gate::warrant::SignedState;
use crate::model::mark::{self, Mark};
use crate::operation::log::PowerFound;
use crate::operation::swap_guest::identity::GuestIdentity;
use crate::port::pve::read::Power;
use crate::port::pve::{GuestConfig, VmidUse};

/// A guest that is not as it was signed for is left to a person from here on.
pub(super) fn for_a_person(trouble: StepError, seen: &SignedState) -> StepError {
    match trouble.next {
        StepRecovery::GiveUp => StepError { next: StepRecovery::Park(look_at(seen.vmid)), ..trouble },
        _ => trouble,
    }
}

/// What became of the copy.
enum Copy {
    /// It is ours beyond doubt.
    Ours(Box<GuestConfig>),
    /// It blocks nothing, and is left as it is.
    Demoted(&'static str),
}

async fn the_copy(context: &Context<'_>) -> Result<Copy, StepError> {
    let seen = &pair(context)?.copy;
    if context.ports.pve.vmid_use(seen.vmid).await? == VmidUse::Free {
        return Ok(Copy::Demoted("the copy is gone"));
    }
    let trouble = match copy(context).await {
        Ok(config) => return Ok(Copy::Ours(Box::new(config))),
        Err(trouble) if trouble.next == StepRecovery::GiveUp => trouble,
        Err(trouble) => return Err(trouble),
    };
    let config = context.ports.pve.guest_config(seen.vmid).await?;
    if guest_identity::is_unplugged(&config) {
        return Ok(Copy::Demoted(
            "the copy was made somebody's own meanwhile; it is unplugged, and left as it is",
        ));
    }
    Err(for_a_person(trouble, seen))
}

/// The undo of starting it.
pub(super) async fn stop_placed(context: &Context<'_>) -> Result<UndoState, StepError> {
    if let Copy::Demoted(why) = the_copy(context).await? {
        return Ok(UndoState::Nothing(Some(why.to_owned())));
    }
    let vmid = pair(context)?.copy.vmid;
    match power(context, vmid).await? {
        Power::Stopped => Ok(UndoState::Nothing(None)),
        Power::Running | Power::Unknown(_) => Ok(UndoState::Task(context.ports.pve.stop(vmid).await?)),
    }
}

/// The undo of its taking the place.
pub(super) async fn give_up_place(context: &Context<'_>) -> Result<UndoState, StepError> {
    let config = match the_copy(context).await? {
        Copy::Ours(config) => *config,
        Copy::Demoted(why) => return Ok(UndoState::Nothing(Some(why.to_owned()))),
    };
    let (seen, wanted) = (&pair(context)?.copy, &identities(context)?.copy);
    if set(context, seen, config, wanted).await? {
        return Ok(UndoState::Nothing(Some("it is a copy again".to_owned())));
    }
    match the_copy(context).await? {
        Copy::Ours(config) => shown(&config, seen, wanted).map(UndoState::Nothing),
        Copy::Demoted(why) => Ok(UndoState::Nothing(Some(why.to_owned()))),
    }
}

/// The undo of demoting the guest. The copy was unplugged before this.
pub(super) async fn take_up_again(context: &Context<'_>) -> Result<UndoState, StepError> {
    let (seen, wanted) = (&pair(context)?.guest, &identities(context)?.guest);
    let config = former(context).await.map_err(|trouble| for_a_person(trouble, seen))?;
    if set(context, seen, config, wanted).await? {
        return Ok(UndoState::Nothing(Some("it is the guest again".to_owned())));
    }
    let config = former(context).await.map_err(|trouble| for_a_person(trouble, seen))?;
    shown(&config, seen, wanted).map(UndoState::Nothing)
}

/// Sends what differs from what was found; true when nothing does.
async fn set(
    context: &Context<'_>,
    seen: &SignedState,
    config: GuestConfig,
    wanted: &GuestIdentity,
) -> Result<bool, StepError> {
    let changes = guest_identity::changes(&config, wanted).map_err(|why| by_hand(seen, &why))?;
    if changes.is_empty() {
        return Ok(true);
    }
    send(context, seen.vmid, config, changes).await?;
    Ok(false)
}

fn shown(
    config: &GuestConfig,
    seen: &SignedState,
    wanted: &GuestIdentity,
) -> Result<Option<String>, StepError> {
    if guest_identity::changes(config, wanted).map_err(|why| by_hand(seen, &why))?.is_empty() {
        return Ok(Some("it is known by what it was found with".to_owned()));
    }
    let text = format!("guest {} was put back by Proxmox's word, but does not show it", seen.vmid);
    Err(StepError::again(ErrorCode::Unavailable, text))
}

fn by_hand(seen: &SignedState, why: &str) -> StepError {
    let text = format!("guest {} is not put back to what it was known by: {why}", seen.vmid);
    StepError::park(ErrorCode::TargetChanged, text, look_at(seen.vmid))
}

/// The undo of the guest's shutdown: what ran when this began runs again. The plan observes whether it stays up.
pub(super) async fn start_former(context: &Context<'_>) -> Result<UndoState, StepError> {
    let seen = &pair(context)?.guest;
    if context.progress.found() != Some(PowerFound::Running) {
        return Ok(UndoState::Nothing(Some("it stood still before".to_owned())));
    }
    let config = former(context).await.map_err(|trouble| for_a_person(trouble, seen))?;
    if mark::read(&config.tags, &config.description) != Mark::Of(seen.uid) {
        let text = format!("guest {} is not itself again: it is not started", seen.vmid);
        return Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(seen.vmid)));
    }
    let tried = context.progress.upid(context.place).is_some();
    match power(context, seen.vmid).await? {
        Power::Running => Ok(UndoState::Nothing(Some("it runs again".to_owned()))),
        _ if tried => Ok(UndoState::Nothing(Some(
            "it did not come up when it was started again: the plan starts it as any guest".to_owned(),
        ))),
        _ => Ok(UndoState::Task(context.ports.pve.start(seen.vmid).await?)),
    }
}
