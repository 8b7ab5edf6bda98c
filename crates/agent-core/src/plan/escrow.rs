//! Recovery codes and keys: their faults and their end.
//!
//! What comes in: every code of this host, the state of the copies, which off-site targets are attached, the time. What
//! goes out: the code in use for a key, problems for a person, leave to give a code up, and leave to encrypt with
//! another key. The codes of a key stay in use until one is given up by a person; the newest is the one that is
//! drilled. Pure. Deliberately absent: opening anything.

mod faults;

use holdfast_protocol::escrow::by_hand::GuestNumbers;
use holdfast_protocol::id::{KeyFingerprint, Vmid};
use holdfast_recovery::escrow::CodeNumber;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::faults::{EscrowFault, faults, problems};
use crate::model::escrow::{CodeOrigin, CodeRecord};
use crate::model::records::{GuestRecord, Records};

/// A code that no operator has typed for this long may be lost without anybody knowing.
pub const DRILL_EVERY: SignedDuration = SignedDuration::from_hours(180 * 24);

/// How long an older code stays when a newer one is in use: the operator who holds the newer one has put it away by
/// then.
pub const RETIRE_AFTER: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Why a code is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// No code opens the key yet.
    First,
    /// Another code for the same key. Those before it go on opening it.
    Another,
}

/// Why a code may not be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRetired {
    /// It opens nothing.
    #[error("code {0} opens nothing: there is nothing to give up")]
    Nothing(CodeNumber),
    /// It is the newest.
    #[error("code {0} is the newest that opens its key: make another one first, with `agentd escrow rotate`")]
    Newest(CodeNumber),
    /// The newer one is too new.
    #[error(
        "code {newer}, which replaces it, is in use only since {since:.0}: an older one stays for 14 days"
    )]
    Held {
        /// Which replaces it.
        newer: CodeNumber,
        since: Timestamp,
    },
    /// No operator typed the newer one again.
    #[error(
        "code {0}, which replaces it, was never typed since it was put away: run `agentd escrow drill` first"
    )]
    Undrilled(CodeNumber),
}

/// Why backups stay with the key that they have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "recovery code {code} opens the key of its off-site backups, and none opens the new key {new}: attach the new target, run \
     `agentd escrow create` on this box, and sign then"
)]
pub struct NotReplaced {
    /// Which opens the key in use.
    pub code: CodeNumber,
    /// The key that no operator could open without this host.
    pub new: KeyFingerprint,
}

/// The code in use for a key: the newest that opens it.
#[must_use]
pub fn current<'a>(codes: &'a [CodeRecord], key: &KeyFingerprint) -> Option<&'a CodeRecord> {
    codes.iter().filter(|code| code.key() == key && code.kept_at().is_some()).max_by_key(|code| code.number())
}

/// Whether a code may be given up: a newer one opens the same key, since long enough, and was typed again from paper.
///
/// # Errors
/// [`NotRetired`].
pub fn may_retire(codes: &[CodeRecord], code: CodeNumber, now: Timestamp) -> Result<(), NotRetired> {
    let old = codes.iter().find(|known| known.number() == code && known.kept_at().is_some());
    let old = old.ok_or(NotRetired::Nothing(code))?;
    let newer = current(codes, old.key()).filter(|newer| newer.number() != code);
    let newer = newer.ok_or(NotRetired::Newest(code))?;
    let since = newer.kept_at().ok_or(NotRetired::Newest(code))?;
    if now.duration_since(since) < RETIRE_AFTER {
        return Err(NotRetired::Held { newer: newer.number(), since });
    }
    if newer.drilled_at.is_none_or(|drilled| drilled <= since) {
        return Err(NotRetired::Undrilled(newer.number()));
    }
    Ok(())
}

/// Whether backups may go over from one key to another: never from one that a code opens to one that none opens. So at each
/// moment of a rotation some code opens the key in use.
///
/// # Errors
/// [`NotReplaced`].
pub fn may_replace(
    codes: &[CodeRecord],
    old: &KeyFingerprint,
    new: &KeyFingerprint,
) -> Result<(), NotReplaced> {
    let proved = current(codes, new).filter(|code| !is_unproved(code));
    match (current(codes, old), proved) {
        (Some(opens), None) => Err(NotReplaced { code: opens.number(), new: new.clone() }),
        (Some(_) | None, Some(_)) | (None, None) => Ok(()),
    }
}

/// Whether only the hub says that a code opens its key.
#[must_use]
pub const fn is_unproved(code: &CodeRecord) -> bool {
    matches!(code.origin, CodeOrigin::HandedOver) && code.drilled_at.is_none()
}

/// When an operator was last known to have a code.
#[must_use]
pub fn proved_at(code: &CodeRecord) -> Option<Timestamp> {
    code.kept_at().max(code.drilled_at)
}

/// By when its words are to be typed again.
#[must_use]
pub fn drill_due(code: &CodeRecord) -> Option<Timestamp> {
    proved_at(code).and_then(|at| at.checked_add(DRILL_EVERY).ok())
}

/// Our guests with their numbers, for the sheet: those that are gone as well, whose backups may lie off-site still.
#[must_use]
pub fn guest_numbers(records: &Records) -> Vec<GuestNumbers> {
    let of = |guest: &GuestRecord| {
        let now = guest.place.vmid();
        let vmids: Vec<Vmid> = now.into_iter().chain(records.former_vmids(guest.uid, now)).collect();
        (!vmids.is_empty()).then(|| GuestNumbers { name: guest.name.clone(), vmids })
    };
    records.guests.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::records::Place;
    use crate::plan::tests::{op, uid, vmid, world};

    /// Older backups of a guest lie under the numbers that it had: sheet, page and hand-over name them.
    #[test]
    fn every_number_that_a_guest_had_is_named() {
        let mut world = world(2);
        world.records.used_vmids =
            vec![(vmid(300), uid(1)), (vmid(301), uid(2)), (vmid(302), uid(1)), (vmid(303), uid(9))];
        let numbers = |records: &Records| -> Vec<(String, Vec<u32>)> {
            let own = guest_numbers(records).into_iter();
            own.map(|guest| (guest.name.to_string(), guest.vmids.iter().map(|vmid| vmid.number()).collect()))
                .collect()
        };
        let web = |n: u32, vmids: &[u32]| (format!("web-{n}"), vmids.to_vec());
        assert_eq!(numbers(&world.records), [web(1, &[300, 302]), web(2, &[301])]);
        let reports = world.reports();
        let former: Vec<(Option<Vmid>, &[Vmid])> =
            reports.iter().map(|guest| (guest.vmid, guest.former_vmids.as_slice())).collect();
        assert_eq!(former, [(Some(vmid(300)), &[vmid(302)][..]), (Some(vmid(301)), &[][..])]);
        // Where its backups lie comes before a copy's VMID.
        let mut backup = crate::plan::tests::remains("off1:backup/ct/298/a").remains.remove(0).backup;
        backup.vmid = vmid(298);
        world.records.used_vmids.insert(0, (vmid(298), uid(1)));
        world.records.backups = std::sync::Arc::new(vec![backup]);
        assert_eq!(world.reports()[0].former_vmids, [vmid(298), vmid(302)]);
        // One that is gone has backups off-site still.
        world.records.guests[1].place = Place::Gone { by: op(7) };
        assert_eq!(numbers(&world.records), [web(1, &[300, 302, 298]), web(2, &[301])]);
    }
}
