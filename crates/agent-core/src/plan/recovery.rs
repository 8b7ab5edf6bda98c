//! The recovery plan for operations that a stopped agent left open.
//!
//! What comes in: the journals, the host as it is seen, and what Proxmox says of tasks whose reply was lost. What goes
//! out: one line per operation. There is no second executor: what the plan adopts or parks is one more event in the
//! journal, and then each operation continues from the last event of its journal; every step's probe checks the host
//! before anything is done again. So a wrong line here cannot make an effect happen twice.

use std::collections::BTreeMap;
use std::fmt;

use holdfast_protocol::id::{GuestName, GuestUid, OperationId, Vmid};
use holdfast_protocol::operation::{OperationKind, OperationView};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::mark::Mark;
use crate::model::observed::{Detail, Observed};
use crate::operation::Operation;
use crate::operation::log::Status;
use crate::operation::progress::OperationState;
use crate::operation::step::Step;

/// What recovery does with one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recover {
    /// It was not begun: it waits in its lane as before.
    Wait,
    /// Its next step begins.
    GoOn,
    /// A step was under way: its probe finds out whether it happened; if not, it is done.
    Probe {
        /// What is asked, in words.
        question: String,
        /// Why its task could not be looked for, if so: it is looked for again before anything is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blind: Option<String>,
    },
    /// A step was under way, and Proxmox has a task of ours that does it: it is followed.
    Adopt {
        upid: String,
        /// Whether the journal knew it already.
        known: TaskNameSource,
    },
    /// What it made is taken back.
    Undo,
    /// It cannot go on: it is left for a person.
    Park {
        reason: String,
        /// What that person should look at.
        remedy: String,
    },
    /// Only its end was not written.
    Conclude,
}

/// Where the name of an adopted task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskNameSource {
    /// From the journal.
    Journal,
    /// From Proxmox: the reply was lost.
    LostReply,
}

/// What became of looking for the task of a step that was under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// There is one.
    Found(String),
    /// There is none, or the step starts none.
    None,
    /// Proxmox did not answer.
    Unknown(String),
}

/// What is seen at the start.
#[derive(Clone, Copy, Debug)]
pub struct StartObservation<'a> {
    /// The host, when it answered.
    pub observed: Option<&'a Observed>,
    /// For each operation with a step under way that the journal names no task for.
    pub tasks: &'a BTreeMap<OperationId, Task>,
}

/// One line of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryLine {
    pub id: OperationId,
    /// What it does.
    pub kind: OperationKind,
    /// To which guest.
    pub guest: GuestUid,
    /// That guest's name.
    pub name: GuestName,
    /// Its number, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// The step that its journal has reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What happens now.
    pub recover: Recover,
}

/// What is done about everything that was left open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryPlan {
    /// When the agent started.
    pub at: Timestamp,
    /// One line per operation, oldest first.
    pub lines: Vec<RecoveryLine>,
}

/// A plan that was kept, with what came of each line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryReport {
    /// What was planned.
    pub plan: RecoveryPlan,
    /// The present state of each of its operations.
    pub now: Vec<OperationView>,
}

/// Plans the recovery of everything that was left open.
#[must_use]
pub fn recovery(open: &[OperationState], seen: StartObservation<'_>, at: Timestamp) -> RecoveryPlan {
    RecoveryPlan { at, lines: open.iter().map(|progress| line(progress, seen)).collect() }
}

fn line(progress: &OperationState, seen: StartObservation<'_>) -> RecoveryLine {
    let (place, recover) = match progress.status() {
        Status::Queued => (None, Recover::Wait),
        Status::Before(at) => (Some(at), strange(progress, seen).unwrap_or(Recover::GoOn)),
        Status::During(at) => {
            (Some(at), strange(progress, seen).unwrap_or_else(|| under_way(progress, at, seen)))
        }
        Status::Broken(at) | Status::UndoBefore(at) | Status::UndoDuring(at) => (Some(at), Recover::Undo),
        Status::AllDone
        | Status::AllUndone
        | Status::Done
        | Status::Undone
        | Status::Parked
        | Status::Forgotten => (None, Recover::Conclude),
    };
    RecoveryLine {
        id: progress.id,
        kind: progress.operation.kind(),
        guest: progress.operation.uid(),
        name: progress.operation.name().clone(),
        vmid: progress.vmid(),
        step: place.and_then(|at| progress.step(at)).map(|step| step.name().to_owned()),
        recover,
    }
}

