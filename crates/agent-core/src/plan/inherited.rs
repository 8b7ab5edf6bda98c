//! The plan for guests of a replaced host.
//!
//! What comes in: what the hub handed over, and which guests a person says to leave away. What goes out: the records
//! that are written, or why none are. From then on they are lost guests (`lost`), the most important first, which is
//! the order of the document. A guest whose mark is found here after all must not be touched. Then the host is not as
//! lost as was signed, or somebody restored it by hand. Pure. Deliberately absent: their backups (`task/left`), and any
//! guess about a guest that the document does not name.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{Desired, DesiredGuest};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CustomerId, GoldenVersion, GuestName, GuestUid, Vmid};
use holdfast_protocol::report::{GuestReport, GuestStatus};
use jiff::SignedDuration;

use super::made::Made;
use super::{Action, Context, Inputs, Judged, missing_guest};
use crate::model::inherited::WayBack;
use crate::model::limits;
use crate::model::records::VolumeId;
use crate::operation::{Operation, Whence};

/// As many names as a sentence bears.
const NAMED_MAX: usize = 8;

/// One guest, as it is taken up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostGuest {
    pub uid: GuestUid,
    pub name: GuestName,
    /// Whose it is.
    pub customer: CustomerId,
    /// What it was made from.
    pub golden: GoldenVersion,
    /// Its VMID on the lost host, under which its newest backups lie.
    pub vmid: Vmid,
    /// VMIDs that it had there before, under which older backups of it lie.
    pub former: BTreeSet<Vmid>,
    /// Its volumes there.
    pub volumes: BTreeSet<VolumeId>,
}

/// Who is taken up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taking {
    /// These, in the order of the document.
    pub guests: Vec<LostGuest>,
    /// These stay away.
    pub away: Vec<GuestUid>,
}

/// Why no guest is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It is not known which guests were there.
    #[error(
        "the lost host never reported its guests to the hub, so nobody knows which would be made anew, empty: ask the hub's operator"
    )]
    NoList,
    /// Not one of them.
    #[error("no guest of the lost box is called {0}")]
    NoOne(String),
    /// They cannot come back by themselves.
    #[error(
        "these guests of the lost box have no place in the document, or had no number there: {0}; name each with --without, and \
         bring back by hand what is still wanted"
    )]
    Homeless(String),
}

/// Whether a reported guest was on the lost host as one of ours. One that the document named and that was never made is
/// made here as it would have been there.
#[must_use]
pub const fn was_there(guest: &GuestReport) -> bool {
    guest.uid.is_some() && !matches!(guest.status, GuestStatus::Absent | GuestStatus::RestoredCopy)
}

/// Decides who is taken up.
///
/// # Errors
/// [`NotTaken`].
pub fn taking(
    list: Option<&[GuestReport]>,
    document: Option<&Desired>,
    without: &[String],
) -> Result<Taking, NotTaken> {
    let list = list.ok_or(NotTaken::NoList)?.iter().filter(|guest| was_there(guest));
    let there: BTreeMap<GuestUid, &GuestReport> =
        list.filter_map(|guest| Some((guest.uid?, guest))).collect();
    if let Some(name) = without.iter().find(|name| !there.values().any(|guest| guest.name == **name)) {
        return Err(NotTaken::NoOne(name.clone()));
    }
    let (away, back): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(_, guest)| without.contains(&guest.name));
    let back: BTreeMap<GuestUid, &GuestReport> = back.into_iter().collect();
    let wanted = document.map(Desired::guests).unwrap_or_default();
    let guests: Vec<LostGuest> =
        wanted.iter().filter_map(|goal| lost_guest(goal, back.get(&goal.uid).copied()?)).collect();
    let homed: BTreeSet<GuestUid> = guests.iter().map(|guest| guest.uid).collect();
    let homeless = back.iter().filter(|(uid, _)| !homed.contains(uid));
    let homeless: Vec<&str> = homeless.map(|(_, guest)| guest.name.as_str()).collect();
    if homeless.is_empty() {
        Ok(Taking { guests, away: away.into_iter().map(|(uid, _)| uid).collect() })
    } else {
        Err(NotTaken::Homeless(named(&homeless)))
    }
}

fn lost_guest(goal: &DesiredGuest, was: &GuestReport) -> Option<LostGuest> {
    let vmid = was.vmid?;
    Some(LostGuest {
        uid: goal.uid,
        name: goal.name.clone(),
        customer: goal.customer.clone(),
        golden: goal.golden.clone(),
        vmid,
        former: was
            .former_vmids
            .iter()
            .copied()
            .filter(|former| *former != vmid)
            .take(limits::FORMER_VMIDS_MAX)
            .collect(),
        volumes: was.volumes.iter().map(VolumeId::new).collect(),
    })
}

fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// One that is away. A guest under its number here is never this one.
pub(super) fn judge(context: &Context<'_>, made: &Made<'_>) -> Judged {
    if let Some(vmid) = context.marked(made.record.uid) {
        let text = format!(
            "guest {vmid} says it is this one, which was handed over as lost: neither is touched; look which is right, then \
             `agentd enroll --take-up --without {}` and have an operator adopt the one that is here, or clear it",
            made.record.name
        );
        return Judged::new(GuestStatus::Foreign).with(ErrorCode::ForeignGuest, text);
    }
    let text = format!("it was on the lost box, under VMID {}, and is not back yet", made.vmid);
    missing_guest::judge(context, made, Judged::new(GuestStatus::Missing).with(ErrorCode::Restoring, text))
}

