//! Conclusions from a backup server's listing.
//!
//! What comes in: what the server lists, which of our guests have which number, and how often their policy wants their
//! backups verified. What goes out: a row of the report, and at most one guest. A backup that is not wholly encrypted
//! with the key that was signed for is named, whatever took it. A guest's newest backup is verified; with it the server
//! verifies the older ones that are due as well. Pure. Deliberately absent: what a verification means for the key. It
//! means nothing.

use std::collections::BTreeMap;

use holdfast_protocol::id::{KeyFingerprint, Vmid};
use holdfast_protocol::protection::Protection;
use holdfast_protocol::storage::report::OffSiteReport;
use holdfast_protocol::storage::{Approval, Backend};
use jiff::{SignedDuration, Timestamp};

use crate::model::offsite::{ServerListing, Snapshot};
use crate::model::records::Records;

/// Names of single backups that are reported; of more there is only a number.
const NAMED_MAX: usize = 8;

/// How often our guests' backups on a target should be verified, by their number; none where the policy does not ask
/// for it.
#[must_use]
pub fn intended(records: &Records, approval: &Approval) -> BTreeMap<Vmid, Option<u32>> {
    let days = |promise: &Protection| {
        let tier = promise
            .tiers
            .off_site
            .as_ref()
            .filter(|tier| tier.backup.target.as_str() == approval.name.as_str());
        tier.and_then(|tier| tier.verify_days).map(|days| days.get())
    };
    let of = |guest: &crate::model::records::GuestRecord| {
        let promise = records.protections.get(&guest.uid);
        Some((guest.place.vmid()?, promise.and_then(|promise| days(promise))))
    };
    records.guests.iter().filter_map(of).collect()
}

/// The key that a target's backups must be encrypted with.
#[must_use]
pub const fn key(approval: &Approval) -> Option<&KeyFingerprint> {
    match &approval.backend {
        Backend::Pbs { key, .. } => Some(key),
        _ => None,
    }
}

/// Each guest's newest, of those that are ours.
fn newest<'a>(looked: &'a ServerListing, ours: &BTreeMap<Vmid, Option<u32>>) -> BTreeMap<Vmid, &'a Snapshot> {
    let mut newest: BTreeMap<Vmid, &Snapshot> = BTreeMap::new();
    for snapshot in looked.snapshots.iter().filter(|snapshot| ours.contains_key(&snapshot.guest)) {
        let held = newest.entry(snapshot.guest).or_insert(snapshot);
        if held.at < snapshot.at {
            *held = snapshot;
        }
    }
    newest
}

/// What is reported of it.
#[must_use]
pub fn reported(
    looked: &ServerListing,
    key: &KeyFingerprint,
    ours: &BTreeMap<Vmid, Option<u32>>,
    asked_at: Timestamp,
) -> OffSiteReport {
    let own: Vec<&Snapshot> = looked.snapshots.iter().filter(|one| ours.contains_key(&one.guest)).collect();
    let named = |is: &dyn Fn(&Snapshot) -> bool| {
        let mut found = own.iter().filter(|one| is(one));
        let mut names: Vec<String> = found.by_ref().take(NAMED_MAX).map(ToString::to_string).collect();
        let more = found.count();
        names.extend((more > 0).then(|| format!("{more} more")));
        names
    };
    let ended: Option<Vec<Timestamp>> =
        newest(looked, ours).values().map(|one| one.verification.map(|said| said.at)).collect();
    OffSiteReport {
        asked_at,
        key: key.clone(),
        backups: u32::try_from(own.len()).unwrap_or(u32::MAX),
        unsealed: named(&|one| one.key.as_ref() != Some(key)),
        damaged: named(&|one| one.verification.is_some_and(|said| !said.well)),
        verified_at: ended.and_then(|all| all.into_iter().min()),
        pruned_by: looked.pruned_by,
        silent: None,
    }
}

