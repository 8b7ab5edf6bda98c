//! The task that keeps copies of wrapped keys.
//!
//! In: the codes, the state of storage, the hub's answers, time. Out: a record of each copy, and lines in the audit for
//! each copy that was lost or changed, written before it is repaired. Each copy is compared whole: when a code or a
//! disk is added, and every few hours. There is no journal: repairing a copy twice gives the same copy. Deliberately
//! absent: opening a wrapped key, and deciding which codes there are.

mod handed;
mod hub;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::json::chain;
use holdfast_protocol::storage::report::TargetStatus;
use holdfast_protocol::storage::{StorageRole, TargetState};
use holdfast_recovery::escrow::CodeNumber;
use jiff::Timestamp;
use tokio::sync::watch;

pub use hub::HubCopies;

use super::stop::Stop;
use crate::execute::escrow::{CopyOutcome, Order, perform};
use crate::execute::failpoint::{Failpoints, Moment, around};
use crate::model::escrow::{CodeRecord, CodeStatus, CopyPlace, CopyRecord};
use crate::model::storage::{StorageView, TargetRecord, place};
use crate::port::clock::Clock;
use crate::port::disk_marker::{Before, Expected};
use crate::port::store::{Store, StoreError};

/// How often copies are compared without a known event. Each comparison may wake a disk.
const COMPARE_EVERY: Duration = Duration::from_secs(6 * 3600);

/// The delay after a copy that could not be repaired.
const RETRY: Duration = Duration::from_secs(600);

pub struct EscrowTask {
    /// Codes, wrapped keys, and the state of the copies.
    pub store: Store,
    /// Which disks are mounted.
    pub storage: watch::Receiver<Arc<StorageView>>,
    /// How the hub is called.
    pub hub: HubCopies,
    pub clock: Arc<dyn Clock>,
    /// Where tests stop the world.
    pub failpoints: Arc<dyn Failpoints>,
}

/// What there is to compare; another one is compared at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sight {
    kept: BTreeSet<CodeNumber>,
    given_up: BTreeSet<CodeNumber>,
    disks: BTreeSet<TargetName>,
    /// When each was typed last: the hub hears of it.
    drilled: BTreeSet<(CodeNumber, Timestamp)>,
}

/// Whether all is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Right,
    Again,
}

