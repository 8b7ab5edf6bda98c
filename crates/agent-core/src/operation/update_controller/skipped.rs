//! Steps of an update that are not gone.
//!
//! In: the operation as its journal has it, and a step. Out: why the step is skipped, for its note. Skipped are a snapshot
//! that cannot be taken, and the rollback that operations of an earlier agent end with. Once that one set its tag, it is
//! gone to its end, since its guest may be stopped.

use super::{Came, UpdateController};
use crate::operation::Operation;
use crate::operation::progress::OperationState;
use crate::operation::step::Step;

/// Why a step is skipped; none, where it is gone.
#[must_use]
pub fn skipped(progress: &OperationState, step: Step) -> Option<String> {
    if !matches!(progress.operation, Operation::UpdateController(_)) {
        return None;
    }
    if step == Step::TakeSnapshot {
        return progress.conditions().next().map(|why| why.message.clone());
    }
    if !UpdateController::is_rollback(step) || is_armed(progress) {
        return None;
    }
    let text = match progress.controller()?.0 {
        Came::Up => "not needed: the new controller is up",
        Came::Silent => "not gone: silence alone sends no guest back, a person looks",
        Came::Bad => "not gone: nothing is rolled back any more, the guest puts its previous controller back",
    };
    Some(text.to_owned())
}

/// Whether the tag was set. A step that was skipped succeeded too, and has a note.
fn is_armed(progress: &OperationState) -> bool {
    let view = progress.view();
    let mut arm = view.steps.iter().filter(|step| step.name == Step::ArmRollBack.name());
    progress.did(Step::ArmRollBack) && arm.any(|step| step.note.is_none())
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::code::ErrorCode;
    use holdfast_protocol::envelope::ErrorBody;
    use holdfast_protocol::id::OperationId;
    use jiff::Timestamp;

    use super::super::tests::update;
    use super::*;
    use crate::operation::RollBack;
    use crate::operation::log::{Entry, Event, Finding, Status};
    use crate::operation::step::StepList;

    fn all_steps() -> Vec<Step> {
        let turn = vec![Step::CheckRoom, Step::TakeSnapshot, Step::AwaitController];
        turn.into_iter().chain(RollBack::steps()).collect()
    }

    /// An operation as an earlier agent opened it, after so many steps; how its turn ended.
    fn after(done: u16, came: Came) -> OperationState {
        let id = OperationId::new(uuid::Uuid::from_u128(9));
        let operation = Operation::UpdateController(Box::new(update()));
        let opened = OperationState::listed(id, operation, Timestamp::UNIX_EPOCH, StepList::of(all_steps()));
        let mut events = vec![Event::Begun];
        for step in 0..done {
            let facts = match step {
                2 => vec![Finding::Controller { came, why: "test".to_owned() }],
                _ => Vec::new(),
            };
            events.extend([Event::Intended { step }, Event::Succeeded { step, facts, note: None }]);
        }
        let entries: Vec<Entry> = (1..)
            .zip(events)
            .map(|(number, event)| Entry { number, at: Timestamp::UNIX_EPOCH, event })
            .collect();
        OperationState::replay(opened, &entries).unwrap()
    }

    /// Where the earlier agent set its tag, all is gone to its end; before that nothing of the rollback is.
    #[test]
    fn an_earlier_agents_rollback_is_skipped_unless_it_was_armed() {
        let steps = all_steps();
        for came in [Came::Up, Came::Bad, Came::Silent] {
            for done in 3..u16::try_from(steps.len()).unwrap() {
                let progress = after(done, came);
                assert_eq!(progress.status(), Status::Before(done));
                let next = steps[usize::from(done)];
                let armed = steps[..usize::from(done)].contains(&Step::ArmRollBack);
                assert_eq!(skipped(&progress, next).is_none(), armed, "{came:?} {}", next.name());
            }
        }
    }

    /// Skipped, a step counts as done, and the next one is skipped as well.
    #[test]
    fn what_is_skipped_arms_nothing() {
        let mut progress = after(4, Came::Bad);
        for step in 4..u16::try_from(all_steps().len()).unwrap() {
            let note = skipped(&progress, all_steps()[usize::from(step)]);
            assert!(note.is_some(), "{step}");
            for event in [Event::Intended { step }, Event::Succeeded { step, facts: Vec::new(), note }] {
                let number = progress.entries() + 1;
                progress.apply(&Entry { number, at: Timestamp::UNIX_EPOCH, event }).unwrap();
            }
        }
        assert_eq!(progress.status(), Status::AllDone);
    }

    #[test]
    fn a_snapshot_that_cannot_be_taken_is_skipped_with_the_reason() {
        let id = OperationId::new(uuid::Uuid::from_u128(9));
        let operation = Operation::UpdateController(Box::new(update()));
        assert_eq!(operation.steps().len(), 3, "a new one has no rollback");
        let mut progress = OperationState::new(id, operation, Timestamp::UNIX_EPOCH);
        let why = ErrorBody::new(ErrorCode::Unsupported, "no snapshot was taken");
        let facts = vec![Finding::Condition(why)];
        for (number, event) in (1..).zip([
            Event::Begun,
            Event::Intended { step: 0 },
            Event::Succeeded { step: 0, facts, note: None },
        ]) {
            progress.apply(&Entry { number, at: Timestamp::UNIX_EPOCH, event }).unwrap();
        }
        assert_eq!(skipped(&progress, Step::TakeSnapshot).as_deref(), Some("no snapshot was taken"));
        assert_eq!(skipped(&progress, Step::AwaitController), None);
    }
}
