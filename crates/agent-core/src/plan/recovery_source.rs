//! The backup from which a missing guest is made again.
//!
//! What comes in: all of its own backups with what their last tests saw, what was promised it, which storages answer.
//! What goes out: one backup, and why others were passed over; or why none will do. A backup is never used that its
//! storage does not list, that failed its restore test, or that left the host without the promised key. Of what
//! remains, the newest local one comes first; the newest off-site one is taken in its place where a point of the local
//! tier's schedule lies between the two: then the local tier had failed by its own promise, and what was saved since is
//! on the server alone. A storage that does not answer has not survived as long as another one does. Deliberately
//! absent: a second choice after a failed restore, which could bring back an older state unasked.

use std::collections::BTreeMap;

use holdfast_protocol::id::StorageName;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::Protection;
use jiff::Timestamp;

use crate::model::limits;
use crate::model::observed::{BackupListing, Remains};
use crate::model::records::BackupRecord;

/// So many that were passed over are named.
const NAMED_MAX: usize = 3;

/// What a guest is made again from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    pub backup: &'a BackupRecord,
    /// Newer ones that will not do, with the reason of each.
    pub passed_over: Vec<String>,
}

/// Why nothing is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// It has no backup.
    NoBackup,
    /// None will do now; some lie on a storage that does not answer and may answer again.
    Dark(Vec<String>),
    /// None of them will do.
    Unfit(Vec<String>),
}

/// Why a backup will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    Missing,
    Failed,
    Unencrypted,
    OtherKey,
    Dark,
}

impl Unfit {
    const fn text(self) -> &'static str {
        match self {
            Self::Missing => "is not listed by its storage",
            Self::Failed => "failed its restore test",
            Self::Unencrypted => "left the box unencrypted",
            Self::OtherKey => "is encrypted with another key than was promised",
            Self::Dark => "lies on a storage that does not answer",
        }
    }
}

/// Chooses among the backups of one guest.
///
/// # Errors
/// Why nothing is restored.
pub fn choose<'a>(
    remains: &'a [Remains],
    promise: Option<&Protection>,
    listings: &BTreeMap<StorageName, BackupListing>,
) -> Result<Choice<'a>, Nothing> {
    if remains.is_empty() {
        return Err(Nothing::NoBackup);
    }
    let mut sound: Vec<&BackupRecord> = Vec::new();
    let mut unfit = Vec::new();
    for one in remains {
        match judge(one, promise, listings) {
            None => sound.push(&one.backup),
            Some(why) => unfit.push((&one.backup, why)),
        }
    }
    let newest = |off_site: bool| {
        let of_tier = sound.iter().copied().filter(|backup| is_off_site(backup) == off_site);
        of_tier.max_by_key(|backup| backup.taken_at)
    };
    let best = match (newest(false), newest(true)) {
        (Some(local), Some(off_site)) if overtaken(local, off_site.taken_at, promise) => Some(off_site),
        (local, off_site) => local.or(off_site),
    };
    unfit.sort_by_key(|(backup, _)| std::cmp::Reverse(backup.taken_at));
    let reported = |newer: &dyn Fn(&BackupRecord) -> bool| {
        let named = unfit.iter().filter(|(backup, _)| newer(backup)).take(NAMED_MAX);
        named.map(|(backup, why)| format!("{} {}", backup.archive, why.text())).collect()
    };
    match best {
        Some(backup) => {
            Ok(Choice { backup, passed_over: reported(&|other| other.taken_at > backup.taken_at) })
        }
        None if unfit.iter().any(|(_, why)| *why == Unfit::Dark) => Err(Nothing::Dark(reported(&|_| true))),
        None => Err(Nothing::Unfit(reported(&|_| true))),
    }
}