impl EscrowTask {
    /// Compares until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        if let Err(error) = self.tag_guest().await {
            tracing::warn!(
                error = chain(&error),
                "codes of the lost box are not taken over: start the agent again"
            );
        }
        let mut changes = self.store.changes();
        let (mut last, mut due) = (Sight::default(), Duration::ZERO);
        loop {
            let _seen = changes.borrow_and_update().escrow;
            self.storage.mark_unchanged();
            match self.turn(&mut last, due).await {
                Ok(Some(round)) => {
                    let pause = match round {
                        Round::Right => COMPARE_EVERY,
                        Round::Again => RETRY,
                    };
                    due = self.clock.monotonic().saturating_add(pause);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(error = chain(&error), "copies of wrapped keys are compared again");
                    due = self.clock.monotonic().saturating_add(RETRY);
                }
            }
            let pause = due.saturating_sub(self.clock.monotonic());
            tokio::select! {
                biased;
                () = stop.requested() => return,
                changed = changes.changed() => if changed.is_err() { return },
                changed = self.storage.changed() => if changed.is_err() { return },
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// Compares all copies if something is new or the time has come; otherwise does nothing.
    async fn turn(&self, last: &mut Sight, due: Duration) -> Result<Option<Round>, StoreError> {
        let known = self.store.escrow().await?;
        let records = self.store.storage_targets().await?;
        let disks = self.disks(&records);
        let sight = Sight {
            kept: known
                .codes
                .iter()
                .filter(|code| code.kept_at().is_some())
                .map(CodeRecord::number)
                .collect(),
            given_up: known.codes.iter().filter(|code| is_retired(code)).map(CodeRecord::number).collect(),
            disks: disks.keys().cloned().collect(),
            drilled: known.codes.iter().filter_map(|code| Some((code.number(), code.drilled_at?))).collect(),
        };
        if sight == *last && self.clock.monotonic() < due || self.store.refusal().is_some() {
            return Ok(None);
        }
        let files = self.store.escrow_files().await?;
        let mut round = Round::Right;
        for (target, expected) in disks {
            let at_place = CopyPlace::Target(target.clone());
            let given_up = known.copies.iter().filter(|copy| copy.place == at_place);
            let given_up = given_up.map(|copy| copy.code).filter(|code| sight.given_up.contains(code));
            let order = Order {
                place: place(&target),
                expected,
                wanted: files.iter().map(|(code, kept)| (*code, kept.file.clone())).collect(),
                given_up: given_up.collect(),
            };
            let seen_before: BTreeSet<CodeNumber> =
                known.copies.iter().filter(|copy| copy.place == at_place).map(|copy| copy.code).collect();
            if self.compare(&at_place, order, &seen_before).await? == Round::Again {
                round = Round::Again;
            }
        }
        if self.at_hub(&known, &files, &sight.given_up).await? == Round::Again {
            round = Round::Again;
        }
        *last = sight;
        Ok(Some(round))
    }

    /// Disks for backups, mounted and proved to be what was approved.
    fn disks(&self, records: &[TargetRecord]) -> BTreeMap<TargetName, Expected> {
        let view = Arc::clone(&self.storage.borrow());
        let mounted = |name: &TargetName| {
            view.targets
                .iter()
                .any(|reported| reported.name == *name && reported.status == TargetStatus::Mounted)
        };
        let ours = records.iter().filter(|record| {
            record.status == TargetState::Attached
                && record.approval.role == StorageRole::LocalBackup
                && record.approval.backend.uuid().is_some()
                && mounted(&record.approval.name)
        });
        ours.map(|record| {
            let target = record.approval.name.clone();
            (target.clone(), Expected { target, mark: record.mark, before: Before::Marked })
        })
        .collect()
    }

    /// A copy that never existed before is made without an alarm. A copy that existed and is not as it should be is
    /// reported before and after it is repaired.
    async fn compare(
        &self,
        at_place: &CopyPlace,
        order: Order,
        seen_before: &BTreeSet<CodeNumber>,
    ) -> Result<Round, StoreError> {
        let codes: Vec<CodeNumber> = order.wanted.iter().map(|(code, _)| *code).collect();
        let looked =
            around(self.failpoints.as_ref(), ("copies_compared", Moment::Effect), perform(order)).await;
        let outcomes = looked.unwrap_or_else(|why| {
            codes.into_iter().map(|code| (code, CopyOutcome::Unread(why.clone()))).collect()
        });
        let mut round = Round::Right;
        for (code, outcome) in outcomes {
            let problem = match outcome {
                CopyOutcome::Same => None,
                CopyOutcome::Repaired(was, Ok(())) => {
                    if seen_before.contains(&code) {
                        self.note(code, at_place, Some(was.to_owned())).await?;
                    }
                    None
                }
                CopyOutcome::Repaired(was, Err(why)) => Some(format!("{was}, and {why}")),
                CopyOutcome::Unread(why) => Some(why),
                CopyOutcome::Gone(Ok(())) => {
                    self.forget(code, at_place).await?;
                    continue;
                }
                CopyOutcome::Gone(Err(why)) => Some(format!("it is given up and cannot be removed: {why}")),
            };
            if problem.is_some() {
                round = Round::Again;
            }
            self.note(code, at_place, problem).await?;
        }
        Ok(round)
    }

    async fn note(
        &self,
        code: CodeNumber,
        at_place: &CopyPlace,
        problem: Option<String>,
    ) -> Result<(), StoreError> {
        if let Some(problem) = &problem {
            tracing::warn!(%code, place = %at_place, problem, "a copy of a wrapped key is not as it should be");
        }
        let (place, seen_at) = (at_place.clone(), self.clock.now());
        let noted = self.store.note_copy(CopyRecord { code, place, problem, seen_at });
        around(self.failpoints.as_ref(), ("copy_noted", Moment::Outcome), noted).await
    }

    async fn forget(&self, code: CodeNumber, at_place: &CopyPlace) -> Result<(), StoreError> {
        let forgotten = self.store.forget_copy(code, at_place.clone(), self.clock.now());
        around(self.failpoints.as_ref(), ("copy_forgotten", Moment::Outcome), forgotten).await
    }
}

const fn is_retired(code: &CodeRecord) -> bool {
    matches!(code.status, CodeStatus::Retired { .. })
}
