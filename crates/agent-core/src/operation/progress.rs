//! The state of an operation, folded from its journal.
//!
//! What comes in: an operation and its entries, in order. What goes out: [`OperationState`], or the first entry that may not
//! be there. Replay and live writing both go through [`OperationState::apply`].

mod exchange;

use std::collections::BTreeSet;

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, OperationId, Vmid};
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::operation::{OperationStatus, OperationView, StepStatus, StepView};
use jiff::Timestamp;

use super::Operation;
use super::log::{AfterFailure, Entry, Event, Finding, IllegalEvent, PowerFound, Status, next};
use super::step::{Step, StepList};
use super::update_controller::Came;
use crate::model::parked::{ParkedEntry, Way};
use crate::model::records::VolumeId;

/// Why a journal cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// An entry is missing or twice.
    #[error("entry {found} follows entry {last}: an entry is missing or twice")]
    Gap {
        /// The last good one.
        last: u32,
        found: u32,
    },
    /// An entry that may not follow.
    #[error("entry {number} is not allowed here")]
    Illegal {
        number: u32,
        #[source]
        source: IllegalEvent,
    },
}

/// What was true when it was parked, for who reopens it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ParkedAt {
    status: Status,
    since: Timestamp,
    cause: Option<ErrorBody>,
}

/// One step's part of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StepRecord {
    tries: u32,
    intended_at: Option<Timestamp>,
    upid: Option<String>,
    posted_at: Option<Timestamp>,
    note: Option<String>,
    failed: Option<ErrorBody>,
    undone: bool,
    done_at: Option<Timestamp>,
}

/// How far an operation has come, and what it learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationState {
    pub id: OperationId,
    pub operation: Operation,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The id of the click that it serves, for records alone.
    pub correlation: Option<CorrelationId>,
    steps: StepList,
    status: Status,
    entries: u32,
    records: Vec<StepRecord>,
    facts: Vec<Finding>,
    cause: Option<ErrorBody>,
    remedy: Option<String>,
    ended_at: Option<Timestamp>,
    parked: Option<ParkedAt>,
}

impl OperationState {
    /// An operation that was just opened.
    #[must_use]
    pub fn new(id: OperationId, operation: Operation, opened_at: Timestamp) -> Self {
        let steps = StepList::of(operation.steps());
        Self::listed(id, operation, opened_at, steps)
    }

    /// An operation that was opened with these steps.
    #[must_use]
    pub fn listed(id: OperationId, operation: Operation, opened_at: Timestamp, steps: StepList) -> Self {
        let records = vec![StepRecord::default(); usize::from(steps.count())];
        Self {
            id,
            operation,
            opened_at,
            correlation: None,
            steps,
            status: Status::Queued,
            entries: 0,
            records,
            facts: Vec::new(),
            cause: None,
            remedy: None,
            ended_at: None,
            parked: None,
        }
    }

    /// Replays the journal of an operation that was just opened.
    ///
    /// # Errors
    /// At the first entry that may not be there.
    pub fn replay(opened: Self, entries: &[Entry]) -> Result<Self, ReplayError> {
        let mut progress = opened;
        for entry in entries {
            progress.apply(entry)?;
        }
        Ok(progress)
    }

