//! Fuzzed promises and retention.

use holdfast_protocol::protection::{
    BackupPolicy, DatedBackup, Fate, Proof, Protection, ProtectionReport, Retention, Zone, compare, prune,
};
use jiff::{SignedDuration, Timestamp};

use crate::round;

/// Longer than any promise.
const BYTES_MAX: usize = 64 * 1024;

/// One input: documents, a line each. The first two promises are held against each other.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let lines = || data.split(|byte| *byte == b'\n').take(4);
    for line in lines() {
        round::document::<BackupPolicy>(line, BYTES_MAX);
        round::document::<ProtectionReport>(line, BYTES_MAX);
    }
    let mut promises = lines().filter_map(|line| round::document::<Protection>(line, BYTES_MAX));
    let nothing = Protection::default();
    let in_force = promises.next().unwrap_or_default();
    let goal = promises.next().unwrap_or_default();
    for (one, other) in [(&in_force, &goal), (&goal, &in_force), (&nothing, &in_force), (&in_force, &nothing)]
    {
        rules(one, other);
    }
    for promise in [&in_force, &goal] {
        let tiers = &promise.tiers;
        let retentions = [
            tiers.snapshot.as_ref().map(|tier| tier.retention),
            tiers.local.as_ref().map(|tier| tier.retention),
            tiers.off_site.as_ref().map(|tier| tier.backup.retention),
        ];
        retentions.iter().flatten().for_each(|retention| pruned(data, retention));
    }
}

/// The rules of `docs/adr/0015`.
fn rules(in_force: &Protection, goal: &Protection) {
    let reported = compare(in_force, goal);
    let text = serde_json::to_string(&reported.next).expect("a promise can be written");
    let again: Protection = serde_json::from_str(&text).expect("what is in force can be read");
    assert_eq!(again, reported.next, "it reads back as another");
    assert!(reported.next.protects() || !in_force.protects(), "it protects no more");
    // No resulting promise is weaker than before, and repeating the request adds nothing.
    let once_more = compare(in_force, &reported.next);
    assert!(once_more.loosened.is_empty(), "weaker: {:?}", once_more.loosened);
    assert_eq!(once_more.next, reported.next);
    let repeated = compare(&reported.next, goal);
    assert!(repeated.raised.is_empty() && repeated.next == reported.next, "it grows: {:?}", repeated.raised);
    if reported.loosened.is_empty() {
        assert!(repeated.loosened.is_empty(), "held after all: {:?}", repeated.loosened);
    } else {
        // The loosening that was not applied is still reported.
        assert!(!repeated.loosened.is_empty());
    }
    if reported.raised.is_empty() {
        assert_eq!(&reported.next, in_force, "it changed, and nobody was told");
    }
    let same = compare(in_force, in_force);
    assert!(same.raised.is_empty() && same.loosened.is_empty() && same.next == *in_force);
    for change in reported.raised.iter().chain(&reported.loosened) {
        assert!(change.from != change.to && !change.to_string().is_empty());
    }
}

/// Backups at moments that the input sets.
fn pruned(data: &[u8], retention: &Retention) {
    let mut at = Timestamp::UNIX_EPOCH;
    let mut backups = Vec::new();
    for byte in data.iter().rev().take(48) {
        at += SignedDuration::from_hours(1 + i64::from(*byte) * i64::from(*byte) / 32);
        let proof = if byte % 16 == 1 { Proof::Proved } else { Proof::None };
        backups.push(DatedBackup { at, proof });
    }
    let zone = Zone::try_from("Europe/Berlin".to_owned()).expect("a zone");
    let fates = prune(&backups, retention, &zone);
    let kept = |place: usize| matches!(fates.get(place), Some(Fate::Kept(_)));
    assert_eq!(fates.len(), backups.len());
    if let Some(newest) = backups.len().checked_sub(1) {
        assert!(kept(newest), "the newest backup goes by {retention}");
    }
    if let Some(proved) = backups.iter().rposition(|taken| taken.proof == Proof::Proved) {
        assert!(kept(proved), "the newest proof goes by {retention}");
    }
    let by = |rule: &'static str| fates.iter().filter(|fate| **fate == Fate::Kept(rule)).count();
    match retention {
        Retention::KeepAll => assert!(!fates.contains(&Fate::Goes)),
        Retention::Keep(keep) => {
            for (rule, count) in keep.rules() {
                let most = count.map_or(0, |count| count.get());
                assert!(u64::try_from(by(rule)).expect("few") <= u64::from(most), "{rule} of {retention}");
            }
        }
    }
    // The order in which the backups are listed does not matter.
    backups.reverse();
    let mut turned = prune(&backups, retention, &zone);
    turned.reverse();
    assert_eq!(turned, fates, "by {retention}");
}
