//! How well each guest is protected: *protected* only by a backup that was restored and checked within the policy's time
//! (I10), and with each tier as it should be.
//!
//! What comes in: what is promised, what is owed of each tier, the backups by our records, and which storages answer. What
//! goes out: the word with its reasons. A policy that asks for no restore test protects nobody in that sense: it is told so.
//! Unknown is a value: what lies on a storage that does not answer is neither there nor gone.

use std::collections::BTreeMap;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::protection::{Posture, PostureReport, Tier};
use jiff::{SignedDuration, Timestamp};

use super::aside;
use super::bulk::Bulk;
use super::schedule::tier::{Owed, State};
use super::schedule::{Known, Promised};
use crate::gate::retention::taken_at;
use crate::model::observed::{Observed, Shelf};
use crate::model::record::BackupRecord;

/// When backups were last proved, by the operations that took them.
type Proofs = BTreeMap<OperationId, Timestamp>;

/// What is to be said of one tier.
struct Said {
    is: Posture,
    why: String,
}

/// Of a guest that is in no policy.
#[must_use]
pub fn unpromised() -> PostureReport {
    PostureReport::because(Posture::Unprotected, "it is in no backup policy: nothing of it is backed up")
}

/// Of a guest that is promised something.
#[must_use]
pub fn judge(
    tiers: &[(Promised<'_>, Owed)],
    known: &Known<'_>,
    (observed, proofs): (&Observed, &Proofs),
    bulk: Bulk,
) -> PostureReport {
    let aside = bulk.decided.into_iter().chain(snapshots(known));
    let backups: Vec<_> = tiers.iter().filter(|(promised, _)| promised.tier != Tier::Snapshot).collect();
    if backups.is_empty() {
        let why = "its policy has no tier that leaves the pool: a snapshot is gone with it";
        let why = std::iter::once(why.to_owned()).chain(aside).collect();
        return PostureReport { is: Posture::Unprotected, why };
    }
    let mut said: Vec<Said> =
        backups.iter().map(|(promised, owed)| tier(promised, owed, known, (observed, proofs))).collect();
    let stands = said.iter().any(|said| said.is >= Posture::Attention);
    let dark = said.iter().any(|said| said.is == Posture::Unknown);
    // With one good tier the others ask for attention; they leave nobody without anything.
    if stands {
        for said in &mut said {
            said.is = said.is.max(Posture::Attention);
        }
    } else if dark {
        for said in &mut said {
            said.is = Posture::Unknown;
        }
    }
    let asked = backups.iter().any(|(promised, _)| promised.test_every.is_some());
    if stands && !asked {
        let why = "its policy asks for no restore test, so nobody knows whether its backups come back";
        said.push(Said { is: Posture::Attention, why: why.to_owned() });
    }
    if stands {
        said.extend(bulk.missing.into_iter().map(|why| Said { is: Posture::Attention, why }));
    }
    said.sort_by_key(|said| said.is);
    let is = said.first().map_or(Posture::Unknown, |said| said.is);
    PostureReport { is, why: said.into_iter().map(|said| said.why).chain(aside).collect() }
}

/// What its schedule took in the same pool: told, and never counted.
fn snapshots(known: &Known<'_>) -> Option<String> {
    let scheduled = || known.snapshots.iter().filter(|one| one.point.is_some());
    let newest = scheduled().max_by_key(|one| one.point)?;
    let count = scheduled().count();
    Some(format!("snapshots in its own pool, which are no backups: {count}, the newest is {}", newest.name))
}

fn tier(
    promised: &Promised<'_>,
    owed: &Owed,
    known: &Known<'_>,
    (observed, proofs): (&Observed, &Proofs),
) -> Said {
    let (tier, now) = (promised.tier, known.time.at);
    let said = |is, why| Said { is, why };
    let Some(newest) = known.good(promised).max_by_key(|backup| taken_at(backup)) else {
        let settled = owed.last.is_none_or(|due| matches!(due.state, State::Settled | State::Later(_)));
        let first =
            owed.last.filter(|due| matches!(due.state, State::Later(_))).map(|due| due.since).or(owed.next);
        return match first.filter(|_| settled) {
            Some(first) => said(Posture::Unprotected, format!("its first {tier} backup is due at {first}")),
            None => said(Posture::Unprotected, format!("there is no {tier} backup of it")),
        };
    };
    if let Some(Shelf::Dark(why)) = observed.shelves.get(&newest.storage) {
        let text =
            format!("storage {} does not answer, so its {tier} backups are unknown: {why}", newest.storage);
        return said(Posture::Unknown, text);
    }
    let told = aside::words(promised, newest, known, observed.shelves.get(&newest.storage));
    let said = |is, why: String| Said { is, why: format!("{why}{told}") };
    if let Some(due) = owed.last.filter(super::schedule::tier::Due::is_missed) {
        let why =
            format!("its {tier} backup of {} was missed, the newest is of {}", due.point, taken_at(newest));
        return said(Posture::Attention, why);
    }
    if aside::is_damaged(newest, observed.shelves.get(&newest.storage)) {
        let why = format!("the server found its newest {tier} backup of {} damaged", taken_at(newest));
        return said(Posture::Attention, why);
    }
    let Some(days) = promised.test_every else {
        return said(Posture::Protected, format!("its newest {tier} backup is of {}", taken_at(newest)));
    };
    let within = SignedDuration::from_hours(24 * i64::from(days.get()));
    let proved =
        |backup: &BackupRecord| proofs.get(&backup.taken_by).copied().filter(|at| *at <= known.latest());
    let last = known.good(promised).filter_map(proved).max();
    match last {
        Some(at) if now.duration_since(at) <= within => {
            said(Posture::Protected, format!("a {tier} backup of it was restored and checked at {at}"))
        }
        Some(at) => said(
            Posture::Attention,
            format!("no {tier} backup of it was restored and checked within {days}, the last at {at}"),
        ),
        None => said(Posture::Attention, format!("no {tier} backup of it was ever restored and checked")),
    }
}