/// Who comes back first: in the order of the document, behind all that is done for guests that are here.
pub(super) fn in_order(inputs: &Inputs<'_>, actions: &mut [Action]) {
    if inputs.records.left.is_none() {
        return;
    }
    let places: BTreeMap<GuestUid, usize> =
        inputs.desired.iter().enumerate().map(|(place, guest)| (guest.uid, place)).collect();
    actions.sort_by_key(|action| match &action.operation {
        Operation::Provision(made) if made.lost().is_some_and(|lost| lost.whence == Whence::LostBox) => {
            places.get(&made.guest.uid).map_or(usize::MAX, |place| place.saturating_add(1))
        }
        // All others come before those.
        Operation::Provision(_)
        | Operation::AdoptGuest(_)
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
        | Operation::SwapGuest(_)
        | Operation::UpdateController(_) => 0,
    });
}

/// What is reported of the way back, as long as a guest is away.
#[must_use]
pub fn reported(way: &WayBack) -> Option<ErrorBody> {
    if way.away.is_empty() {
        return None;
    }
    let (back, all) = (way.returned.len(), way.returned.len().saturating_add(way.away.len()));
    let names: Vec<&str> = way.away.iter().map(|one| one.name.as_str()).collect();
    let ahead = way.remaining().map_or_else(
        || "how long it takes is known once the first is back".to_owned(),
        |ahead| format!("about {} more at the pace so far", words(ahead)),
    );
    let text = format!(
        "{back} of {all} guests of the lost box are back: {ahead}; away: {}; what holds one up stands with it; one that stays \
         away: `agentd enroll --take-up --without GUEST`",
        named(&names)
    );
    Some(ErrorBody::new(ErrorCode::Restoring, text))
}

fn words(ahead: SignedDuration) -> String {
    let minutes = ahead.as_secs().max(0).saturating_add(59) / 60;
    if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes.saturating_add(30) / 60) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::inherited::{Away, Return};

    fn uid(n: u8) -> GuestUid {
        GuestUid::new(uuid::Uuid::from_u128(u128::from(n)))
    }

    fn desired(names: &[u8]) -> Desired {
        let guest = |n: &u8| {
            json!({ "uid": uid(*n), "name": format!("web-{n}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
                "size": { "cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 1 },
                "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24") } })
        };
        let guests: Vec<_> = names.iter().map(guest).collect();
        let document = json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": guests });
        Desired::parse(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn former_vmids_are_taken_up_and_no_more_than_an_agent_reports() {
        let document = desired(&[1]);
        let mut was = report(1, "managed", Some(309));
        was.former_vmids =
            (300..400).rev().chain([309]).filter_map(|vmid| Vmid::try_from(vmid).ok()).collect();
        let taken = taking(Some(&[was]), Some(&document), &[]).unwrap();
        let former: Vec<u32> = taken.guests[0].former.iter().map(|vmid| vmid.number()).collect();
        assert_eq!(former, (392..400).collect::<Vec<_>>());
    }

    fn report(n: u8, status: &str, vmid: Option<u32>) -> GuestReport {
        let mut report = json!({ "uid": uid(n), "name": format!("web-{n}"), "status": status, "run": "running",
            "volumes": [format!("tank:vm-{n}-disk-0")] });
        if let Some(vmid) = vmid {
            report["vmid"] = vmid.into();
        }
        serde_json::from_value(report).unwrap()
    }

    fn numbers(taking: &Taking) -> Vec<u32> {
        taking.guests.iter().map(|guest| guest.vmid.number()).collect()
    }

    #[test]
    fn who_was_there_is_taken_up_in_the_order_of_the_document() {
        let document = desired(&[3, 1, 2]);
        let list = [
            report(1, "managed", Some(301)),
            report(2, "absent", None),
            report(3, "broken", Some(303)),
            report(1, "restored_copy", Some(309)),
        ];
        let taken = taking(Some(&list), Some(&document), &[]).unwrap();
        assert_eq!((numbers(&taken), taken.away.len()), (vec![303, 301], 0), "{taken:?}");
        let taken = taking(Some(&list), Some(&document), &["web-3".to_owned()]).unwrap();
        assert_eq!((numbers(&taken), taken.away), (vec![301], vec![uid(3)]));
        assert_eq!(
            taking(Some(&list), Some(&document), &["web-9".to_owned()]),
            Err(NotTaken::NoOne("web-9".to_owned()))
        );
    }

    #[test]
    fn no_one_is_passed_over_in_silence() {
        let document = desired(&[1]);
        let homeless = |list: &[GuestReport], document| match taking(Some(list), document, &[]) {
            Err(NotTaken::Homeless(names)) => names,
            other => panic!("{other:?}"),
        };
        let unwanted = [report(1, "managed", Some(301)), report(2, "unmanaged", Some(302))];
        assert_eq!(homeless(&unwanted, Some(&document)), "web-2");
        assert_eq!(homeless(&unwanted, None), "web-1, web-2");
        assert_eq!(homeless(&[report(1, "parked", None)], Some(&document)), "web-1");
        assert_eq!(taking(None, Some(&document), &[]), Err(NotTaken::NoList));
        assert_eq!(taking(Some(&[]), None, &[]), Ok(Taking::default()));
    }

    #[test]
    fn what_is_reported_of_the_way_back() {
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        let away = vec![Away { name: "web-2".to_owned(), bytes: Some(3_000) }];
        let mut way = WayBack { returned: Vec::new(), away };
        let text = reported(&way).unwrap().message;
        assert!(text.starts_with("0 of 1 guests of the lost box are back: how long"), "{text}");
        way.returned.push(Return { began_at: at(0), ended_at: at(600), bytes: 1_000 });
        let text = reported(&way).unwrap().message;
        assert!(
            text.contains("1 of 2") && text.contains("about 30 min more") && text.contains("away: web-2"),
            "{text}"
        );
        way.away.clear();
        assert_eq!(reported(&way), None);
    }
}
