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

#[cfg(test)]
mod tests {
    use holdfast_protocol::code::ErrorCode;
    use holdfast_protocol::envelope::Problem;
    use holdfast_protocol::id::Vmid;
    use jiff::Timestamp;

    use super::*;
    use crate::operation::log::{Entry, Event, Then};
    use crate::operation::progress::ReplayError;
    use crate::operation::{Operation, Target};

    fn left_open(events: Vec<Event>) -> Result<Progress, ReplayError> {
        let target = Target {
            uid: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            name: "web-1".parse().unwrap(),
            vmid: Vmid::try_from(300).unwrap(),
        };
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let numbered = (1..).zip(events).map(|(number, event)| Entry { number, at, event });
        let id = OperationId::new(uuid::Uuid::nil());
        Progress::replay(id, Operation::Start(target), at, &numbered.collect::<Vec<_>>())
    }

    #[test]
    fn each_place_a_journal_can_stop_at_has_its_line() {
        let problem = || Problem::new(ErrorCode::Unavailable, "no bridge");
        let failed = || Event::Failed { step: 0, problem: problem(), then: Then::GiveUp };
        let succeeded = |step| Event::Succeeded { step, facts: Vec::new(), note: None };
        let stories = [
            vec![],
            vec![Event::Begun],
            vec![Event::Begun, Event::Intended { step: 0 }],
            vec![Event::Begun, Event::Intended { step: 0 }, failed()],
            vec![
                Event::Begun,
                Event::Intended { step: 0 },
                failed(),
                Event::UndoBegun { problem: problem() },
                Event::UndoIntended { step: 0 },
            ],
            vec![
                Event::Begun,
                Event::Intended { step: 0 },
                succeeded(0),
                Event::Intended { step: 1 },
                succeeded(1),
            ],
        ];
        let open: Vec<Progress> = stories.into_iter().map(|events| left_open(events).unwrap()).collect();
        insta::assert_snapshot!(format!("{}{}", recovery(&[]), recovery(&open)), @r"
        recovery: nothing was left open
        recovery: 6 operations were left open
          start of web-1 (300): waits in its lane
          start of web-1 (300) at start: goes on with this step
          start of web-1 (300) at start: asks whether it happened (GuestRuns), and does it if not
          start of web-1 (300) at start: goes on taking back what it made
          start of web-1 (300) at start: goes on taking back what it made
          start of web-1 (300): only its end is written
        ");
    }

    #[test]
    fn a_journal_that_cannot_be_is_refused_at_its_first_wrong_entry() {
        let twice = left_open(vec![Event::Begun, Event::Begun]).unwrap_err();
        assert!(matches!(twice, ReplayError::Illegal { number: 2, .. }));
        let skipped = left_open(vec![Event::Begun, Event::Intended { step: 1 }]).unwrap_err();
        assert!(matches!(skipped, ReplayError::Illegal { number: 2, .. }));
    }
}
