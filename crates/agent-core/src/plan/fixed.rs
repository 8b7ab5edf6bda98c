//! What a document says of a made guest and nothing carries out.
//!
//! In: the document, our record of the guest, its configuration. Out: a sentence for each, with what a person does. The
//! hub refuses such a change (`protocol::desired::field`). One that comes all the same is reported here: it is from an
//! older hub, or the guest is another than the hub knew. [`super::placement`] reports where its disks are.

use holdfast_protocol::desired::DesiredGuest;

use super::made::Made;
use crate::model::observed::GuestFacts;

/// What is reported of a guest.
pub(super) fn reported(guest: &DesiredGuest, made: &Made<'_>, facts: &GuestFacts) -> Vec<String> {
    let (vmid, record) = (made.vmid, made.record);
    let mut reported = Vec::new();
    if let Some(wanted) = guest.vmid.filter(|wanted| *wanted != vmid) {
        reported.push(format!(
            "the document names VMID {wanted}, and it is {vmid}: no guest changes its number; write {vmid}, or leave it out"
        ));
    }
    let unlike = [
        ("customer", record.customer.as_str(), guest.customer.as_str()),
        ("golden", record.golden.as_str(), guest.golden.as_str()),
    ];
    reported.extend(unlike.into_iter().filter(|(_, made, wanted)| made != wanted).map(|(what, made, wanted)| {
        format!(
            "the document names {what} {wanted}, and it was made with {made}: that stays so; put {made} back, or name a new guest \
             with a new uid"
        )
    }));
    let unnamed = facts.mounts.values().filter(|mount| {
        mount.volume.is_some() && !guest.volumes.iter().any(|volume| volume.mount.as_str() == mount.path)
    });
    reported.extend(unnamed.map(|mount| {
        format!(
            "it has a volume at {} that the document does not name: it is kept as it is; name it again with this mount, or let an \
             operator decide what becomes of its data",
            mount.path
        )
    }));
    reported
}
