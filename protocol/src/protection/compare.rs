//! A comparison of two promises, facet by facet.
//!
//! The rules of `docs/adr/0015`. Each facet is judged by itself: one that is provably no weaker is accepted, any other
//! stays as it is in force and is named. So a request that raises one thing and lowers another raises the one at once.
//! A volume that a request does not name keeps its promise. Deliberately absent: who may weaken a promise, and how that
//! is requested.

mod coverage;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
use super::guest::{KEPT_MAX, KeptVolume, Protection, kind_words};
use super::policy::{BackupTier, OffSiteTier, Schedule, SnapshotTier, Tier, Tiers};
use super::retention::Retention;
use super::zone::Zone;
use crate::desired::{BulkBackup, VolumeKind};
use crate::id::VolumeName;
use crate::size::TestDays;

/// Of what a facet is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A tier.
    Tier(Tier),
    /// A volume.
    Volume(VolumeName),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tier(tier) => write!(f, "{tier}"),
            Self::Volume(name) => write!(f, "volume {name}"),
        }
    }
}

/// What of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// Whether it is there at all.
    Whole,
    /// When backups are due.
    Schedule,
    /// How long they are put off.
    Jitter,
    /// How late they may begin.
    Window,
    /// How many are kept.
    Retention,
    /// Where they go.
    Target,
    /// With which key.
    Key,
    /// What they hold.
    Consistency,
    /// How often one is restored for a test.
    RestoreTest,
    /// How often the server verifies one.
    Verify,
    /// Whether the volume is backed up, and where to.
    Volume,
}

impl fmt::Display for Facet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Facet {
    const fn words(self) -> &'static str {
        match self {
            Self::Whole => "tier",
            Self::Schedule => "schedule",
            Self::Jitter => "jitter",
            Self::Window => "window",
            Self::Retention => "retention",
            Self::Target => "target",
            Self::Key => "key",
            Self::Consistency => "consistency",
            Self::RestoreTest => "restore test",
            Self::Verify => "verification",
            Self::Volume => "backup",
        }
    }
}

/// One facet that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of what.
    pub part: Part,
    /// What of it.
    pub facet: Facet,
    /// The value in force, in words.
    pub from: String,
    /// The requested value, in words.
    pub to: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: from {} to {}", self.part, self.facet.words(), self.from, self.to)
    }
}

/// A facet that would be weaker, or of which that is unknown.
pub type Loosening = Change;

/// The effect of a request on what is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// What may be in force from now on: never weaker than before.
    pub next: Protection,
    /// What the request raises.
    pub raised: Vec<Change>,
    /// What stays, although the request is another.
    pub loosened: Vec<Loosening>,
}

/// Compares a request with what is in force.
#[must_use]
pub fn compare(in_force: &Protection, requested: &Protection) -> Comparison {
    let mut judge = Judge::default();
    let (old, new) = (&in_force.tiers, &requested.tiers);
    let snapshot = judge.tier(Tier::Snapshot, old.snapshot.as_ref(), new.snapshot.as_ref(), Judge::snapshot);
    let local = judge.tier(Tier::Local, old.local.as_ref(), new.local.as_ref(), Judge::backup);
    let off_site = judge.tier(Tier::OffSite, old.off_site.as_ref(), new.off_site.as_ref(), Judge::off_site);
    let volumes = judge.volumes(&in_force.volumes, &requested.volumes);
    let next = Protection { tiers: Tiers { snapshot, local, off_site }, volumes };
    Comparison { next, raised: judge.raised, loosened: judge.loosened }
}

#[derive(Default)]
struct Judge {
    raised: Vec<Change>,
    loosened: Vec<Change>,
}

/// Whether the new one is provably no weaker than the old one.
type NoWeaker<T> = fn(&T, &T) -> bool;

impl Judge {
    fn tier<T: Clone>(
        &mut self,
        tier: Tier,
        old: Option<&T>,
        new: Option<&T>,
        merge: fn(&mut Self, Tier, &T, &T) -> T,
    ) -> Option<T> {
        let change = |from: &str, to: &str| Change {
            part: Part::Tier(tier),
            facet: Facet::Whole,
            from: from.to_owned(),
            to: to.to_owned(),
        };
        match (old, new) {
            (None, None) => None,
            (None, Some(new)) => {
                self.raised.push(change("off", "on"));
                Some(new.clone())
            }
            (Some(old), None) => {
                self.loosened.push(change("on", "off"));
                Some(old.clone())
            }
            (Some(old), Some(new)) => Some(merge(self, tier, old, new)),
        }
    }

    fn snapshot(&mut self, tier: Tier, old: &SnapshotTier, new: &SnapshotTier) -> SnapshotTier {
        SnapshotTier {
            schedule: self.schedule(tier, &old.schedule, &new.schedule),
            retention: self.retention(tier, old.retention, new.retention),
        }
    }

    fn off_site(&mut self, tier: Tier, old: &OffSiteTier, new: &OffSiteTier) -> OffSiteTier {
        OffSiteTier {
            key: self.weigh(tier, Facet::Key, (&old.key, &new.key), |_, _| false, ToString::to_string),
            verify_days: self.weigh(
                tier,
                Facet::Verify,
                (&old.verify_days, &new.verify_days),
                as_often,
                how_often,
            ),
            backup: self.backup(tier, &old.backup, &new.backup),
        }
    }

