//! The conditions of a report, with what an earlier report had.
//!
//! In: what the report is made from, and the conditions that were reported last, also before a restart. Out: the section. It is
//! none until the host was observed or is known not to be observable. They are written when one comes, goes or began earlier.

use holdfast_protocol::condition::{ConditionSet, ReportedCondition};
use holdfast_protocol::json::chain;
use jiff::Timestamp;

use crate::model::fill_history::FillHistory;
use crate::model::view::HostSnapshot;
use crate::plan::conditions::{Coverage, HostKnowledge, RecordsFault, derive, merge};
use crate::port::store::{Refusal, Store};

/// What the report remembers between two reports.
#[derive(Default)]
pub(super) struct ReportMemory {
    pub(super) conditions: ConditionMemory,
    pub(super) fill_history: FillHistory,
}

impl ReportMemory {
    /// Notes how full the storages are, where the host was observed just now.
    pub(super) fn note_levels(&mut self, view: &HostSnapshot, now: Timestamp) {
        if let Some(host) = view.host.as_ref().filter(|_| view.blocked.is_none()) {
            self.fill_history.note(&host.storages, now);
        }
    }
}

/// The conditions that were reported last.
#[derive(Default)]
pub(super) struct ConditionMemory {
    /// None until they were read.
    last: Option<Vec<ReportedCondition>>,
    /// Whether the store has them.
    stored: StoredCopy,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StoredCopy {
    /// As they are here.
    #[default]
    Same,
    /// Earlier ones.
    Older,
}

impl ConditionMemory {
    /// The section, by what is known now.
    pub(super) async fn section(&mut self, store: &Store, known: &HostKnowledge<'_>) -> Option<ConditionSet> {
        if known.view.seen_at.is_none() && known.view.unobserved_since.is_none() {
            return None;
        }
        let last = match self.last.take() {
            Some(last) => last,
            None => read(store).await,
        };
        let hardware = (known.hardware, known.wall);
        let coverage = Coverage::of(known.view, known.storage, hardware, known.levels, known.tunnels);
        let next = merge(&last, derive(known), &coverage, known.now);
        let set = ConditionSet::collect(next);
        let next = set.conditions().to_vec();
        if !are_same(&last, &next) {
            self.stored = StoredCopy::Older;
        }
        if self.stored == StoredCopy::Older && store.refusal().is_none() {
            self.stored = keep(store, next.clone()).await;
        }
        self.last = Some(next);
        Some(set)
    }

    /// Whether those of the last report could not be kept, although the disk takes writes: another program may have held
    /// the lock of the records.
    pub(super) fn wait_to_be_kept(&self, store: &Store) -> bool {
        self.stored == StoredCopy::Older && store.refusal().is_none()
    }
}

/// Whether the same conditions hold since the same times. Their sentences may differ.
fn are_same(last: &[ReportedCondition], next: &[ReportedCondition]) -> bool {
    let facts = |condition: &ReportedCondition| (condition.code, condition.subject.clone(), condition.since);
    last.iter().map(facts).eq(next.iter().map(facts))
}

/// Without them every condition begins now, which is better than no report.
async fn read(store: &Store) -> Vec<ReportedCondition> {
    store.reported_conditions().await.unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "the conditions of the last report cannot be read");
        Vec::new()
    })
}

async fn keep(store: &Store, conditions: Vec<ReportedCondition>) -> StoredCopy {
    match store.keep_reported_conditions(conditions).await {
        Ok(()) => StoredCopy::Same,
        Err(error) => {
            tracing::warn!(error = chain(&error), "the conditions of this report cannot be kept");
            StoredCopy::Older
        }
    }
}

/// What keeps the agent's records from being written, where that is a fault.
pub(super) fn records_fault(store: &Store) -> Option<RecordsFault> {
    let refusal = store.refusal()?;
    let text = refusal.to_string();
    match refusal {
        Refusal::Full { .. } => Some(RecordsFault::Full(text)),
        Refusal::Broken { .. } => Some(RecordsFault::Broken(text)),
        Refusal::Damaged { .. } => Some(RecordsFault::Damaged(text)),
        // Another host has its place: it stands still on purpose.
        Refusal::Replaced { .. } => None,
    }
}
