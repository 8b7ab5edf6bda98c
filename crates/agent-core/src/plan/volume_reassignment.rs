//! The mounts of a volume that is signed to another guest.
//!
//! The job names the volume and both guests; the mounts are the agent's to find. What comes in: both guests as they are
//! seen, proved to be those that were signed for. What goes out: the operation, or why there is none. Deliberately absent:
//! moving anything; the operation proves all of it again on the guests themselves.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::MountPath;
use holdfast_protocol::job::act::args;
use holdfast_protocol::report::Running;
use holdfast_trust::Accepted;

use super::Context;
use super::proved_guest::{Stays, refused};
use super::signed_state::proved;
use crate::gate::job_validation::pair;
use crate::gate::warrant::Warrant;
use crate::model::observed::GuestFacts;
use crate::model::records::VolumeId;
use crate::operation::Operation;
use crate::operation::reassign_volume::{HandOver, Mounts};

pub(super) fn build(
    context: &Context<'_>,
    job: &Accepted,
    args: &args::ReassignVolume,
) -> Result<Operation, Stays> {
    let (from, (giver, giving)) = proved(context, &job.payload().target)?;
    let (to, (taker, taking)) = proved(context, &args.to.target())?;
    let customer = |uid| {
        let records = &context.inputs.records.guests;
        let place = records.binary_search_by_key(&uid, |record| record.uid).ok()?;
        records.get(place).map(|record| &record.customer)
    };
    let (Some(one), Some(other)) = (customer(from.uid), customer(to.uid)) else { return Err(Stays::Waits) };
    pair((from.uid, one), (to.uid, other)).map_err(|why| refused(why.code(), why.to_string()))?;
    for seen in [giver, taker] {
        match seen.run {
            Running::Stopped => {}
            Running::Unknown => return Err(Stays::Waits),
            Running::Running => {
                let text = format!(
                    "guest {} does not stand still: stop both guests first, and sign anew",
                    seen.vmid
                );
                return Err(refused(ErrorCode::Locked, text));
            }
        }
    }
    let mounts = mounts(&VolumeId::new(args.volume.as_str()), giving, taking)?;
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
    let hand = HandOver::new(warrant, mounts).map_err(|error| fault(&error))?;
    Ok(Operation::ReassignVolume(Box::new(hand)))
}

/// Where it is mounted, and the first mount of the other guest that is free.
fn mounts(volume: &VolumeId, giving: &GuestFacts, taking: &GuestFacts) -> Result<Mounts, Stays> {
    let is_it =
        |slot: &u16| giving.mounts.get(slot).is_some_and(|mount| mount.volume.as_ref() == Some(volume));
    let slot = giving.mounts.keys().copied().find(is_it);
    let path = slot.and_then(|slot| giving.mounts.get(&slot)).map(|mount| mount.path.clone());
    let named = path.as_deref().and_then(|path| path.parse::<MountPath>().ok());
    let (Some(from), Some(path)) = (slot.and_then(|slot| u8::try_from(slot).ok()), named) else {
        let text = format!("{volume} is mounted nowhere in its guest: only a mounted volume is handed over");
        return Err(refused(ErrorCode::TargetChanged, text));
    };
    if taking.mounts.values().any(|mount| mount.path == path.as_str()) {
        let text = format!("something is mounted at {path} in the guest that takes: unmount it first");
        return Err(refused(ErrorCode::NameTaken, text));
    }
    let free = (0..=u8::MAX).find(|slot| !taking.mounts.contains_key(&u16::from(*slot)));
    let to = free.ok_or_else(|| refused(ErrorCode::Quota, "the guest that takes has no mount left"))?;
    Ok(Mounts { from, to, path })
}
