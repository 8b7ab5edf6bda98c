//! The guard of backup promises.
//!
//! What comes in: what is in force for a guest, what the document requests, where backups may go, and what documents
//! may request. What goes out: what is in force from now on, which of the request is held with the effect that it would
//! have, and what an operator would sign. The rules of `protocol::protection::compare` decide what is weaker and what
//! cannot be determined. The rules of [`beyond`] decide what is more than a document may request. Pure. Deliberately
//! absent: the signature, and putting anything into force.

pub mod beyond;

use holdfast_protocol::desired::{BulkBackup, VolumeKind};
use holdfast_protocol::id::{StorageName, VolumeName};
use holdfast_protocol::protection::compare::Change;
use holdfast_protocol::protection::{BackupTier, Facet, Protection, Tier, Tiers, compare};
use holdfast_trust::limits::BackupLimits;

use super::{Approved, Effect, Provenance, Verdict, gate};

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// What is in force from now on: as strong as before, or stronger.
    pub next: Protection,
    /// What of that is new.
    pub raised: Vec<Change>,
    /// What is held for a signature.
    pub loosened: Vec<Loosened>,
    /// What is held for a signature since it is more than a document may ask for.
    pub beyond: Vec<Loosened>,
    /// What would be in force if that were signed for.
    pub intended: Protection,
    /// Where backups would go without approval: held for root on this host.
    pub unapproved: Vec<Unapproved>,
}

/// One thing that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loosened {
    pub change: Change,
    /// Why it needs a signature.
    pub reason: &'static str,
}

/// A target that is not approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unapproved {
    /// Of what, in words.
    pub part: String,
    pub target: StorageName,
    /// Why it is held.
    pub reason: &'static str,
}

/// The effect of a change that weakens.
const fn effect(facet: Facet) -> Effect {
    match facet {
        Facet::Key => Effect::ReplaceKey,
        Facet::Whole
        | Facet::Schedule
        | Facet::Jitter
        | Facet::Window
        | Facet::Retention
        | Facet::Target
        | Facet::Consistency
        | Facet::RestoreTest
        | Facet::Verify
        | Facet::Volume => Effect::LowerProtection,
    }
}

/// Whether backups of a tier may go to a storage.
pub type MayGo<'a> = &'a dyn Fn(Tier, &StorageName) -> bool;

/// Judges a request about one guest. Backups may go where `may` says so, and to where they go already.
#[must_use]
pub fn guard(
    in_force: Option<&Protection>,
    goal: &Protection,
    (may, limits): (MayGo<'_>, &BackupLimits),
) -> Guarded {
    let nothing = Protection::default();
    let first = in_force.is_none();
    let in_force = in_force.unwrap_or(&nothing);
    let (mut goal, unapproved) = Targets { may, held: Vec::new() }.approved(in_force, goal);
    if first && !goal.protects() {
        goal = Protection::default();
    }
    let (within, more) = beyond::within(in_force, &goal, limits);
    let (mut asked, beyond) = match gate(&Effect::RaiseBeyond, Provenance::Document, &Approved::default()) {
        Verdict::NeedsSignature(reason) | Verdict::Forbidden(reason) => {
            (within, more.into_iter().map(|change| Loosened { change, reason }).collect())
        }
        // As below.
        Verdict::Free => (goal.clone(), Vec::new()),
    };
    if first && !asked.protects() {
        asked = Protection::default();
    }
    let found = compare(in_force, &asked);
    let mut next = found.next;
    let mut loosened = Vec::new();
    for change in found.loosened {
        match gate(&effect(change.facet), Provenance::Document, &Approved::default()) {
            Verdict::NeedsSignature(reason) | Verdict::Forbidden(reason) => {
                loosened.push(Loosened { change, reason });
            }
            // The table says that nothing here is free; were it to say so one day, the request counts.
            Verdict::Free => next = asked.clone(),
        }
    }
    Guarded { intended: whole(in_force, goal), next, raised: found.raised, loosened, beyond, unapproved }
}

/// A request with the promises of volumes that it does not name.
fn whole(in_force: &Protection, mut goal: Protection) -> Protection {
    let named = |name: &VolumeName| goal.volumes.iter().any(|volume| volume.name == *name);
    let kept: Vec<_> = in_force.volumes.iter().filter(|volume| !named(&volume.name)).cloned().collect();
    goal.volumes.extend(kept);
    goal.volumes.sort_by(|one, other| one.name.cmp(&other.name));
    goal
}

/// Looks after where backups go.
struct Targets<'a> {
    may: MayGo<'a>,
    held: Vec<Unapproved>,
}

impl Targets<'_> {
    /// The request without unapproved targets: what is in force keeps its own target, what is new is not begun.
    fn approved(mut self, in_force: &Protection, goal: &Protection) -> (Protection, Vec<Unapproved>) {
        let old = &in_force.tiers;
        let local = goal.tiers.local.as_ref();
        let local = local.and_then(|tier| self.tier(Tier::Local, old.local.as_ref(), tier));
        let off_site = goal.tiers.off_site.as_ref().and_then(|tier| {
            let old = old.off_site.as_ref().map(|old| &old.backup);
            let backup = self.tier(Tier::OffSite, old, &tier.backup)?;
            let mut tier = tier.clone();
            tier.backup = backup;
            Some(tier)
        });
        let tiers = Tiers { snapshot: goal.tiers.snapshot.clone(), local, off_site };
        let mut volumes = Vec::with_capacity(goal.volumes.len());
        for volume in &goal.volumes {
            let old = in_force.volumes.iter().find(|old| old.name == volume.name);
            let same = old.is_some_and(|old| old.kind == volume.kind);
            match &volume.kind {
                VolumeKind::Bulk(BulkBackup::BackupTo(target)) if !same && !self.is_any_tiers(target) => {
                    self.hold(format!("volume {}", volume.name), target);
                    volumes.extend(old.cloned());
                }
                VolumeKind::Hot | VolumeKind::Bulk(_) => volumes.push(volume.clone()),
            }
        }
        (Protection { tiers, volumes }, self.held)
    }

    /// A bulk volume is in the backups of the tier with its target, on the host or away from it.
    fn is_any_tiers(&self, target: &StorageName) -> bool {
        [Tier::Local, Tier::OffSite].into_iter().any(|tier| (self.may)(tier, target))
    }

    fn tier(&mut self, tier: Tier, old: Option<&BackupTier>, new: &BackupTier) -> Option<BackupTier> {
        let same = old.is_some_and(|old| old.target == new.target);
        if same || (self.may)(tier, &new.target) {
            return Some(new.clone());
        }
        self.hold(tier.to_string(), &new.target);
        old.map(|old| BackupTier { target: old.target.clone(), ..new.clone() })
    }

    fn hold(&mut self, part: String, target: &StorageName) {
        let verdict = gate(&Effect::AttachUnapprovedTarget, Provenance::Document, &Approved::default());
        if let Verdict::NeedsSignature(reason) | Verdict::Forbidden(reason) = verdict {
            self.held.push(Unapproved { part, target: target.clone(), reason });
        }
    }
}

#[cfg(test)]
mod tests;
