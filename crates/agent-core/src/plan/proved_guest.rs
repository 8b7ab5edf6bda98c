//! The proved guest of a request, and why a request waits.
//!
//! What comes in: records and the observed host. What goes out: the guest under its VMID, when record, number, ownership
//! tag and volumes agree; else why the request waits or is refused. Deliberately absent: what is requested.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GuestUid;

use super::Context;
use super::existing_guest::foreign;
use super::made::Made;
use crate::model::observed::Detail;
use crate::model::records::{Access, GuestRecord, Place};
use crate::operation::Target;

/// Why a request does not begin.
#[derive(Debug)]
pub(super) enum Stays {
    /// What keeps it passes.
    Waits,
    /// Nothing that passes keeps it.
    Refused(ErrorBody),
}

pub(super) fn refused(code: ErrorCode, text: impl Into<String>) -> Stays {
    Stays::Refused(ErrorBody::new(code, text))
}

/// The guest, when record, number, mark and volumes agree, its access is not frozen and it is not locked.
pub(super) fn provably_ours(context: &Context<'_>, uid: GuestUid) -> Result<Target, Stays> {
    let records = context.inputs.records;
    let place = records.guests.binary_search_by_key(&uid, |record| record.uid);
    let record = place.ok().and_then(|place| records.guests.get(place));
    let Some((record, made)) = record.and_then(|record| Some((record, made(record)?))) else {
        return Err(refused(ErrorCode::NotFound, "this guest is not there any more"));
    };
    if record.access == Access::Frozen {
        return Err(refused(ErrorCode::Frozen, "this guest's access is frozen: an operator must look"));
    }
    // Not listed, or not readable: that may pass, and nothing is concluded from it.
    let seen = context.inputs.observed.guests.get(&made.vmid).ok_or(Stays::Waits)?;
    let Detail::Known(facts) = &seen.detail else { return Err(Stays::Waits) };
    if let Some(why) = foreign(&made, facts) {
        let text = format!("the guest on the node is not provably this one ({why}): an operator must look");
        return Err(refused(ErrorCode::ForeignGuest, text));
    }
    if seen.lock.is_some() {
        return Err(Stays::Waits);
    }
    Ok(Target { uid, name: record.name.clone(), vmid: made.vmid })
}

fn made(record: &GuestRecord) -> Option<Made<'_>> {
    match &record.place {
        Place::Made { vmid, volumes, .. } => Some(Made { guest: None, record, vmid: *vmid, volumes }),
        Place::Nowhere | Place::Making { .. } | Place::Gone { .. } => None,
    }
}