fn judge(
    one: &Remains,
    promise: Option<&Protection>,
    listings: &BTreeMap<StorageName, BackupListing>,
) -> Option<Unfit> {
    let backup = &one.backup;
    let promised = promise.and_then(|promise| promise.tiers.off_site.as_ref()).map(|tier| &tier.key);
    let sealed = backup.sealed.as_ref();
    match () {
        () if backup.missing_since.is_some() => Some(Unfit::Missing),
        () if one.tested == Some(TestVerdict::Failed) => Some(Unfit::Failed),
        () if is_off_site(backup) && sealed.is_none() => Some(Unfit::Unencrypted),
        () if is_off_site(backup) && promised.is_some() && sealed != promised => Some(Unfit::OtherKey),
        () if matches!(listings.get(&backup.storage), Some(BackupListing::Dark(_))) => Some(Unfit::Dark),
        () => None,
    }
}

/// By the form of its name, which only a backup server gives.
fn is_off_site(backup: &BackupRecord) -> bool {
    backup.archive.as_str().split_once(':').is_some_and(|(_, rest)| rest.starts_with("backup/ct/"))
}

/// Whether a backup of then is much newer: the local tier should have made another one by then.
fn overtaken(local: &BackupRecord, then: Timestamp, promise: Option<&Protection>) -> bool {
    let promised = promise.and_then(|promise| promise.tiers.local.as_ref());
    let due = match promised {
        Some(tier) => tier.schedule.next(local.taken_at),
        None => local.taken_at.checked_add(limits::LOCAL_FRESH).ok(),
    };
    due.is_some_and(|due| due <= then)
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::{KeyFingerprint, OperationId};
    use serde_json::json;

    use super::*;
    use crate::model::records::{BackupWhy, VolumeId};

    fn at(text: &str) -> Timestamp {
        format!("2026-06-{text}:00Z").parse().unwrap()
    }

    fn key(byte: &str) -> KeyFingerprint {
        vec![byte; 32].join(":").parse().unwrap()
    }

    /// A backup by its name: the part before the colon is its storage.
    fn taken(archive: &str, when: &str) -> Remains {
        let off_site = archive.contains("backup/ct/");
        let backup = BackupRecord {
            archive: VolumeId::new(archive),
            guest: "018f3c01-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            vmid: 300.try_into().unwrap(),
            storage: archive.split(':').next().unwrap().parse().unwrap(),
            bytes: 1,
            taken_at: at(when),
            taken_by: OperationId::new(uuid::Uuid::from_u128(1)),
            why: BackupWhy::Schedule,
            tier: None,
            point: None,
            sealed: off_site.then(|| key("aa")),
            missing_since: None,
            took: None,
            label: None,
            mounts: None,
            hardware: None,
            disks: None,
        };
        Remains { backup, tested: None }
    }

    const LOCAL: &str = "nas1:backup/vzdump-lxc-300-a.tar.zst";
    const OLDER: &str = "nas1:backup/vzdump-lxc-300-b.tar.zst";
    const AWAY: &str = "off1:backup/ct/300/a";

    /// Local each night at 02:30, off-site each morning at 04:00, with the key aa.
    fn promise() -> Protection {
        let backup = |target: &str, at: &str| {
            let schedule = json!({ "at": [at], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
            json!({ "target": target, "schedule": schedule, "retention": { "keep": { "last": 3 } }, "consistency": "crash" })
        };
        let off_site = json!({ "key": key("aa"), "backup": backup("off1", "04:00") });
        let tiers = json!({ "local": backup("nas1", "02:30"), "off_site": off_site });
        serde_json::from_value(json!({ "tiers": tiers, "volumes": [] })).unwrap()
    }

    type Change = fn(&mut Vec<Remains>);

    type Row =
        (&'static str, &'static [(&'static str, &'static str)], Change, Result<&'static str, &'static str>);

    /// What remains, by the local and off-site backups' times; what is changed of it; what is restored.
    #[test]
    fn the_fastest_tier_that_survived_unless_it_is_much_older() {
        let table: &[Row] = &[
            ("of one night", &[(AWAY, "10T04:10"), (LOCAL, "10T02:40")], |_| {}, Ok(LOCAL)),
            ("a night failed", &[(AWAY, "10T04:10"), (LOCAL, "09T02:40")], |_| {}, Ok(AWAY)),
            ("only away", &[(AWAY, "10T04:10")], |_| {}, Ok(AWAY)),
            ("the newest of a tier", &[(LOCAL, "10T02:40"), (OLDER, "09T02:40")], |_| {}, Ok(LOCAL)),
            ("in any order", &[(OLDER, "09T02:40"), (LOCAL, "10T02:40")], |_| {}, Ok(LOCAL)),
            (
                "missing",
                &[(LOCAL, "10T02:40"), (OLDER, "09T02:40")],
                |all| all[0].backup.missing_since = Some(at("10T05:00")),
                Ok(OLDER),
            ),
            (
                "failed its test",
                &[(AWAY, "10T04:10"), (LOCAL, "10T02:40")],
                |all| all[1].tested = Some(TestVerdict::Failed),
                Ok(AWAY),
            ),
            (
                "booted in its test",
                &[(AWAY, "10T04:10"), (LOCAL, "10T02:40")],
                |all| all[1].tested = Some(TestVerdict::BootedOnly),
                Ok(LOCAL),
            ),
            (
                "unencrypted away",
                &[(AWAY, "10T04:10"), (LOCAL, "08T02:40")],
                |all| all[0].backup.sealed = None,
                Ok(LOCAL),
            ),
            (
                "another key",
                &[(AWAY, "10T04:10")],
                |all| all[0].backup.sealed = Some(key("bb")),
                Err("another key"),
            ),
            (
                "nothing will do",
                &[(LOCAL, "10T02:40")],
                |all| all[0].tested = Some(TestVerdict::Failed),
                Err("failed its restore test"),
            ),
        ];
        let promise = promise();
        for (what, all, change, wanted) in table {
            let mut remains: Vec<Remains> = all.iter().map(|(name, when)| taken(name, when)).collect();
            change(&mut remains);
            let chosen = choose(&remains, Some(&promise), &BTreeMap::new());
            match (chosen, wanted) {
                (Ok(choice), Ok(wanted)) => assert_eq!(choice.backup.archive.as_str(), *wanted, "{what}"),
                (Err(Nothing::Unfit(why)), Err(wanted)) => {
                    assert!(why.iter().any(|why| why.contains(wanted)), "{what}: {why:?}");
                }
                (chosen, _) => panic!("{what}: {chosen:?}"),
            }
        }
        assert_eq!(choose(&[], Some(&promise), &BTreeMap::new()), Err(Nothing::NoBackup));
    }

    #[test]
    fn a_newer_one_that_will_not_do_is_named() {
        let mut remains = vec![taken(LOCAL, "10T02:40"), taken(OLDER, "09T02:40")];
        remains[0].tested = Some(TestVerdict::Failed);
        let choice = choose(&remains, None, &BTreeMap::new()).unwrap();
        assert_eq!(choice.passed_over, [format!("{LOCAL} failed its restore test")]);
    }

    #[test]
    fn what_does_not_answer_is_waited_for_only_when_nothing_else_does() {
        let dark = BTreeMap::from([("nas1".parse().unwrap(), BackupListing::Dark("timed out".to_owned()))]);
        let both = [taken(LOCAL, "10T02:40"), taken(AWAY, "09T04:10")];
        let choice = choose(&both, Some(&promise()), &dark).unwrap();
        assert_eq!(choice.backup.archive.as_str(), AWAY);
        assert_eq!(choice.passed_over, [format!("{LOCAL} lies on a storage that does not answer")]);
        let alone = [taken(LOCAL, "10T02:40")];
        assert!(matches!(choose(&alone, None, &dark), Err(Nothing::Dark(_))));
    }

    /// Without a promise of local backups a day decides.
    #[test]
    fn without_a_promise_a_day_is_much() {
        for (when, wanted) in [("10T02:00", LOCAL), ("10T02:41", AWAY)] {
            let remains = [taken(AWAY, when), taken(LOCAL, "09T02:40")];
            let choice = choose(&remains, None, &BTreeMap::new()).unwrap();
            assert_eq!(choice.backup.archive.as_str(), wanted, "{when}");
        }
    }
}
