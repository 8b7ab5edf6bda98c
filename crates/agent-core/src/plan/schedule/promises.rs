//! Facts of each promise, worked out once for each plan.
//!
//! In: the promises in force, and the time. Out: the tiers of a promise with their points around now, and what their
//! targets say. Guests that share a promise share all of it, and promises that share a calendar share its points: a
//! calendar is walked once for each plan, however many guests go by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::desired::{BulkBackup, VolumeKind};
use holdfast_protocol::protection::{Protection, Schedule};
use holdfast_protocol::report::Condition;
use jiff::Timestamp;

use super::facts::{Promised, promised};
use super::points::Around;
use super::space::{self, Room};
use super::target;
use crate::plan::Inputs;

/// The promises of one plan.
pub(super) struct Promises<'a> {
    inputs: &'a Inputs<'a>,
    /// By where the promise is in memory.
    promises: BTreeMap<usize, PromiseNow<'a>>,
}

/// A promise now.
pub(super) struct PromiseNow<'a> {
    pub(super) promise: &'a Arc<Protection>,
    /// The fastest first.
    pub(super) tiers: Vec<TierNow<'a>>,
    pub(super) volumes: Volumes,
}

/// One tier of it.
pub(super) struct TierNow<'a> {
    pub(super) promised: Promised<'a>,
    pub(super) around: Around,
    /// What keeps its backups from being taken, whatever guest they are of.
    pub(super) open: Result<(), Condition>,
    /// What its target has left; none, where that is not known.
    pub(super) room: Option<Room>,
}

/// Whether a promise says which volumes its backups must hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Volumes {
    Named,
    NotNamed,
}

impl<'a> Promises<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>) -> Self {
        Self { inputs, promises: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, promise: &'a Arc<Protection>, points: &mut Points<'a>) -> &PromiseNow<'a> {
        let inputs = self.inputs;
        self.promises.entry(Arc::as_ptr(promise).addr()).or_insert_with(|| {
            let tier = |promised: Promised<'a>| TierNow {
                around: points.of(promised.schedule),
                open: target::judge(inputs, &promised),
                room: promised.target.and_then(|target| space::room(inputs.observed, target)),
                promised,
            };
            let tiers = promised(promise).into_iter().map(tier).collect();
            PromiseNow { promise, tiers, volumes: volumes(promise) }
        })
    }
}

fn volumes(promise: &Protection) -> Volumes {
    let named = promise.volumes.iter().any(|volume| match volume.kind {
        VolumeKind::Bulk(BulkBackup::BackupTo(_)) => true,
        VolumeKind::Hot | VolumeKind::Bulk(BulkBackup::None(_)) => false,
    });
    if named { Volumes::Named } else { Volumes::NotNamed }
}

/// The points of calendars around now, by their texts and their zone.
pub(super) struct Points<'a> {
    now: Timestamp,
    known: BTreeMap<(Vec<&'a str>, &'a str), Around>,
}

impl<'a> Points<'a> {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { now, known: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, schedule: &'a Schedule) -> Around {
        let texts = schedule.at.iter().map(|calendar| calendar.as_str()).collect();
        let calendar = (texts, schedule.zone.as_str());
        *self.known.entry(calendar).or_insert_with(|| Around::of(schedule, self.now))
    }
}
