//! The protection status of each guest.
//!
//! What comes in: what is promised, what is owed of each tier, the backups and their restore tests by our records, and
//! which storages answer. What goes out: the posture with its reasons. A policy that asks for no restore test protects
//! no guest in that sense, and the report says so. A test that failed counts at once, however young the last proof is.
//! Unknown is a value: what is on a storage that does not answer is neither there nor gone.

use holdfast_protocol::protection::{Consistency, Posture, PostureReport, Tier};
use holdfast_protocol::report::Running;

use super::bulk::Bulk;
use super::protection_details;
use super::restore_test_status::Tested;
use super::schedule::facts::{Promised, ScheduleFacts};
use super::schedule::tier::{DueBackup, OutstandingPoint, State};
use super::silence::stamp;
use crate::gate::retention::taken_at;
use crate::model::observed::{BackupListing, Observed};
use crate::model::records::BackupRecord;

/// What is to be said of one tier.
struct TierSummary {
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
    tiers: &[(Promised<'_>, OutstandingPoint)],
    known: &ScheduleFacts<'_>,
    observed: &Observed,
    bulk: Bulk,
) -> PostureReport {
    let backups: Vec<_> = tiers.iter().filter(|(promised, _)| promised.tier != Tier::Snapshot).collect();
    // A return that takes longer is still one.
    let slower = backups.iter().filter_map(|(promised, _)| Tested::of(promised, known).slower());
    let silent = backups.iter().filter_map(|(promised, _)| without_guest_agent(promised, known));
    let demoted = bulk.decided.into_iter().chain(silent).chain(slower).chain(snapshots(known));
    if backups.is_empty() {
        let why = "its policy has no tier that leaves the pool: a snapshot is gone with it";
        let why = std::iter::once(why.to_owned()).chain(demoted).collect();
        return PostureReport { is: Posture::Unprotected, why };
    }
    let mut said: Vec<TierSummary> = backups
        .iter()
        .flat_map(|(promised, outstanding)| tier(promised, outstanding, known, observed))
        .collect();
    let stands = said.iter().any(|said| said.is >= Posture::Attention);
    let dark = said.iter().any(|said| said.is == Posture::Unknown);
    // With one good tier the others need attention; they leave no guest without a backup.
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
        said.push(TierSummary { is: Posture::Attention, why: why.to_owned() });
    }
    if stands {
        said.extend(bulk.missing.into_iter().map(|why| TierSummary { is: Posture::Attention, why }));
    }
    said.sort_by_key(|said| said.is);
    let is = said.first().map_or(Posture::Unknown, |said| said.is);
    PostureReport { is, why: said.into_iter().map(|said| said.why).chain(demoted).collect() }
}

/// What a silent guest agent means for the next backup of the tier.
fn without_guest_agent(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<String> {
    let since = known.silent_since.filter(|_| promised.consistency == Consistency::Application)?;
    let (tier, since) = (promised.tier, stamp(since));
    Some(format!(
        "its next {tier} backup will be crash-consistent: its guest agent has been silent since {since} and cannot stop \
         programs for it"
    ))
}

/// What its schedule took in the same pool: reported, and never counted.
fn snapshots(known: &ScheduleFacts<'_>) -> Option<String> {
    let scheduled = || known.snapshots.iter().filter(|one| one.point.is_some());
    let newest = scheduled().max_by_key(|one| one.point)?;
    let count = scheduled().count();
    Some(format!("snapshots in its own pool, which are no backups: {count}, the newest is {}", newest.name))
}

/// What is to be said of one tier: all that it lacks, the weightiest first, or what protects the guest.
fn tier(
    promised: &Promised<'_>,
    outstanding: &OutstandingPoint,
    known: &ScheduleFacts<'_>,
    observed: &Observed,
) -> Vec<TierSummary> {
    let tier = promised.tier;
    let said = |is, why| TierSummary { is, why };
    let Some(newest) = known.good(promised).max_by_key(|backup| taken_at(backup)) else {
        let settled =
            outstanding.last.is_none_or(|due| matches!(due.state, State::Settled | State::Later(_)));
        let first = outstanding
            .last
            .filter(|due| matches!(due.state, State::Later(_)))
            .map(|due| due.since)
            .or(outstanding.next);
        let why = match first.filter(|_| settled) {
            Some(first) => format!("its first {tier} backup is due at {first}"),
            None => format!("there is no {tier} backup of it"),
        };
        return vec![said(Posture::Unprotected, why)];
    };
    let listing = observed.listings.get(&newest.storage);
    if let Some(BackupListing::Dark(why)) = listing {
        let text =
            format!("storage {} does not answer, so its {tier} backups are unknown: {why}", newest.storage);
        return vec![said(Posture::Unknown, text)];
    }
    let at = taken_at(newest);
    let missed = outstanding.last.filter(DueBackup::is_missed).map(|due| due.point).or(outstanding.overdue);
    let missed =
        missed.map(|point| format!("its {tier} backup of {point} was missed, the newest is of {at:.0}"));
    let damaged = protection_details::is_damaged(newest, listing)
        .then(|| format!("the server found its newest {tier} backup of {at:.0} damaged"));
    let tested = promised.test_every.map(|every| (every, Tested::of(promised, known)));
    let unproved = tested.as_ref().and_then(|(every, tested)| tested.lacks(*every, known.time.at));
    let lacks = missed.into_iter().chain(damaged).chain(unproved).chain(only_crash(promised, known));
    let mut all: Vec<TierSummary> = lacks.map(|why| said(Posture::Attention, why)).collect();
    if all.is_empty() {
        let why = match tested.and_then(|(_, tested)| tested.proved) {
            Some(proved) => format!("a {tier} backup of it was restored and checked at {proved:.0}"),
            None => format!("its newest {tier} backup is of {at:.0}"),
        };
        all.push(said(Posture::Protected, why));
    }
    if let Some(first) = all.first_mut() {
        first.why.push_str(&protection_details::words(promised, newest, known, listing));
    }
    all
}

/// The newest backup that was taken for the tier holds programs that ran on, where they should have stood still. One
/// that somebody asked for without a window, and one that was taken before labels were, say nothing of that; no more
/// does the one whose operation is open, since its controller may yet say what makes it better. In a stopped guest
/// nothing ran.
pub(super) fn taken_of_running_programs<'a>(
    promised: &Promised<'_>,
    known: &ScheduleFacts<'a>,
) -> Option<(&'a BackupRecord, &'a str)> {
    let settled = |backup: &&BackupRecord| backup.tier.is_some() && known.open != Some(backup.taken_by);
    let for_tier = known.good(promised).filter(settled);
    let newest = for_tier.max_by_key(|backup| taken_at(backup))?;
    let label = newest.label.as_ref()?;
    match (promised.consistency, label.consistency) {
        (Consistency::Application, Consistency::Crash) if known.run != Running::Stopped => {
            Some((newest, label.why.as_str()))
        }
        (Consistency::Application, _) | (Consistency::Crash, _) => None,
    }
}

fn only_crash(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<String> {
    let (newest, why) = taken_of_running_programs(promised, known)?;
    let (tier, at) = (promised.tier, taken_at(newest));
    Some(format!("its newest {tier} backup of {at:.0} is only crash-consistent: {why}"))
}