    /// Takes one more entry.
    ///
    /// # Errors
    /// When it may not follow; nothing is changed then.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), ReplayError> {
        if entry.number != self.entries + 1 {
            return Err(ReplayError::Gap { last: self.entries, found: entry.number });
        }
        let status = next(self.status, &entry.event, self.steps.count())
            .map_err(|source| ReplayError::Illegal { number: entry.number, source })?;
        if let Event::Reopened { at, .. } = &entry.event
            && self.parked_at() != Some(*at)
        {
            let source = IllegalEvent { status: self.status, event: entry.event.name() };
            return Err(ReplayError::Illegal { number: entry.number, source });
        }
        self.learn(entry);
        self.status = status;
        self.entries = entry.number;
        self.ended_at = status.is_end().then_some(entry.at);
        Ok(())
    }

    fn learn(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Begun | Event::Finished | Event::TakenBack => {}
            Event::Intended { step } => {
                if let Some(record) = self.records.get_mut(usize::from(*step)) {
                    record.tries += 1;
                    record.intended_at = Some(entry.at);
                    record.upid = None;
                }
            }
            Event::UndoIntended { step } => {
                if let Some(record) = self.records.get_mut(usize::from(*step)) {
                    record.intended_at = Some(entry.at);
                    record.upid = None;
                }
            }
            Event::Posted { step, upid } => {
                if let Some(record) = self.records.get_mut(usize::from(*step)) {
                    record.upid = Some(upid.clone());
                    // A task that takes a step back is none that did it.
                    if record.done_at.is_none() {
                        record.posted_at = Some(entry.at);
                    }
                }
                // Known from here on, so that an undo can prove its right even when the restore was cut short.
                if self.step(*step) == Some(Step::Restore) && self.restored_by().is_none() {
                    self.facts.push(Finding::RestoredBy(upid.clone()));
                }
            }
            Event::Succeeded { step, facts, note } => {
                self.facts.extend(facts.iter().cloned());
                if let Some(record) = self.records.get_mut(usize::from(*step)) {
                    record.done_at = Some(entry.at);
                    record.failed = None;
                    record.note.clone_from(note);
                }
            }
            Event::Failed { step, problem, .. } => {
                if let Some(record) = self.records.get_mut(usize::from(*step)) {
                    record.failed = Some(problem.clone());
                }
            }
            Event::UndoBegun { problem } => self.cause = Some(problem.clone()),
            Event::UndoSucceeded { step, note, facts } => {
                self.learn_back(facts);
                if let Some(record) = self.records.get_mut(usize::from(*step)) {
                    record.undone = true;
                    record.note.clone_from(note);
                }
            }
            Event::Parked { problem, remedy } => {
                let cause = self.cause.replace(problem.clone());
                self.parked = Some(ParkedAt { status: self.status, since: entry.at, cause });
                self.remedy = Some(remedy.clone());
            }
            Event::Reopened { .. } => {
                self.cause = self.parked.take().and_then(|parked| parked.cause);
                self.remedy = None;
            }
            Event::Forgotten { .. } => {}
        }
    }

    /// How far it has come.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// How many entries it has.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    #[must_use]
    pub fn steps(&self) -> &[Step] {
        self.steps.steps()
    }

    /// The first of its steps that this program does not know, where there is one: a later program opened it.
    #[must_use]
    pub fn unknown_step(&self) -> Option<&str> {
        self.steps.unknown()
    }

    /// The step at a place.
    #[must_use]
    pub fn step(&self, place: u16) -> Option<Step> {
        self.steps().get(usize::from(place)).copied()
    }

    /// How often a step was tried, its running try included.
    #[must_use]
    pub fn tries(&self, place: u16) -> u32 {
        self.records.get(usize::from(place)).map_or(0, |record| record.tries)
    }

    /// The task of the running try.
    #[must_use]
    pub fn upid(&self, place: u16) -> Option<&str> {
        self.records.get(usize::from(place))?.upid.as_deref()
    }

    /// The task of the last try of a step of this kind.
    #[must_use]
    pub fn upid_of(&self, step: Step) -> Option<&str> {
        self.steps().iter().zip(&self.records).find(|(s, _)| **s == step)?.1.upid.as_deref()
    }

    /// When the running try, or the running undo, was written down.
    #[must_use]
    pub fn intended_at(&self, place: u16) -> Option<Timestamp> {
        self.records.get(usize::from(place))?.intended_at
    }

    /// Why the last try of a step failed.
    #[must_use]
    pub fn failure(&self, place: u16) -> Option<&ErrorBody> {
        self.records.get(usize::from(place))?.failed.as_ref()
    }

    /// Whether a step of this kind succeeded, and was not taken back.
    #[must_use]
    pub fn did(&self, step: Step) -> bool {
        self.steps()
            .iter()
            .zip(&self.records)
            .any(|(s, record)| *s == step && record.done_at.is_some() && !record.undone)
    }

    /// Whether a step of this kind was ever begun.
    #[must_use]
    pub fn began(&self, step: Step) -> bool {
        self.steps().iter().zip(&self.records).any(|(s, record)| *s == step && record.tries > 0)
    }

    /// The guest's number, once it is known.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        let chosen = self.facts.iter().rev().find_map(|fact| {
            let Finding::Vmid(vmid) = fact else { return None };
            Some(*vmid)
        });
        chosen.or_else(|| self.operation.vmid())
    }

    /// The restore that made the guest.
    #[must_use]
    pub fn restored_by(&self) -> Option<&str> {
        self.facts.iter().find_map(|fact| {
            let Finding::RestoredBy(upid) = fact else { return None };
            Some(upid.as_str())
        })
    }

    /// The volumes that this operation made.
    #[must_use]
    pub fn volumes(&self) -> BTreeSet<VolumeId> {
        let volume = |fact: &Finding| {
            let Finding::Volume(volume) = fact else { return None };
            Some(volume.clone())
        };
        self.facts.iter().filter_map(volume).collect()
    }

    /// Whether the guest ran when this operation came to it.
    #[must_use]
    pub fn found(&self) -> Option<PowerFound> {
        self.facts.iter().find_map(|fact| {
            let Finding::Found(power) = fact else { return None };
            Some(*power)
        })
    }

    /// The tags and the description that the guest had when this operation came to it.
    #[must_use]
    pub fn found_marked(&self) -> Option<(&BTreeSet<String>, &str)> {
        self.facts.iter().find_map(|fact| {
            let Finding::FoundMarked { tags, description } = fact else { return None };
            Some((tags, description.as_str()))
        })
    }

    /// When the last try of a step of this kind was written down.
    #[must_use]
    pub fn intended_at_of(&self, step: Step) -> Option<Timestamp> {
        self.steps().iter().zip(&self.records).find(|(s, _)| **s == step)?.1.intended_at
    }

    /// From when to when Proxmox worked for a step of this kind; without an end where it did not succeed.
    #[must_use]
    pub fn worked(&self, step: Step) -> Option<(Timestamp, Option<Timestamp>)> {
        let (_, record) = self.steps().iter().zip(&self.records).find(|(s, _)| **s == step)?;
        Some((record.posted_at?, record.done_at))
    }

    /// What the backup showed that it tried.
    #[must_use]
    pub fn tested(&self) -> Option<(TestVerdict, &str)> {
        self.facts.iter().find_map(|fact| {
            let Finding::Tested { verdict, why } = fact else { return None };
            Some((*verdict, why.as_str()))
        })
    }

    /// What became of the guest's slot to exchange its controller.
    #[must_use]
    pub fn controller(&self) -> Option<(Came, &str)> {
        self.facts.iter().find_map(|fact| {
            let Finding::Controller { came, why } = fact else { return None };
            Some((*came, why.as_str()))
        })
    }

    /// The step that failed for good, when it is taken back or was, and why.
    #[must_use]
    pub fn broken_at(&self) -> Option<(Step, &ErrorBody)> {
        self.cause.as_ref()?;
        let mut steps = self.steps().iter().zip(&self.records).rev();
        steps.find_map(|(step, record)| Some((*step, record.failed.as_ref()?)))
    }

    /// What it did not do as it should, without failing for it.
    pub fn conditions(&self) -> impl Iterator<Item = &ErrorBody> {
        self.facts.iter().filter_map(|fact| {
            let Finding::Condition(problem) = fact else { return None };
            Some(problem)
        })
    }

    /// Why it failed or was parked.
    #[must_use]
    pub const fn cause(&self) -> Option<&ErrorBody> {
        self.cause.as_ref()
    }

    /// What a person should run or look at, when it was parked.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Its status when it was parked.
    #[must_use]
    pub fn parked_at(&self) -> Option<Status> {
        self.parked.as_ref().map(|parked| parked.status)
    }

    /// All that a person needs who is to mend it, when it is parked.
    #[must_use]
    pub fn parked_entry(&self) -> Option<ParkedEntry> {
        let parked = self.parked.as_ref().filter(|_| self.status == Status::Parked)?;
        let place = match parked.status {
            Status::Before(at)
            | Status::During(at)
            | Status::Broken(at)
            | Status::UndoBefore(at)
            | Status::UndoDuring(at) => Some(at),
            _ => None,
        };
        Some(ParkedEntry {
            operation: self.id,
            entries: self.entries,
            kind: self.operation.kind(),
            guest: self.operation.uid(),
            name: self.operation.name().clone(),
            vmid: self.vmid(),
            step: place.and_then(|at| self.step(at)).map(|step| step.name().to_owned()),
            way: match parked.status {
                Status::Broken(_) | Status::UndoBefore(_) | Status::UndoDuring(_) | Status::AllUndone => {
                    Way::Back
                }
                _ => Way::Forth,
            },
            problem: self.cause.clone()?,
            remedy: self.remedy.clone()?,
            since: parked.since,
        })
    }

    /// For hub, controller and command.
    #[must_use]
    pub fn view(&self) -> OperationView {
        OperationView {
            id: self.id,
            kind: self.operation.kind(),
            guest: self.operation.uid(),
            other: self.operation.other(),
            name: self.operation.name().clone(),
            vmid: self.vmid(),
            status: self.wire_status(),
            steps: (0_u16..).zip(self.steps()).map(|(place, step)| self.step_view(place, *step)).collect(),
            opened_at: self.opened_at,
            ended_at: self.ended_at,
            problem: self.wire_problem(),
            correlation_id: self.correlation,
            alike: None,
        }
    }

    fn wire_problem(&self) -> Option<ErrorBody> {
        let problem = self.cause.clone().or_else(|| self.conditions().next().cloned())?;
        Some(match &self.remedy {
            Some(remedy) => problem.with("remedy", remedy.clone()),
            None => problem,
        })
    }

    /// Its status on the wire.
    #[must_use]
    pub const fn wire_status(&self) -> OperationStatus {
        match self.status {
            Status::Queued => OperationStatus::Queued,
            Status::Before(_) | Status::During(_) | Status::Broken(_) | Status::AllDone => {
                OperationStatus::Running
            }
            Status::UndoBefore(_) | Status::UndoDuring(_) | Status::AllUndone => OperationStatus::Undoing,
            Status::Done => OperationStatus::Done,
            Status::Undone => OperationStatus::Undone,
            Status::Parked => OperationStatus::Parked,
            Status::Forgotten => OperationStatus::Forgotten,
        }
    }

    fn step_view(&self, place: u16, step: Step) -> StepView {
        let record = self.records.get(usize::from(place)).cloned().unwrap_or_default();
        let status = match self.status {
            Status::During(at) if at == place => StepStatus::Intended,
            Status::UndoDuring(at) if at == place => StepStatus::Undoing,
            _ if record.undone => StepStatus::Undone,
            _ if record.done_at.is_some() => StepStatus::Done,
            _ if record.failed.is_some() => StepStatus::Failed,
            _ if record.tries > 0 => StepStatus::Intended,
            _ => StepStatus::Pending,
        };
        let note = record.note.or_else(|| record.failed.map(|problem| problem.message));
        StepView { name: step.name().to_owned(), status, note, upid: record.upid }
    }
}

/// Whether a failed try is followed by another.
#[must_use]
pub const fn then(tries: u32, bound: u32) -> AfterFailure {
    if tries < bound { AfterFailure::Again } else { AfterFailure::GiveUp }
}