/// The guest whose backups should be verified now: the longest overdue first, and by which interval.
#[must_use]
pub fn due(
    looked: &ServerListing,
    ours: &BTreeMap<Vmid, Option<u32>>,
    now: Timestamp,
) -> Option<(Vmid, u32)> {
    let overdue = newest(looked, ours).into_iter().filter_map(|(guest, snapshot)| {
        let days = ours.get(&guest).copied().flatten()?;
        let last = snapshot.verification.map_or(Timestamp::MIN, |said| said.at);
        // What says that it was later than now was written by another clock: it counts until that time is past.
        let within = SignedDuration::from_hours(i64::from(days) * 24);
        let overdue = last.checked_add(within).is_ok_and(|until| until <= now);
        overdue.then_some((last, guest, days))
    });
    overdue.min().map(|(_, guest, days)| (guest, days))
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::storage::report::PrunedBy;

    use super::*;
    use crate::model::offsite::Verification;

    fn key_of(byte: &str) -> KeyFingerprint {
        vec![byte; 32].join(":").parse().unwrap()
    }

    fn vmid(number: u32) -> Vmid {
        Vmid::try_from(number).unwrap()
    }

    fn at(day: i8) -> Timestamp {
        jiff::civil::date(2026, 11, day).at(3, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp()
    }

    fn snapshot(guest: u32, taken: i8, verified: Option<(i8, bool)>) -> Snapshot {
        let verification = verified.map(|(day, well)| Verification { well, at: at(day) });
        Snapshot {
            guest: vmid(guest),
            at: at(taken),
            key: Some(key_of("ab")),
            protected: false,
            verification,
        }
    }

    fn looked(snapshots: Vec<Snapshot>) -> ServerListing {
        ServerListing { pruned_by: PrunedBy::Server, snapshots, ended: None }
    }

    fn ours(all: &[(u32, Option<u32>)]) -> BTreeMap<Vmid, Option<u32>> {
        all.iter().map(|(number, days)| (vmid(*number), *days)).collect()
    }

    #[test]
    fn what_is_not_encrypted_with_the_key_is_named_and_strangers_are_not() {
        let mut odd =
            looked(vec![snapshot(300, 1, None), snapshot(300, 2, Some((3, true))), snapshot(999, 2, None)]);
        odd.snapshots[0].key = None;
        odd.snapshots[2].key = None;
        let reported = reported(&odd, &key_of("ab"), &ours(&[(300, None)]), at(4));
        assert_eq!(
            (reported.backups, reported.unsealed.as_slice()),
            (2, ["ct/300/2026-11-01T03:00:00Z".to_owned()].as_slice())
        );
        assert_eq!((reported.verified_at, reported.damaged.len()), (Some(at(3)), 0));
        let words = reported.lines();
        assert!(
            words[0].contains("ab:ab:ab:ab:ab:ab:ab:ab…") && words[0].contains("pruned by the server"),
            "{words:?}"
        );
        assert!(words[1].contains("NOT encrypted") && words[1].contains("ct/300/2026-11-01"), "{words:?}");
        let other = super::reported(&odd, &key_of("cd"), &ours(&[(300, None)]), at(4));
        assert_eq!(other.unsealed.len(), 2, "another key is as good as none");
    }

    #[test]
    fn the_word_about_verification_is_of_the_newest_of_every_guest() {
        let both = looked(vec![
            snapshot(300, 5, Some((6, true))),
            snapshot(301, 5, Some((7, false))),
            snapshot(301, 4, None),
        ]);
        let all = ours(&[(300, None), (301, None), (302, None)]);
        let said = reported(&both, &key_of("ab"), &all, at(8));
        assert_eq!((said.verified_at, said.damaged.len()), (Some(at(6)), 1));
        let mut newer = both;
        newer.snapshots.push(snapshot(300, 8, None));
        assert_eq!(
            reported(&newer, &key_of("ab"), &all, at(8)).verified_at,
            None,
            "the newest was never looked through"
        );
        assert_eq!(reported(&looked(Vec::new()), &key_of("ab"), &all, at(8)).verified_at, None);
    }

    #[test]
    fn the_longest_overdue_is_looked_through_by_its_own_interval() {
        let list =
            looked(vec![snapshot(300, 2, Some((3, true))), snapshot(301, 2, None), snapshot(302, 2, None)]);
        let goals = ours(&[(300, Some(7)), (301, Some(30)), (302, None)]);
        assert_eq!(due(&list, &goals, at(4)), Some((vmid(301), 30)), "never looked through");
        let list = looked(vec![snapshot(300, 2, Some((3, true))), snapshot(301, 2, Some((3, true)))]);
        assert_eq!(due(&list, &goals, at(9)), None);
        assert_eq!(due(&list, &goals, at(10)), Some((vmid(300), 7)));
        assert_eq!(due(&list, &ours(&[(300, None)]), at(28)), None, "nobody asks for it");
        // By a clock that was ahead: not again and again.
        let ahead = looked(vec![snapshot(300, 2, Some((29, true)))]);
        assert_eq!(due(&ahead, &goals, at(10)), None);
    }
}