    fn backup(&mut self, tier: Tier, old: &BackupTier, new: &BackupTier) -> BackupTier {
        let tests = (&old.restore_test_days, &new.restore_test_days);
        BackupTier {
            target: self.weigh(
                tier,
                Facet::Target,
                (&old.target, &new.target),
                |_, _| false,
                ToString::to_string,
            ),
            schedule: self.schedule(tier, &old.schedule, &new.schedule),
            retention: self.retention(tier, old.retention, new.retention),
            consistency: self.weigh(
                tier,
                Facet::Consistency,
                (&old.consistency, &new.consistency),
                |old, new| new >= old,
                |consistency| consistency.as_str().to_owned(),
            ),
            restore_test_days: self.weigh(tier, Facet::RestoreTest, tests, as_often, how_often),
        }
    }

    fn schedule(&mut self, tier: Tier, old: &Schedule, new: &Schedule) -> Schedule {
        let points = |schedule: &Schedule| (schedule.at.clone(), schedule.zone.clone());
        let (at, zone) =
            self.weigh(tier, Facet::Schedule, (&points(old), &points(new)), as_dense, |(at, zone)| {
                let at: Vec<&str> = at.iter().map(Calendar::as_str).collect();
                format!("{} ({zone})", at.join("; "))
            });
        let jitter = (&old.jitter_min, &new.jitter_min);
        let window = (&old.window_min, &new.window_min);
        // More points make up for more jitter and shorter windows, where they are taken.
        if as_dense(&points(old), &points(new)) && coverage::covers(old, new) {
            return Schedule {
                at,
                zone,
                jitter_min: self.weigh(tier, Facet::Jitter, jitter, |_, _| true, ToString::to_string),
                window_min: self.weigh(tier, Facet::Window, window, |_, _| true, ToString::to_string),
            };
        }
        Schedule {
            at,
            zone,
            jitter_min: self.weigh(tier, Facet::Jitter, jitter, |old, new| new <= old, ToString::to_string),
            window_min: self.weigh(tier, Facet::Window, window, |old, new| new >= old, ToString::to_string),
        }
    }

    /// Raises the rules that the request raises, and keeps those that it lowers.
    fn retention(&mut self, tier: Tier, old: Retention, new: Retention) -> Retention {
        let both = old.join(&new);
        let change = |to: Retention| Change {
            part: Part::Tier(tier),
            facet: Facet::Retention,
            from: old.to_string(),
            to: to.to_string(),
        };
        if both != old {
            self.raised.push(change(both));
        }
        if both != new {
            self.loosened.push(change(new));
        }
        both
    }

    fn volumes(&mut self, old: &[KeptVolume], new: &[KeptVolume]) -> Vec<KeptVolume> {
        let mut next: Vec<KeptVolume> = Vec::with_capacity(old.len().max(new.len()));
        for volume in old {
            // One that the request does not name is still there: nothing follows from its absence.
            let wished = new.iter().find(|wished| wished.name == volume.name).unwrap_or(volume);
            let kind = self.weigh_part(
                Part::Volume(volume.name.clone()),
                Facet::Volume,
                (&volume.kind, &wished.kind),
                keeps_volume,
                kind_words,
            );
            next.push(KeptVolume { name: volume.name.clone(), kind });
        }
        for volume in new {
            if !old.iter().any(|known| known.name == volume.name) {
                let (part, to) = (Part::Volume(volume.name.clone()), kind_words(&volume.kind));
                let change = Change { part, facet: Facet::Volume, from: "nothing".to_owned(), to };
                // Past the bound no promise can be written down, so none is made.
                if next.len() < KEPT_MAX {
                    self.raised.push(change);
                    next.push(volume.clone());
                } else {
                    self.loosened.push(change);
                }
            }
        }
        next.sort_by(|one, other| one.name.cmp(&other.name));
        next
    }

    fn weigh<T: Clone + PartialEq>(
        &mut self,
        tier: Tier,
        facet: Facet,
        pair: (&T, &T),
        no_weaker: NoWeaker<T>,
        words: impl Fn(&T) -> String,
    ) -> T {
        self.weigh_part(Part::Tier(tier), facet, pair, no_weaker, words)
    }

    fn weigh_part<T: Clone + PartialEq>(
        &mut self,
        part: Part,
        facet: Facet,
        (old, new): (&T, &T),
        no_weaker: NoWeaker<T>,
        words: impl Fn(&T) -> String,
    ) -> T {
        if old == new {
            return old.clone();
        }
        let change = Change { part, facet, from: words(old), to: words(new) };
        if no_weaker(old, new) {
            self.raised.push(change);
            new.clone()
        } else {
            self.loosened.push(change);
            old.clone()
        }
    }
}

/// Whether every point of the old schedule is one of the new. A schedule that was only moved is not as dense: a hub
/// that moves it again and again, each time shortly before it comes, switches it off.
fn as_dense((old, old_zone): &(Vec<Calendar>, Zone), (new, new_zone): &(Vec<Calendar>, Zone)) -> bool {
    let held = |old: &Calendar| new.iter().any(|new| new.points().holds(old.points()));
    old_zone == new_zone && old.iter().all(held)
}

/// Whether something is done at least as often.
fn as_often(old: &Option<TestDays>, new: &Option<TestDays>) -> bool {
    match (old, new) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(old), Some(new)) => new <= old,
    }
}

fn how_often(days: &Option<TestDays>) -> String {
    days.map_or_else(|| "never".to_owned(), |days| format!("every {days}"))
}

/// Only what was not backed up at all is known to lose nothing.
fn keeps_volume(old: &VolumeKind, _: &VolumeKind) -> bool {
    matches!(old, VolumeKind::Bulk(BulkBackup::None(_)))
}

#[cfg(test)]
mod tests;
