//! What becomes of operations that a stopped agent left open: a plan like any other, printed before it is run.
//!
//! There is no second executor. An operation resumes where its journal stands, and each step's probe asks the world
//! before anything is done again; so the recovery plan only says, for people, what will be looked for.

use std::fmt;

use holdfast_protocol::id::OperationId;

use crate::operation::log::Status;
use crate::operation::progress::Progress;
use crate::operation::step::Probe;

/// What recovery does with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recover {
    /// It was not begun: it waits in its lane as before.
    Wait,
    /// Its next step begins.
    GoOn(u16),
    /// A step was under way: its probe tells whether it happened; if not, it is done.
    Probe(u16, Probe),
    /// Its undo goes on.
    Undo(u16),
    /// Only its end was not written.
    Conclude,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryLine {
    /// Which operation.
    pub id: OperationId,
    /// What it was, to whom, and at which step.
    pub about: String,
    /// What happens now.
    pub recover: Recover,
}

/// What a person reads after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// One line per operation, oldest first.
    pub lines: Vec<RecoveryLine>,
}

/// Plans the recovery of everything that was left open.
#[must_use]
pub fn recovery(open: &[Progress]) -> RecoveryReport {
    RecoveryReport { lines: open.iter().map(line).collect() }
}

fn line(progress: &Progress) -> RecoveryLine {
    let recover = match progress.status() {
        Status::Queued => Recover::Wait,
        Status::Before(at) => Recover::GoOn(at),
        Status::During(at) => match progress.step(at) {
            Some(step) => Recover::Probe(at, step.probe()),
            None => Recover::Conclude,
        },
        Status::Broken(at) | Status::UndoBefore(at) | Status::UndoDuring(at) => Recover::Undo(at),
        Status::AllDone | Status::AllUndone | Status::Done | Status::Undone | Status::Parked => {
            Recover::Conclude
        }
    };
    let step = match recover {
        Recover::GoOn(at) | Recover::Probe(at, _) | Recover::Undo(at) => progress.step(at),
        Recover::Wait | Recover::Conclude => None,
    };
    let vmid = progress.vmid().map(|vmid| format!(" ({vmid})")).unwrap_or_default();
    let step = step.map(|step| format!(" at {}", step.name())).unwrap_or_default();
    let operation = &progress.operation;
    let about = format!("{} of {}{vmid}{step}", operation.kind().as_str(), operation.name());
    RecoveryLine { id: progress.id, about, recover }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return writeln!(f, "recovery: nothing was left open");
        }
        writeln!(f, "recovery: {} operations were left open", self.lines.len())?;
        for line in &self.lines {
            let what = match line.recover {
                Recover::Wait => "waits in its lane".to_owned(),
                Recover::GoOn(_) => "goes on with this step".to_owned(),
                Recover::Probe(_, probe) => {
                    format!("asks whether it happened ({probe:?}), and does it if not")
                }
                Recover::Undo(_) => "goes on taking back what it made".to_owned(),
                Recover::Conclude => "only its end is written".to_owned(),
            };
            writeln!(f, "  {}: {what}", line.about)?;
        }
        Ok(())
    }
}
