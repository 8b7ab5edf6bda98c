//! Restored copies and set-away originals: reported, never changed.
//!
//! It is known by number, mark and volumes, as a guest is, but it is none: nothing here starts it, sizes it, counts it
//! or takes it for its guest. What comes in: our records of copies, and what is seen. What goes out: a verdict for
//! each, and the copies whose numbers are free now. Deliberately absent: removing one. It holds a customer's data, and
//! only a person removes it.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::{GuestStatus, Running};

use super::{GuestVerdict, Inputs, Judged, Plan};
use crate::model::mark::Mark;
use crate::model::observed::{Detail, GuestFacts, ObservedGuest, Protection, Sight, VmidFact};
use crate::model::records::{CopyStage, Origin, Records, RestoredCopyRecord};

/// Numbers of copies that the look may not show: whether anybody has them.
pub(super) fn questions(records: &Records) -> impl Iterator<Item = Vmid> {
    let made = records.copies.iter().filter(|record| matches!(record.stage, CopyStage::Made { .. }));
    made.map(|record| record.vmid)
}

/// A verdict for each copy.
pub(super) fn verdicts(inputs: &Inputs<'_>, plan: &mut Plan) {
    for record in &inputs.records.copies {
        let seen = inputs.observed.guests.get(&record.vmid);
        let judged = match (seen, &record.stage) {
            (Some(seen), _) => judge(inputs, record, seen),
            // Its operation is reported.
            (None, CopyStage::Making) => continue,
            (None, CopyStage::Made { .. }) if gone(inputs, record) => {
                plan.gone_copies.push(record.made_by);
                continue;
            }
            (None, CopyStage::Made { .. }) => {
                let text = format!(
                    "{}: it is not listed, and its number is somebody's or could not be asked about",
                    what(record)
                );
                Judged::new(GuestStatus::Missing).with(ErrorCode::Unavailable, text)
            }
        };
        plan.verdicts.push(GuestVerdict {
            wanted: None,
            recorded: None,
            vmid: Some(record.vmid),
            status: judged.status,
            conditions: judged.conditions,
            protection: None,
            faults: Vec::new(),
        });
    }
}

fn gone(inputs: &Inputs<'_>, record: &RestoredCopyRecord) -> bool {
    inputs.observed.sight == Sight::Proved && inputs.observed.vmids.get(&record.vmid) == Some(&VmidFact::Free)
}

fn what(record: &RestoredCopyRecord) -> String {
    let RestoredCopyRecord { name, guest, made_by, .. } = record;
    let since = record.since.map(|at| at.strftime(", kept since %Y-%m-%d %H:%M UTC").to_string());
    let since = since.unwrap_or_default();
    match &record.origin {
        Origin::Restored(archive) => {
            format!("a copy of {name} ({guest}), restored from {archive} by operation {made_by}{since}")
        }
        Origin::Rebased => {
            format!("{name} ({guest}) as it was before operation {made_by} put it on a newer image{since}")
        }
        Origin::Demoted => {
            format!("{name} ({guest}) as it was before operation {made_by} put a copy in its place{since}")
        }
    }
}

/// A swap of it with its guest, or its end, open or parked: until that has ended, nothing here says which is which.
fn swapped(inputs: &Inputs<'_>, record: &RestoredCopyRecord) -> bool {
    let is = |kind, guest| {
        let exchanges = matches!(
            kind,
            OperationKind::SwapGuest | OperationKind::RebaseGuest | OperationKind::DiscardCopy
        );
        exchanges && guest == record.guest
    };
    let records = inputs.records;
    records.open.iter().any(|open| is(open.kind, open.guest))
        || records.parked.iter().any(|parked| is(parked.kind, parked.guest))
}

fn judge(inputs: &Inputs<'_>, record: &RestoredCopyRecord, seen: &ObservedGuest) -> Judged {
    let vmid = record.vmid;
    let CopyStage::Made { volumes } = &record.stage else { return making(inputs, record) };
    if swapped(inputs, record) {
        return Judged::new(GuestStatus::RestoredCopy);
    }
    let facts = match &seen.detail {
        Detail::Known(facts) => facts,
        Detail::Unknown(why) => {
            let text = format!("{}: its configuration cannot be read ({why})", what(record));
            return Judged::new(GuestStatus::RestoredCopy).with(ErrorCode::Unavailable, text);
        }
    };
    let ours = Mark::Copy { of: record.guest, by: record.made_by };
    let missing = volumes.difference(&facts.volumes).next();
    if facts.mark != ours || missing.is_some() {
        let text = format!(
            "guest {vmid} has the number of {}, but not its mark and all its volumes: it is not touched",
            what(record)
        );
        return Judged::new(GuestStatus::Foreign).with(ErrorCode::ForeignGuest, text);
    }
    conditions(Judged::new(GuestStatus::RestoredCopy), record, seen, facts)
}

fn making(inputs: &Inputs<'_>, record: &RestoredCopyRecord) -> Judged {
    match inputs.records.parked.iter().find(|parked| parked.id == record.made_by) {
        Some(parked) => {
            let text = format!("{}: its making was parked: {}", what(record), parked.message);
            Judged::new(GuestStatus::Parked).with(ErrorCode::Parked, text)
        }
        None => Judged::new(GuestStatus::RestoredCopy),
    }
}

fn conditions(
    judged: Judged,
    record: &RestoredCopyRecord,
    seen: &ObservedGuest,
    facts: &GuestFacts,
) -> Judged {
    let vmid = record.vmid;
    let back = match &record.origin {
        Origin::Restored(_) | Origin::Demoted => format!(
            "to put it in the place of {}, an operator signs (`holdfast sign HOST {} --swap {vmid}`)",
            record.name, record.name
        ),
        Origin::Rebased => "its volumes and its token are not with it, so it cannot be put back".to_owned(),
    };
    let text = format!(
        "{}: it is left for a person, and never started by the agent; {back}; when nobody needs it any more, an operator \
         signs for its end (`holdfast sign HOST {} --discard {vmid}`)",
        what(record),
        record.name
    );
    let mut judged = judged.with(ErrorCode::Parked, text);
    if seen.run == Running::Running {
        let text =
            format!("copy {vmid} was started by hand: its disks hold the keys and tokens of its guest");
        judged = judged.with(ErrorCode::Unavailable, text);
    }
    if facts.protection == Protection::Off {
        let text =
            format!("copy {vmid} is not protected any more: `pct set {vmid} --protection 1` if it is needed");
        judged = judged.with(ErrorCode::Unavailable, text);
    }
    judged
}