fn under_way(progress: &OperationState, at: u16, seen: StartObservation<'_>) -> Recover {
    let Some(step) = progress.step(at) else {
        return Recover::Conclude;
    };
    if let Some(upid) = progress.upid(at) {
        return Recover::Adopt { upid: upid.to_owned(), known: TaskNameSource::Journal };
    }
    let question = step.facts().check.to_owned();
    match seen.tasks.get(&progress.id) {
        Some(Task::Found(upid)) => Recover::Adopt { upid: upid.clone(), known: TaskNameSource::LostReply },
        Some(Task::Unknown(why)) => Recover::Probe { question, blind: Some(why.clone()) },
        Some(Task::None) | None => Recover::Probe { question, blind: None },
    }
}

/// While the agent was away another guest got its guest's number. Checked only for guests that were made before the
/// operation began: of those it is certain that they carried our mark.
fn strange(progress: &OperationState, seen: StartObservation<'_>) -> Option<Recover> {
    let vmid = progress.operation.vmid()?;
    let uid = progress.operation.uid();
    let guest = seen.observed?.guests.get(&vmid)?;
    let Detail::Known(facts) = &guest.detail else {
        return None;
    };
    if let Operation::DiscardCopy(discard) = &progress.operation
        && facts.mark == discard.mark()
    {
        return None;
    }
    let owner = match facts.mark {
        Mark::Of(found) if found == uid => return None,
        // A guest that is being taken over carries none until the step that sets it.
        Mark::None if is_taken_over(progress) => return None,
        // Laid aside by this very operation.
        Mark::Copy { of, by } if of == uid && by == progress.id => return None,
        Mark::Of(other) => format!("it carries the mark of guest {other}"),
        Mark::None => "it carries no mark of ours".to_owned(),
        Mark::Copy { of, .. } => format!("it is marked as a copy beside guest {of}"),
        Mark::Broken => "its mark was changed".to_owned(),
    };
    Some(Recover::Park {
        reason: format!(
            "guest {vmid} has our number, but {owner}: it is somebody else's now, and is not touched"
        ),
        remedy: format!("pct config {vmid}"),
    })
}

fn is_taken_over(progress: &OperationState) -> bool {
    matches!(progress.operation, Operation::AdoptGuest(_)) && !progress.did(Step::TagGuest)
}

impl fmt::Display for Recover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait => f.write_str("it waits in its lane, as before"),
            Self::GoOn => f.write_str("it goes on with this step"),
            Self::Probe { question, blind: None } => {
                write!(f, "the world is asked whether the step happened ({question}); if not, it is done")
            }
            Self::Probe { question, blind: Some(why) } => write!(
                f,
                "its task could not be looked for yet ({why}); once it was, the world is asked whether the step happened ({question})"
            ),
            Self::Adopt { upid, known: TaskNameSource::Journal } => {
                write!(f, "its task is followed to its end: {upid}")
            }
            Self::Adopt { upid, known: TaskNameSource::LostReply } => {
                write!(f, "the reply was lost, but its task was found and is followed: {upid}")
            }
            Self::Undo => f.write_str("it goes on taking back what it made"),
            Self::Park { reason, .. } => write!(f, "it is parked: {reason}"),
            Self::Conclude => f.write_str("only its end is written"),
        }
    }
}

impl fmt::Display for RecoveryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kind.as_str(), self.name)?;
        if let Some(vmid) = self.vmid {
            write!(f, " ({vmid})")?;
        }
        match &self.step {
            Some(step) => write!(f, " at {step}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RecoveryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return writeln!(f, "recovery: nothing was left open");
        }
        writeln!(f, "recovery: {} left open", operations(self.lines.len()))?;
        for line in &self.lines {
            writeln!(f, "  {line}: {}", line.recover)?;
        }
        Ok(())
    }
}

/// "1 operation was", "2 operations were".
#[must_use]
pub fn operations(count: usize) -> String {
    match count {
        1 => "1 operation was".to_owned(),
        _ => format!("{count} operations were"),
    }
}

#[cfg(test)]
mod tests;
